import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { call, openCaller } from './support/caller.ts';
import { fillBacklog } from './support/full-backlog.ts';
import { startGateway } from './support/gateway.ts';
import { startHttpUpstream, startRawUpstream } from './support/upstreams.ts';

const inMs = (ms: number): number => systemClock.monotonicMs() + ms;

test('a head that is late fails the request and closes the upstream connection', async () => {
  const closed = Promise.withResolvers<void>();
  const upstream = await startRawUpstream((socket) => socket.once('close', () => closed.resolve()));
  const gateway = await startGateway(upstream.port, { responseTimeoutMs: 80 });
  const answer = await call(gateway.port);
  expect(answer.content.toString()).toContain('gateway_timeout response_timeout');
  const outcome = await gateway.nextOutcome();
  expect(outcome).toMatchObject({ kind: 'failed', failure: 'response_timeout', begun: true, headSent: false });
  expect(outcome.upstreamMs).toBeGreaterThanOrEqual(80);
  await closed.promise;
});

test('endless interim answers do not put the deadline off', async () => {
  const upstream = await startRawUpstream((socket) => {
    const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 10);
    socket.once('close', () => clearInterval(timer));
  });
  const gateway = await startGateway(upstream.port, { responseTimeoutMs: 80 });
  await call(gateway.port);
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed', failure: 'response_timeout' });
});

test('the total deadline holds for a late head too', async () => {
  const upstream = await startRawUpstream(() => {});
  const gateway = await startGateway(upstream.port, { totalTimeoutMs: 500 });
  const answer = await call(gateway.port);
  expect(answer.content.toString()).toContain('gateway_timeout total_timeout');
});

test('content that never ends is cut at the total deadline', async () => {
  const closed = Promise.withResolvers<void>();
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    const timer = setInterval(() => socket.write('1\r\nx\r\n'), 5);
    socket.once('close', () => {
      clearInterval(timer);
      closed.resolve();
    });
  });
  const gateway = await startGateway(upstream.port, { totalTimeoutMs: 500 });
  expect(await call(gateway.port)).toMatchObject({ status: 200, end: 'reset' });
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed', failure: 'total_timeout', headSent: true });
  await closed.promise;
});

test('a caller that never takes the end of its answer is cut at the total deadline', async () => {
  const content = Buffer.alloc(16 * 1024 * 1024);
  const upstream = await startHttpUpstream((_req, res) => res.end(content));
  const gateway = await startGateway(upstream, { totalTimeoutMs: 600 });
  const caller = openCaller(gateway.port);
  caller.pause().write('GET / HTTP/1.1\r\nHost: caller.test\r\n\r\n');
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed', failure: 'total_timeout', headSent: true });
});

test('a request that has to wait too long for a connection never begins', async () => {
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
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'dispatch_timeout', begun: false, upstreamMs: 0 });

  upstreamAnswer.end('done');
  expect((await first).status).toBe(200);
  expect(await firstOutcome).toMatchObject({ kind: 'completed' });
  await gateway.forwarder.close();
  expect(seen).toBe(1);
});

test('a waiting request takes the connection as soon as it is free', async () => {
  const upstream = await startHttpUpstream((req, res) => res.end(req.url));
  const gateway = await startGateway(upstream, { maxConnections: 1 });
  const paths = Array.from({ length: 20 }, (_, i) => `/${i}`);
  const answers = await Promise.all(paths.map((path) => call(gateway.port, path)));
  expect(answers.map((answer) => answer.status)).toEqual(paths.map(() => 200));
});

test('a request whose time is over as its connection stands is not sent', async () => {
  const upstream = await startRawUpstream(() => {});
  const gateway = await startGateway(upstream.port, { request: () => ({ beginDeadlineMs: inMs(-1) }) });
  await call(gateway.port);
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'dispatch_timeout', begun: false });
  await gateway.forwarder.close();
  expect(upstream.heads).toEqual([]);
});

test('a request whose time is over by the wall clock alone is not sent', async () => {
  const upstream = await startRawUpstream(() => {});
  const gateway = await startGateway(upstream.port, { request: () => ({ beginDeadlineWallMs: Date.now() - 1 }) });
  await call(gateway.port);
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'dispatch_timeout', begun: false });
  await gateway.forwarder.close();
  expect(upstream.heads).toEqual([]);
});

test('a connection that is not made in time fails the request before it began', async () => {
  const gateway = await startGateway(await fillBacklog(), { connectTimeoutMs: 120 });
  const answer = await call(gateway.port);
  expect(answer.content.toString()).toContain('upstream_unavailable connect_timeout');
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'connect_timeout', begun: false });
});

test('the time to begin holds while a connection is being made', async () => {
  const gateway = await startGateway(await fillBacklog(), {
    connectTimeoutMs: 500,
    request: () => ({ beginDeadlineMs: inMs(60) }),
  });
  await call(gateway.port);
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'dispatch_timeout', begun: false });
});

test('once the head is there, content may take longer than the head was allowed to', async () => {
  const upstream = await startHttpUpstream((_req, res) => {
    res.write('slow ');
    setTimeout(() => res.end('answer'), 800);
  });
  const gateway = await startGateway(upstream, { responseTimeoutMs: 500 });
  const answer = await call(gateway.port);
  expect(answer).toMatchObject({ status: 200, end: 'closed' });
  expect(answer.content.toString()).toContain('answer');
  const outcome = await gateway.nextOutcome();
  expect(outcome.kind).toBe('completed');
  expect(outcome.upstreamMs).toBeGreaterThan(700);
});
