/**
 * A response to a HEAD, and one with status 204 or 304, has no content, whatever its head announces. A backend that
 * sends the announced content all the same, a moment later, had it taken for the response to the next request on that
 * connection: which may be another customer's.
 */
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { call } from '../upstream/support/caller.ts';
import { startGateway } from '../upstream/support/gateway.ts';
import { startRawUpstream } from '../upstream/support/upstreams.ts';

const FORGED = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged';
const TRUE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue';

/** Answers the first request of a connection with `first`; before any later response it sends `late`. */
async function startLateUpstream(first: string, late: string) {
  const used = new Set<Socket>();
  const ends: Promise<string>[] = [];
  const upstream = await startRawUpstream((socket, head) => {
    if (used.has(socket)) socket.write(late);
    else
      ends.push(
        new Promise((resolve) => socket.once('error', () => resolve('reset')).once('end', () => resolve('closed'))),
      );
    used.add(socket);
    socket.write(head.includes(' /first ') ? first : TRUE);
  });
  return { ...upstream, ends };
}

test.each([
  ['HEAD', `HTTP/1.1 200 OK\r\nContent-Length: ${FORGED.length}\r\n\r\n`],
  ['HEAD', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['GET', `HTTP/1.1 204 No Content\r\nContent-Length: ${FORGED.length}\r\n\r\n`],
  ['GET', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['GET', `HTTP/1.1 304 Not Modified\r\nContent-Length: ${FORGED.length}\r\n\r\n`],
])(
  'content that the response to %s announces with %j and sends late is never another response',
  async (method, first) => {
    const upstream = await startLateUpstream(first, FORGED);
    const gateway = await startGateway(upstream.port, { maxConnections: 1 });
    await call(gateway.port, '/first', method);
    expect(await gateway.nextOutcome()).toMatchObject({ kind: 'completed' });
    expect((await call(gateway.port, '/next')).content.toString()).toBe('true');
    // An orderly close would leave the gateway's port in TIME_WAIT, and HEADs could use up all of them.
    expect(await upstream.ends[0]).toBe('reset');
  },
);

test.each([
  ['HEAD', 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: 0\r\n\r\n'],
  ['HEAD', 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\n\r\n'],
  ['GET', 'HTTP/1.1 204 No Content\r\nKeep-Alive: timeout=600\r\n\r\n'],
  ['GET', 'HTTP/1.1 304 Not Modified\r\nKeep-Alive: timeout=600\r\n\r\n'],
])('a connection whose response to %s announces nothing is used again: %j', async (method, first) => {
  const upstream = await startLateUpstream(first, '');
  const gateway = await startGateway(upstream.port, { maxConnections: 1 });
  await call(gateway.port, '/first', method);
  await call(gateway.port, '/next');
  expect(upstream.connections()).toBe(1);
});
