/**
 * A server may close a kept connection at any time, and many do so right behind a response: nginx when it reloads or
 * after `keepalive_requests`, others after a number of requests. A connection went to the next request before the
 * gateway could see it close, and the one retry could get another such connection: 2.8 to 5.8 % of all requests were
 * answered 502 by a backend that closed 30 % of its connections, and 14 of 239,000 while nginx was reloaded.
 */
import { Agent, get } from 'node:http';
import type { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { RetryResult } from '../../src/upstream/backend.ts';
import { call } from '../upstream/support/caller.ts';
import { startGateway } from '../upstream/support/gateway.ts';
import { startRawUpstream } from '../upstream/support/upstreams.ts';

const OK = 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: 2\r\n\r\nok';
const REQUESTS = 400;
const CLIENTS = 24;

/** Every response but three of ten leaves the connection open; `close` is called for the others. */
function startClosingUpstream(close: (socket: Socket) => void) {
  let responses = 0;
  return startRawUpstream((socket) => {
    socket.write(OK);
    if (responses++ % 10 < 3) close(socket);
  });
}

/** Counts the responses by status. Each client sends its next request when it has the response to the last one. */
async function requestInLoops(port: number): Promise<Record<number, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  onTestFinished(() => agent.destroy());
  const statuses: Record<number, number> = {};
  let left = REQUESTS;
  async function loop(): Promise<void> {
    while (left-- > 0) {
      const status = await new Promise<number>((resolve, reject) => {
        const request = get({ port, host: '127.0.0.1', agent }, (res) => {
          res.resume().once('end', () => resolve(res.statusCode ?? 0));
        });
        request.once('error', reject);
      });
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, loop));
  return statuses;
}

test.each<[string, (socket: Socket) => void]>([
  ['right behind a response', (socket) => socket.end()],
  ['a moment after a response', (socket) => setImmediate(() => socket.end())],
  ['a moment after a response, by a reset', (socket) => setImmediate(() => socket.resetAndDestroy())],
])('no request is lost to a backend that closes connections %s', async (_, close) => {
  const upstream = await startClosingUpstream(close);
  const gateway = await startGateway(upstream.port, { maxConnections: 16 });
  expect(await requestInLoops(gateway.port)).toEqual({ 200: REQUESTS });
});

test('the retry budget is not charged for kept connections that the backend closed', async () => {
  const used = new Set<Socket>();
  const upstream = await startRawUpstream((socket) => {
    if (used.has(socket)) socket.resetAndDestroy();
    else socket.write(OK);
    used.add(socket);
  });
  // The budget holds 100 retries, and gets none back: its clock stands still.
  const clock = { nowMs: () => 0, monotonicMs: () => 0 };
  const gateway = await startGateway(upstream.port, { clock, request: () => ({ beginDeadlineMs: 1 }) });
  for (let i = 0; i < 150; i++) expect((await call(gateway.port)).status).toBe(200);
  expect(upstream.heads).toHaveLength(150 + 149);
});

test('a connection that closes right behind its response is not used again', async () => {
  const upstream = await startRawUpstream((socket) => socket.end(OK));
  const retries: RetryResult[] = [];
  const observer = { changed() {}, retry: (_backend: string, result: RetryResult) => void retries.push(result) };
  // A single connection: the next request waits for it.
  const gateway = await startGateway(upstream.port, { observer, maxConnections: 1 });
  expect(await requestInLoops(gateway.port)).toEqual({ 200: REQUESTS });
  expect(retries.length).toBeLessThan(REQUESTS / 10);
});
