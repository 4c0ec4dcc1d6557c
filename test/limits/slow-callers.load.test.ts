import { expect, it } from 'vitest';
import { readMetric } from '../support/metrics.ts';
import { startSystem } from '../support/system.ts';
import { openSession, request, type Session } from './support.ts';

/** Sends a byte now and then until the other side has closed. */
async function trickle(session: Session, bytes: string): Promise<void> {
  for (const byte of bytes) {
    if (session.isClosed()) return;
    session.send(byte);
    await Promise.race([session.closed, new Promise((resolve) => setTimeout(resolve, 50))]);
  }
}

const SLOW = { headers_timeout_ms: 700, request_timeout_ms: 700 };

it.each([
  ['its request line', `GET /v1/conversations/${'x'.repeat(500)}`],
  ['its headers', `GET /v1/conversations HTTP/1.1\r\nHost: a\r\n${'X: y\r\n'.repeat(100)}`],
])('a client that sends %s slowly gets 408 request_timeout, and its connection closes', async (_, bytes) => {
  const { gateway, key, backend } = await startSystem({ config: { limits: SLOW } });
  const session = await openSession(gateway.public);
  await trickle(session, bytes);
  await session.closed;
  expect(session.statuses()).toEqual([408]);
  expect(session.received()).toMatch(/"code":"request_timeout"/);
  expect(await readMetric(gateway, 'tollgate_refusals_total')).toEqual({
    'problem="request_timeout",plan="none"': 1,
  });
  expect(gateway.logs.filter(({ code }) => code === 'request_timeout')).toHaveLength(1);
  expect(backend.seen).toHaveLength(0);

  const kept = await openSession(gateway.public);
  kept.send(request(key));
  await expect.poll(() => kept.statuses()).toEqual([200]);
  await trickle(kept, bytes);
  await kept.closed;
  expect(kept.statuses()).toEqual([200, 408]);
});

it('a connection without any input closes without a response', async () => {
  const { gateway } = await startSystem({ config: { limits: SLOW } });
  const session = await openSession(gateway.public);
  await session.closed;
  expect(session.received()).toBe('');
  expect(await readMetric(gateway, 'tollgate_connections_cut_total')).toMatchObject({ 'reason="silent"': 1 });
  expect(await readMetric(gateway, 'tollgate_refusals_total')).toEqual({});
  expect(await readMetric(gateway, 'tollgate_connections')).toEqual({ '': 0 });
});

it('a connection that stays idle after a request ends after listen.keep_alive_timeout_ms', async () => {
  const { gateway, key } = await startSystem({ config: { listen: { keep_alive_timeout_ms: 100 } } });
  const session = await openSession(gateway.public);
  session.send(request(key));
  await session.closed;
  expect(session.statuses()).toEqual([200]);
});

const MEGABYTES = Buffer.alloc(32 * 1024 * 1024, 'x');

it('a client that reads nothing of a long response is reset, and the response of the backend is aborted', async () => {
  const ended = Promise.withResolvers<void>();
  const { gateway, key } = await startSystem({
    config: { limits: { response_stall_timeout_ms: 500 } },
    answer(_req, res) {
      res.once('close', () => ended.resolve());
      res.end(MEGABYTES);
    },
  });
  const session = await openSession(gateway.public);
  session.socket.pause();
  session.send(request(key));
  await ended.promise;
  await expect
    .poll(() => readMetric(gateway, 'tollgate_connections_cut_total'))
    .toMatchObject({ 'reason="slow_reader"': 1 });
  await expect
    .poll(() => gateway.logs.find(({ msg }) => msg === 'request'))
    .toMatchObject({ status: 200, aborted: true, failure: 'slow_reader' });
  expect(await readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 0 });
  expect(await readMetric(gateway, 'tollgate_connections')).toEqual({ '': 0 });
});

it('a client that reads a response slowly gets all of it', async () => {
  const { gateway, key } = await startSystem({
    config: { limits: { response_stall_timeout_ms: 1000 } },
    answer: (_req, res) => void res.end(MEGABYTES),
  });
  const session = await openSession(gateway.public);
  session.send(request(key));
  // Stops for less than the limit, again and again, and for longer than it in all.
  const step = MEGABYTES.length / 8;
  session.socket.on('data', (text: string) => {
    const { length } = session.received();
    if (Math.floor(length / step) === Math.floor((length - text.length) / step)) return;
    session.socket.pause();
    setTimeout(() => session.socket.resume(), 250);
  });
  await expect.poll(() => session.received().length, { timeout: 20_000 }).toBeGreaterThanOrEqual(MEGABYTES.length);
  expect(session.isClosed()).toBe(false);
});

it('a client that sends requests and never reads is cut: what it is owed is bounded', async () => {
  const { gateway } = await startSystem({ config: { limits: { response_stall_timeout_ms: 500 } } });
  const session = await openSession(gateway.public);
  session.socket.pause();
  const refused = 'GET /v1/conversations HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1000);
  const writing = setInterval(() => session.socket.writableLength === 0 && session.send(refused), 5);
  await expect
    .poll(() => readMetric(gateway, 'tollgate_connections_cut_total'), { timeout: 30_000 })
    .toMatchObject({ 'reason="slow_reader"': 1 });
  clearInterval(writing);
});
