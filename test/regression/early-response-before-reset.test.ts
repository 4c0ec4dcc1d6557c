/**
 * A backend that refused an upload and closed the connection at once: 112 of 1,000 clients got 502 instead of its 413.
 * The next part of the body could not be written any more, and the failed write closed the connection before the
 * response, which had already arrived, was read.
 */
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { startBodySystem } from '../bodies/support.ts';
import { listen } from '../upstream/support/upstreams.ts';

const UPLOADS = 100;
const CLIENTS = 8;
/** What the backend reads before it refuses. */
const READ_BYTES = 100_000;
const RESPONSE = 'HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n';

test('every client gets the response of a backend that refuses its upload and closes at once', async () => {
  const server = createServer({ noDelay: true }, (socket) => {
    let bytes = 0;
    socket.on('data', ({ length }) => {
      if (bytes < READ_BYTES && bytes + length >= READ_BYTES) socket.end(RESPONSE, () => socket.destroy());
      bytes += length;
    });
  });
  const port = await listen(server);
  const { open } = await startBodySystem({
    customer: { id: 'acme', plan: 'starter', requests_per_hour: 1_000_000 },
    config: { upstream: { urls: [`http://127.0.0.1:${port}`] } },
  });
  const statuses: Record<string, number> = {};
  let left = UPLOADS;
  const part = Buffer.alloc(65_536);
  async function loop() {
    while (left-- > 0) {
      const upload = open('POST /api/a', 'Content-Length: 50000000');
      const { socket } = upload;
      const push = () => {
        while (socket.writable && upload.received === '' && socket.write(part));
      };
      socket.on('drain', push);
      push();
      const status = (await upload.untilEnd()).slice(9, 12);
      socket.destroy();
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, loop));
  expect(statuses).toEqual({ 413: UPLOADS });
});
