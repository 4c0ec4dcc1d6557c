import { createServer as createTlsServer } from 'node:https';
import { createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { RetryResult } from '../../src/upstream/backend.ts';
import { createCertificate } from '../support/certificates.ts';
import { call } from './support/caller.ts';
import { fillBacklog } from './support/full-backlog.ts';
import { startGateway } from './support/gateway.ts';
import { listen, startHttpUpstream, startRawUpstream } from './support/upstreams.ts';

/** Kept for longer than a busy machine takes for a test. */
const OK = 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: 2\r\n\r\nok';

function noteRetries() {
  const retries: RetryResult[] = [];
  return {
    retries,
    observer: { changed() {}, retry: (_backend: string, result: RetryResult) => void retries.push(result) },
  };
}

test.each<[string, (socket: Socket) => void]>([
  ['closed', (socket) => socket.end()],
  ['reset', (socket) => socket.resetAndDestroy()],
])('a kept connection that is %s as it is reused costs the client nothing', async (_, end) => {
  const upstream = await startRawUpstream((socket) => {
    if (upstream.heads.length === 2) end(socket);
    else socket.write(OK);
  });
  const { retries, observer } = noteRetries();
  const gateway = await startGateway(upstream.port, { observer });
  await call(gateway.port);
  await gateway.nextOutcome();
  expect((await call(gateway.port)).status).toBe(200);
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'completed', wasSent: true });
  expect([upstream.heads.length, upstream.connections(), retries]).toEqual([3, 2, ['sent']]);
});

test('a retry uses no other kept connection', async () => {
  let isStale = false;
  const upstream = await startRawUpstream((socket) => {
    const wasKept = kept.has(socket);
    kept.add(socket);
    if (isStale && wasKept) socket.resetAndDestroy();
    else if (isStale) socket.write(OK);
    else held.push(socket);
    if (held.length === 2) for (const each of held.splice(0)) each.write(OK);
  });
  const kept = new Set<Socket>();
  const held: Socket[] = [];
  const gateway = await startGateway(upstream.port, { maxConnections: 2 });
  await Promise.all([call(gateway.port), call(gateway.port)]);
  isStale = true;
  expect((await call(gateway.port)).status).toBe(200);
});

test('HEAD is retried as HEAD', async () => {
  const upstream = await startRawUpstream((socket) => {
    if (upstream.heads.length === 1) socket.end();
    else socket.write(OK.slice(0, -2));
  });
  const gateway = await startGateway(upstream.port);
  expect((await call(gateway.port, '/x', 'HEAD')).status).toBe(200);
  expect(upstream.heads.map((head) => head.split('\r\n')[0])).toEqual(['HEAD /x HTTP/1.1', 'HEAD /x HTTP/1.1']);
});

test('a request is sent at most twice', async () => {
  const upstream = await startRawUpstream((socket) => socket.resetAndDestroy());
  const gateway = await startGateway(upstream.port);
  expect((await call(gateway.port)).content.toString()).toContain('bad_gateway reset');
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'reset', wasSent: true });
  expect(upstream.heads).toHaveLength(2);
});

test.each<[string, string]>([
  ['a part of a head', 'HTTP/1.1 2'],
  ['an interim answer', 'HTTP/1.1 102 Processing\r\n\r\n'],
  ['a part of the content', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart'],
])('after %s the request is not retried', async (_, bytes) => {
  const upstream = await startRawUpstream((socket) => socket.end(bytes));
  const gateway = await startGateway(upstream.port);
  await call(gateway.port);
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed', failure: 'reset', wasSent: true });
  expect(upstream.heads).toHaveLength(1);
});

test('an invalid or late response is not retried', async () => {
  const upstream = await startRawUpstream((socket, head) => {
    if (head.includes('/nonsense')) socket.write('SSH-2.0\r\n\r\n');
  });
  const gateway = await startGateway(upstream.port, { responseTimeoutMs: 50 });
  await call(gateway.port, '/nonsense');
  await call(gateway.port, '/late');
  expect(upstream.heads).toHaveLength(2);
});

test('after a refused connection the request goes to another upstream', async () => {
  const other = await startHttpUpstream((_req, res) => res.end('ok'));
  const gateway = await startGateway([await freePort(), other]);
  for (let i = 0; i < 20; i++) {
    expect((await call(gateway.port)).status).toBe(200);
    expect(await gateway.nextOutcome()).toMatchObject({ kind: 'completed', wasSent: true });
  }
});

/** A TLS server that resets its first connections, before a byte of their handshakes. */
async function startResettingTlsUpstream(resets: number) {
  const { cert, key } = createCertificate({});
  const secure = createTlsServer({ cert, key }, (_req, res) => res.end('ok'));
  let connections = 0;
  const port = await listen(
    createServer((socket) => {
      if (++connections <= resets) socket.resetAndDestroy();
      else secure.emit('connection', socket);
    }),
  );
  return { urls: [new URL(`https://localhost:${port}`)], tls: { ca: cert } };
}

test('a connection to the only upstream that is reset while it is made is tried once more, from the retry budget', async () => {
  const { retries, observer } = noteRetries();
  const gateway = await startGateway(0, { ...(await startResettingTlsUpstream(1)), observer });
  expect((await call(gateway.port)).status).toBe(200);
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'completed', wasSent: true });
  expect(retries).toEqual(['sent']);
});

test('a request whose connections are reset twice while they are made was not sent', async () => {
  const { retries, observer } = noteRetries();
  const gateway = await startGateway(0, { ...(await startResettingTlsUpstream(2)), observer });
  expect((await call(gateway.port)).content.toString()).toContain('upstream_unavailable refused');
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'refused', wasSent: false });
  expect(retries).toEqual(['sent']);
});

test('after a connect timeout the request goes to another upstream', async () => {
  const other = await startHttpUpstream((_req, res) => res.end('ok'));
  const gateway = await startGateway([await fillBacklog(), other], { connectTimeoutMs: 50 });
  expect((await call(gateway.port)).status).toBe(200);
});

test('after its deadline a request goes to no other upstream', async () => {
  const other = await startRawUpstream((socket) => socket.write(OK));
  const gateway = await startGateway([await fillBacklog(), other.port], {
    connectTimeoutMs: 100,
    request: () => ({ beginDeadlineMs: systemClock.monotonicMs() + 50 }),
  });
  await call(gateway.port);
  expect(await gateway.nextOutcome()).toMatchObject({ kind: 'failed', wasSent: false });
  expect(other.heads).toEqual([]);
});

test('a request that was reset after its deadline is not retried', async () => {
  const upstream = await startRawUpstream((socket) => setTimeout(() => socket.resetAndDestroy(), 100));
  const gateway = await startGateway(upstream.port, {
    request: () => ({ beginDeadlineMs: systemClock.monotonicMs() + 60 }),
  });
  await call(gateway.port);
  const outcome = await gateway.nextOutcome();
  // On a busy machine, the request may not have been sent at all.
  if (outcome.wasSent) expect(outcome).toMatchObject({ failure: 'reset' });
  expect(upstream.heads.length).toBeLessThanOrEqual(1);
});

test('refused by every upstream, the request counts as not sent', async () => {
  const gateway = await startGateway([await freePort(), await freePort()]);
  expect((await call(gateway.port)).content.toString()).toContain('upstream_unavailable refused');
  expect(await gateway.nextOutcome()).toMatchObject({ failure: 'refused', wasSent: false, upstreamMs: 0 });
});

test('a request that one upstream reset and the other refused is reported as sent', async () => {
  const upstream = await startRawUpstream((socket) => socket.resetAndDestroy());
  const gateway = await startGateway([upstream.port, await freePort()]);
  const outcomes = [];
  for (let i = 0; i < 2; i++) {
    await call(gateway.port);
    outcomes.push(await gateway.nextOutcome());
  }
  // Each request tried another upstream first; either way it was sent.
  for (const outcome of outcomes) expect(outcome).toMatchObject({ kind: 'failed', failure: 'reset', wasSent: true });
  expect(upstream.heads).toHaveLength(2);
});

test('above the retry budget, a request gets the failure of its first attempt', async () => {
  const upstream = await startRawUpstream((socket) => socket.resetAndDestroy());
  const { retries, observer } = noteRetries();
  // No time passes for the budget, so nothing but the requests brings retries.
  const clock = { nowMs: () => 0, monotonicMs: () => 0 };
  const gateway = await startGateway(upstream.port, { observer, clock, request: () => ({ beginDeadlineMs: 1 }) });
  for (let i = 0; i < 140; i++) {
    await call(gateway.port);
    expect(await gateway.nextOutcome()).toMatchObject({ failure: 'reset', wasSent: true });
  }
  const sent = retries.filter((result) => result === 'sent').length;
  expect(sent).toBeGreaterThan(120);
  expect(sent).toBeLessThanOrEqual(100 + 140 / 5);
  expect(retries).toHaveLength(140);
  expect(upstream.heads).toHaveLength(140 + sent);
});
