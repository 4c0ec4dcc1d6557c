import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { call, openCaller } from './support/caller.ts';
import { fillBacklog } from './support/full-backlog.ts';
import { startGateway } from './support/gateway.ts';
import { startHttpUpstream, startRawUpstream } from './support/upstreams.ts';

const inMs = (ms: number): number => systemClock.monotonicMs() + ms;

test('a late response head fails the request and closes the upstream connection', async () => {
  const closed = Promise.withResolvers<void>();
  const upstream = await startRawUpstream((socket) => socket.once('close', () => closed.resolve()));
  const gateway = await startGateway(upstream.port, { responseTimeoutMs: 80 });
  const answer = await call(gateway.port);
  expect(answer.content.toString()).toContain('gateway_timeout response_timeout');
  const outcome = await gateway.nextOutcome();
  expect(outcome).toMatchObject({ kind: 'failed', failure: 'response_timeout', wasSent: true, headSent: false });
  expect(outcome.upstreamMs).toBeGreaterThan(0);
  await closed.promise;
});

test('endless interim responses do not extend the deadline', async () => {
  const upstream = await startRawUpstream((socket) => {
    const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 10);
    socket.once('close', () => clearInterval(timer));
  });
  const gateway = await startGateway(upstream.port, { responseTimeoutMs: 80 });
  await call(gateway.port);
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed', failure: 'response_timeout' });
});

test('the total deadline also applies to a late response head', async () => {
  const upstream = await startRawUpstream(() => {});
  const gateway = await startGateway(upstream.port, { totalTimeoutMs: 1500 });
  const answer = await call(gateway.port);
  expect(answer.content.toString()).toContain('gateway_timeout total_timeout');
});

test('an endless response body is aborted at the total deadline', async () => {
  const closed = Promise.withResolvers<void>();
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    const timer = setInterval(() => socket.write('1\r\nx\r\n'), 5);
    socket.once('close', () => {
      clearInterval(timer);
      closed.resolve();
    });
  });
  const gateway = await startGateway(upstream.port, { totalTimeoutMs: 1500 });
  expect(await call(gateway.port)).toMatchObject({ status: 200, end: 'reset' });
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed', failure: 'total_timeout', headSent: true });
  await closed.promise;
});

test('a client that never reads the end of its response is disconnected at the total deadline', async () => {
  const content = Buffer.alloc(16 * 1024 * 1024);
  const upstream = await startHttpUpstream((_req, res) => res.end(content));
  const gateway = await startGateway(upstream, { totalTimeoutMs: 1500 });
  const caller = openCaller(gateway.port);
  caller.pause().write('GET / HTTP/1.1\r\nHost: caller.test\r\n\r\n');
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed', failure: 'total_timeout', headSent: true });
});

/** A clock that moves only when told. */
function manualClock() {
  let nowMs = 1_000_000;
  const clock = { monotonicMs: () => nowMs, nowMs: () => nowMs };
  const advance = (ms: number) => {
    nowMs += ms;
  };
  return { clock, advance };
}

const BY_DEFAULT = { responseTimeoutMs: 30_000, idleTimeoutMs: 60_000, totalTimeoutMs: undefined };
const ALWAYS = { request: () => ({ beginDeadlineMs: Number.POSITIVE_INFINITY }) };

test.each([
  ['an event stream of ten minutes', 20, 30_000],
  ['a download of an hour', 65, 59_000],
])('%s is relayed to its end by default', async (_, pieces, intervalMs) => {
  const { clock, advance } = manualClock();
  const response = Promise.withResolvers<ServerResponse>();
  const upstream = await startHttpUpstream((_req, res) => response.resolve(res));
  const gateway = await startGateway(upstream, { ...BY_DEFAULT, ...ALWAYS, clock });
  const caller = openCaller(gateway.port);
  let received = '';
  caller.setEncoding('latin1').on('data', (text) => {
    received += text;
  });
  caller.write('GET / HTTP/1.1\r\nHost: caller.test\r\n\r\n');
  const res = await response.promise;
  for (let i = 0; i < pieces; i++) {
    res.write(`piece-${i};`);
    await expect.poll(() => received, { interval: 1 }).toContain(`piece-${i};`);
    advance(intervalMs);
    // Deadlines are checked every 10 ms.
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  res.end('end');
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'completed', status: 200 });
});

test.each([
  ['before the head', undefined, 30_000, { failure: 'response_timeout', headSent: false }],
  ['after the head', '', 60_000, { failure: 'idle_timeout', headSent: true }],
  ['within the body', 'a piece', 60_000, { failure: 'idle_timeout', headSent: true }],
])('the response of a backend that hangs %s times out by default', async (_, piece, waitMs, outcome) => {
  const { clock, advance } = manualClock();
  const response = Promise.withResolvers<ServerResponse>();
  const upstream = await startHttpUpstream((_req, res) => response.resolve(res));
  const gateway = await startGateway(upstream, { ...BY_DEFAULT, ...ALWAYS, clock });
  const caller = openCaller(gateway.port);
  let received = '';
  caller.setEncoding('latin1').on('data', (text) => {
    received += text;
  });
  caller.write('GET / HTTP/1.1\r\nHost: caller.test\r\n\r\n');
  const res = await response.promise;
  if (piece === '') res.flushHeaders();
  else if (piece !== undefined) res.write(piece);
  if (piece !== undefined) await expect.poll(() => received, { interval: 1 }).toContain(`\r\n\r\n`);
  if (piece) await expect.poll(() => received, { interval: 1 }).toContain(piece);
  advance(waitMs);
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed', ...outcome });
});

test('a request that waits too long for a connection is never sent', async () => {
  const held = Promise.withResolvers<ServerResponse>();
  let seen = 0;
  const upstream = await startHttpUpstream((_req, res) => {
    seen++;
    held.resolve(res);
  });
  const gateway = await startGateway(upstream, {
    maxConnections: 1,
    request: (url) => (url === '/second' ? { beginDeadlineMs: inMs(60) } : {}),
  });
  const first = call(gateway.port, '/first');
  const firstOutcome = gateway.nextOutcome();
  const upstreamAnswer = await held.promise;
  const second = await call(gateway.port, '/second');
  expect(second.content.toString()).toContain('upstream_unavailable dispatch_timeout');
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'dispatch_timeout', wasSent: false, upstreamMs: 0 });

  upstreamAnswer.end('done');
  expect((await first).status).toBe(200);
  expect(await firstOutcome).toMatchObject({ kind: 'completed' });
  await gateway.backend.close();
  expect(seen).toBe(1);
});

test('a waiting request gets the connection as soon as it is free', async () => {
  const upstream = await startHttpUpstream((req, res) => res.end(req.url));
  const gateway = await startGateway(upstream, { maxConnections: 1 });
  const paths = Array.from({ length: 20 }, (_, i) => `/${i}`);
  const answers = await Promise.all(paths.map((path) => call(gateway.port, path)));
  expect(answers.map((answer) => answer.status)).toEqual(paths.map(() => 200));
});

test('a request whose deadline has passed when its connection opens is not sent', async () => {
  const upstream = await startRawUpstream(() => {});
  const gateway = await startGateway(upstream.port, { request: () => ({ beginDeadlineMs: inMs(-1) }) });
  await call(gateway.port);
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'dispatch_timeout', wasSent: false });
  await gateway.backend.close();
  expect(upstream.heads).toEqual([]);
});

test('a request whose deadline has passed by the wall clock alone is not sent', async () => {
  const upstream = await startRawUpstream(() => {});
  const gateway = await startGateway(upstream.port, { request: () => ({ beginDeadlineWallMs: Date.now() - 1 }) });
  await call(gateway.port);
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'dispatch_timeout', wasSent: false });
  await gateway.backend.close();
  expect(upstream.heads).toEqual([]);
});

test('a request whose deadline passes between getting its connection and its write is not sent', async () => {
  const upstream = await startRawUpstream(() => {});
  const deadlineMs = 1000;
  let looks = 0;
  // In time when the connection is there; then the machine is suspended until the deadline.
  const nowMs = () => (looks++ === 0 ? deadlineMs - 1 : deadlineMs);
  const gateway = await startGateway(upstream.port, {
    clock: { monotonicMs: () => systemClock.monotonicMs(), nowMs },
    request: () => ({ beginDeadlineWallMs: deadlineMs }),
  });
  const answer = await call(gateway.port);
  expect(answer.content.toString()).toContain('upstream_unavailable dispatch_timeout');
  const outcome = await gateway.nextOutcome();
  expect(outcome).toMatchObject({ failure: 'dispatch_timeout', wasSent: false });
  expect(String(outcome.kind === 'failed' && outcome.cause)).toContain('before the request could be sent');
  await gateway.backend.close();
  expect(upstream.heads).toEqual([]);
});

test('a connect timeout fails the request before it is sent', async () => {
  const gateway = await startGateway(await fillBacklog(), { connectTimeoutMs: 120 });
  const answer = await call(gateway.port);
  expect(answer.content.toString()).toContain('upstream_unavailable connect_timeout');
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'connect_timeout', wasSent: false });
});

test('the deadline for sending applies while a connection is being opened', async () => {
  const gateway = await startGateway(await fillBacklog(), {
    connectTimeoutMs: 500,
    request: () => ({ beginDeadlineMs: inMs(60) }),
  });
  await call(gateway.port);
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'dispatch_timeout', wasSent: false });
});

test('after the head, the body may take longer than the response timeout', async () => {
  const upstream = await startHttpUpstream((_req, res) => {
    res.write('slow ');
    setTimeout(() => res.end('answer'), 2000);
  });
  const gateway = await startGateway(upstream, { responseTimeoutMs: 1500 });
  const answer = await call(gateway.port);
  expect(answer).toMatchObject({ status: 200, end: 'closed' });
  expect(answer.content.toString()).toContain('answer');
  const outcome = await gateway.nextOutcome();
  expect(outcome.kind).toBe('completed');
  expect(outcome.upstreamMs).toBeGreaterThan(1900);
});
