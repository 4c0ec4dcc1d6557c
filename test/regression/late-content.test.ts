/**
 * A response to a HEAD, and one with status 204 or 304, has no content, whatever its head announces. A backend that
 * sends content all the same, a moment later, had it taken for the response to the next request on that connection:
 * which may be another customer's. gunicorn 20.1 does so with an application that returns content with every response.
 */
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { call } from '../upstream/support/caller.ts';
import { startGateway } from '../upstream/support/gateway.ts';
import { startRawUpstream } from '../upstream/support/upstreams.ts';

const FORGED = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged';
const TRUE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue';

/**
 * Answers a request for `/first` with `first`, and any other with {@link TRUE}. Content follows a first response `lateMs`
 * later, or before the next response on that connection; without `late`, none does.
 */
async function startLateUpstream(first: string, { late = '', lateMs }: { late?: string; lateMs?: number } = {}) {
  const firsts: { readonly socket: Socket; readonly end: Promise<string>; requestsAfter: number }[] = [];
  let isLate = true;
  const upstream = await startRawUpstream((socket, head) => {
    const sent = firsts.find((one) => one.socket === socket);
    if (sent) sent.requestsAfter++;
    if (sent && lateMs === undefined) socket.write(late);
    if (!head.includes(' /first ')) {
      setTimeout(() => socket.write(TRUE), lateMs === undefined ? 0 : 2 * lateMs);
      return;
    }
    const end = new Promise<string>((resolve) =>
      socket.once('error', () => resolve('reset')).once('end', () => resolve('closed')),
    );
    firsts.push({ socket, end, requestsAfter: 0 });
    socket.write(isLate ? first : first.slice(0, first.indexOf('\r\n\r\n') + 4));
    if (isLate && lateMs !== undefined) setTimeout(() => socket.write(late), lateMs);
  });
  return {
    ...upstream,
    firsts,
    sendNothingLate() {
      isLate = false;
    },
  };
}

test.each([
  ['HEAD', `HTTP/1.1 200 OK\r\nContent-Length: ${FORGED.length}\r\n\r\n`],
  ['HEAD', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['HEAD', 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\n\r\n'],
  ['HEAD', 'HTTP/1.1 204 No Content\r\n\r\n'],
  ['GET', `HTTP/1.1 204 No Content\r\nContent-Length: ${FORGED.length}\r\n\r\n`],
  ['GET', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['GET', `HTTP/1.1 304 Not Modified\r\nContent-Length: ${FORGED.length}\r\n\r\n`],
])('however late content follows the response to %s %j, it is never another response', async (method, first) => {
  const upstream = await startLateUpstream(first, { late: FORGED });
  const gateway = await startGateway(upstream.port, { maxConnections: 1 });
  await call(gateway.port, '/first', method);
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'completed' });
  expect((await call(gateway.port, '/next')).content.toString()).toBe('true');
  // An orderly close would leave the gateway's port in TIME_WAIT, and HEADs could use up all of them.
  expect(await upstream.firsts[0]?.end).toBe('reset');
});

test.each([
  'HTTP/1.1 204 No Content\r\nKeep-Alive: timeout=600\r\n\r\n',
  'HTTP/1.1 304 Not Modified\r\nKeep-Alive: timeout=600\r\n\r\n',
])('content that follows %j in a packet of its own is never another response', async (first) => {
  const upstream = await startLateUpstream(first, { late: FORGED, lateMs: 20 });
  const gateway = await startGateway(upstream.port, { maxConnections: 1 });
  // The second request waits for a connection, and would get the first one at once.
  const answers = await Promise.all([call(gateway.port, '/first'), call(gateway.port, '/next')]);
  expect(answers[1]?.content.toString()).toBe('true');
  await upstream.firsts[0]?.end;
  expect(upstream.firsts[0]?.requestsAfter).toBe(0);
});

test.each([
  ['in the same packet', FORGED, {}],
  ['in a packet of its own', '', { late: FORGED, lateMs: 5 }],
])('once content has followed a 204 %s, connections are closed after a 204, not held back', async (_, same, late) => {
  const upstream = await startLateUpstream(`HTTP/1.1 204 No Content\r\n\r\n${same}`, late);
  const gateway = await startGateway(upstream.port);
  await call(gateway.port, '/first');
  await upstream.firsts[0]?.end;
  upstream.sendNothingLate();
  await call(gateway.port, '/first');
  expect(await upstream.firsts[1]?.end).toBe('reset');
});

test.each(['Content-Length: 0\r\n', ''])('a connection is used again some time after a 304 with %j', async (line) => {
  const upstream = await startLateUpstream(`HTTP/1.1 304 Not Modified\r\nKeep-Alive: timeout=600\r\n${line}\r\n`);
  const gateway = await startGateway(upstream.port);
  await call(gateway.port, '/first');
  await expect
    .poll(async () => {
      // Two at once: on a busy machine, an earlier one may have opened a second connection, which is preferred then.
      await Promise.all([call(gateway.port, '/next'), call(gateway.port, '/next')]);
      return upstream.firsts[0]?.requestsAfter;
    })
    .toBeGreaterThan(0);
});

test('a connection is used again at once after a HEAD whose response can have no content', async () => {
  const upstream = await startLateUpstream('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: 0\r\n\r\n');
  const gateway = await startGateway(upstream.port, { maxConnections: 1 });
  await call(gateway.port, '/first', 'HEAD');
  await call(gateway.port, '/next');
  expect(upstream.connections()).toBe(1);
});
