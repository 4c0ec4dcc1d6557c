/**
 * Nothing bounded the interim responses of a backend, which are skipped. One request that got them without end delayed
 * all other requests: the median of the public listener rose from 2.5 to 572 ms until the response timeout. Chunk
 * extensions were bounded for each chunk only, so bytes that are relayed to nobody had no end either.
 */
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { bearer } from '../support/admin.ts';
import { startSystem } from '../support/system.ts';
import { startRawUpstream } from '../upstream/support/upstreams.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue';
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';

/** Writes `first`, and then `unit` as fast as it is read; stops after 1 MB. Resolves when the connection is closed. */
function flood(socket: Socket, first: string, unit: string): Promise<void> {
  const block = unit.repeat(Math.ceil(16_384 / unit.length));
  let blocks = 64;
  const write = (): void => {
    while (blocks-- > 0 && socket.write(block));
  };
  socket.on('drain', write).write(first);
  write();
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

test.each([
  ['interim responses', '', 'HTTP/1.1 103 Early Hints\r\n\r\n', 502],
  ['interim responses with headers', '', `HTTP/1.1 103 Early Hints\r\nLink: ${'a'.repeat(4_000)}\r\n\r\n`, 502],
  ['empty lines', '', '\r\n', 502],
  ['headers', 'HTTP/1.1 200 OK\r\n', 'X-A: 1\r\n', 502],
  ['bytes of one header', 'HTTP/1.1 200 OK\r\nX-A: ', 'a', 502],
  ['chunk extensions', CHUNKED, `1;${'a'.repeat(4_000)}\r\nb\r\n`, 'reset'],
  ['trailers', `${CHUNKED}0\r\n`, 'X-T: 1\r\n', 'reset'],
])('a backend that sends %s without end delays no other request, and gets its connection closed', async (...given) => {
  const [, first, unit, expected] = given;
  const closed = Promise.withResolvers<void>();
  const upstream = await startRawUpstream((socket, head) => {
    if (head.includes('endless')) flood(socket, first, unit).then(closed.resolve);
    else socket.write(OK);
  });
  const { gateway, key } = await startSystem({
    config: { upstream: { urls: [`http://127.0.0.1:${upstream.port}`], response_timeout_ms: 60_000 } },
  });
  const ask = (query: string): Promise<number | string> =>
    fetch(`${gateway.public}/v1/conversations?${query}`, { headers: bearer(key) })
      .then(async (response) => {
        await response.arrayBuffer();
        return response.status;
      })
      .catch(() => 'reset');
  const [endless, ...others] = await Promise.all([ask('endless'), ask('a'), ask('b'), ask('c')]);
  await closed.promise;
  expect([endless, ...others]).toEqual([expected, 200, 200, 200]);
});
