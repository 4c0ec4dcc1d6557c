/**
 * A response header with a byte beyond ASCII reached the client as the backend sent it when its packet also brought
 * content, and as two bytes of UTF-8 when the head came alone: what a client got depended on the timing of packets.
 */
import { expect, it } from 'vitest';
import { openSession, request } from '../limits/support.ts';
import { startSystem } from '../support/system.ts';

const NAME = 'caf\xe9 \xff\x80';

it.each([
  ['Content-Length: 2', 'ok'],
  ['Transfer-Encoding: chunked', '2\r\nok\r\n0\r\n\r\n'],
])(
  'bytes beyond ASCII in a response header pass unchanged, whether content comes with the head or later: %s',
  async (framing, content) => {
    let sendContent = () => {};
    const { gateway, key } = await startSystem({
      answer({ url, socket }) {
        const head = `HTTP/1.1 200 OK\r\nX-Name: ${NAME}\r\n${framing}\r\n\r\n`;
        if (url?.endsWith('/together')) return void socket.write(head + content, 'latin1');
        socket.write(head, 'latin1');
        sendContent = () => void socket.write(content, 'latin1');
      },
    });
    for (const version of ['1.1', '1.0']) {
      const versioned = (bytes: string) => bytes.replace('HTTP/1.1', `HTTP/${version}`);
      const apart = await openSession(gateway.public);
      apart.send(versioned(request(key, '/v1/conversations/apart')));
      await expect.poll(apart.received).toContain('\r\n\r\n');
      expect(apart.received()).toContain(`X-Name: ${NAME}\r\n`);
      sendContent();
      await expect.poll(apart.received).toContain('ok');

      const together = await openSession(gateway.public);
      together.send(versioned(request(key, '/v1/conversations/together')));
      await expect.poll(together.received).toContain('ok');
      expect(together.received()).toContain(`X-Name: ${NAME}\r\n`);
    }
  },
);
