import { afterEach, beforeEach, expect, it } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { createApiKey } from '../../src/formats/api-key.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { awakeMs } from '../support/awake-clock.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

const TIMEOUT_MS = 400;
/** What a busy machine may add to a wait. Less than what a wait that ends with its connection would take. */
const SLACK_MS = 600;
/** Every write is on disk before it is answered, so that a crash loses nothing. */
const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always'];

let backend: Backend;
/** Closed after each test, in reverse. */
let opened: AsyncDisposableStack;

beforeEach(async () => {
  opened = new AsyncDisposableStack();
  backend = await startBackend();
  opened.defer(() => backend.close());
});

afterEach(() => opened.disposeAsync());

async function openRedis(options: Parameters<typeof startRedis>[0]): Promise<RedisServer> {
  const redis = await startRedis(options);
  opened.defer(() => redis.stop());
  return redis;
}

async function openGateway(storeUrl: string): Promise<TestGateway> {
  const config = { store: { timeout_ms: TIMEOUT_MS, on_error: 'deny' } };
  const gateway = await startTestGateway({ storeUrl, upstreamUrl: backend.url, config });
  opened.defer(() => gateway.close());
  return gateway;
}

async function read(gateway: TestGateway, key: string) {
  const startedMs = awakeMs();
  const answer = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
  const body = await answer.json();
  return { status: answer.status, headers: answer.headers, body, tookMs: awakeMs() - startedMs };
}

/** The answer that says nothing about the key, in time. */
function expectStoreUnavailable({ status, headers, body, tookMs }: Awaited<ReturnType<typeof read>>): void {
  expect(status).toBe(503);
  expect(body).toMatchObject({ code: 'store_unavailable', status: 503 });
  expect(headers.get('retry-after')).toBe('1');
  expect(headers.get('www-authenticate')).toBeNull();
  expect(tookMs).toBeLessThan(TIMEOUT_MS + SLACK_MS);
}

async function readiness(gateway: TestGateway) {
  const answer = await fetch(`${gateway.ops}/readyz`);
  return { status: answer.status, body: await answer.json() };
}

const READY = { status: 200, body: { status: 'ready', reasons: [] } };
const EMPTY = { status: 200, body: { status: 'degraded', reasons: ['store_empty'] } };
const DEGRADED = { status: 200, body: { status: 'degraded', reasons: ['store_unreachable'] } };

it('a gateway that starts without Redis is live, not ready, and becomes ready by itself', async () => {
  const port = await freePort();
  const gateway = await openGateway(`redis://127.0.0.1:${port}`);
  expect((await fetch(`${gateway.ops}/livez`)).status).toBe(200);
  expect(await readiness(gateway)).toEqual({
    status: 503,
    body: { status: 'not_ready', reasons: ['store_never_reached'] },
  });
  for (const key of [createApiKey(), 'made-elsewhere', 'tg_demo_starter']) {
    expectStoreUnavailable(await read(gateway, key));
  }
  expect(await readMetric(gateway, 'tollgate_store_up')).toEqual({ '': 0 });
  expect(await readMetric(gateway, 'tollgate_degraded')).toEqual({ '': 0 });

  await openRedis({ port });
  await expect.poll(() => readiness(gateway)).toEqual(EMPTY);
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  expect((await read(gateway, key)).status).toBe(200);
  expect((await read(gateway, 'made-elsewhere')).status).toBe(401);
  expect(await readiness(gateway)).toEqual(READY);
});

it('a gateway with on_error: deny that loses Redis stays in rotation, responds 503 and never 401, and recovers by itself', async () => {
  const redis = await openRedis({ args: DURABLE });
  const gateway = await openGateway(redis.url);
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  expect((await read(gateway, key)).status).toBe(200);
  expect(await readiness(gateway)).toEqual(READY);

  await redis.kill();
  for (const each of [key, 'made-elsewhere', key]) expectStoreUnavailable(await read(gateway, each));
  await expect.poll(() => readiness(gateway)).toEqual(DEGRADED);
  const together = await Promise.all(Array.from({ length: 50 }, () => read(gateway, key)));
  together.forEach(expectStoreUnavailable);
  expect((await fetch(`${gateway.ops}/livez`)).status).toBe(200);
  expect(await readMetric(gateway, 'tollgate_degraded')).toEqual({ '': 1 });
  expect((await callAdmin(gateway, '/status')).body.store).toMatchObject({ up: false, reached: true });
  expect((await callAdmin(gateway, '/admin/v1/customers/acme')).status).toBe(503);
  expect(backend.seen).toHaveLength(1);

  await redis.restart();
  await expect.poll(() => readiness(gateway)).toEqual(READY);
  const healed = await read(gateway, key);
  expect(healed.status).toBe(200);
  expect(healed.headers.get('x-ratelimit-remaining')).toBe('998');
  expect(await readMetric(gateway, 'tollgate_degraded')).toEqual({ '': 0 });
  const changes = gateway.logs.map(({ msg }) => String(msg)).filter((msg) => msg.startsWith('the store is'));
  expect(changes).toEqual([
    'the store is reachable',
    'the store is not reachable: known keys are still served, quotas follow store.on_error',
    'the store is reachable',
  ]);
});

it('while Redis is stopped with open connections, requests do not wait for it, and only requests sent to the backend are counted', async () => {
  const redis = await openRedis({});
  const gateway = await openGateway(redis.url);
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  expect((await read(gateway, key)).status).toBe(200);

  const underWay = Array.from({ length: 30 }, () => read(gateway, key));
  await Promise.race(underWay);
  redis.pause();
  for (const answer of await Promise.all(underWay)) if (answer.status !== 200) expectStoreUnavailable(answer);
  const later = await Promise.all(Array.from({ length: 30 }, () => read(gateway, key)));
  later.forEach(expectStoreUnavailable);
  expectStoreUnavailable(await read(gateway, 'made-elsewhere'));
  expect(await readiness(gateway)).toEqual(DEGRADED);

  redis.resume();
  await expect.poll(() => readiness(gateway)).toEqual(READY);
  expect((await read(gateway, key)).status).toBe(200);
  await expect
    .poll(async () => (await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used)
    .toBe(backend.seen.length);
});

it('units that Redis grants after their request was refused are refunded', async () => {
  const redis = await openRedis({});
  const gateway = await openGateway(redis.url);
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'enterprise', requests_per_hour: 11 });
  expect((await read(gateway, key)).status).toBe(200);

  // Holds back the window's scripts; reading records goes on.
  await redis.command('CLIENT', 'PAUSE', 10 * TIMEOUT_MS, 'WRITE');
  const refused = await Promise.all(Array.from({ length: 10 }, () => read(gateway, key)));
  await redis.command('CLIENT', 'UNPAUSE');
  refused.forEach(expectStoreUnavailable);
  expect(backend.seen).toHaveLength(1);

  await expect.poll(() => readMetric(gateway, 'tollgate_store_calls_total')).toMatchObject({ 'op="refund"': 1 });
  const usage = await callAdmin(gateway, '/admin/v1/customers/acme/usage');
  expect(usage.body).toMatchObject({ used: 1, remaining: 10 });
});

it('a Redis that refuses the password counts as unavailable, and clients do not see its error message', async () => {
  const redis = await openRedis({});
  const gateway = await openGateway(`redis://nobody:wrong-password@127.0.0.1:${redis.port}`);
  expect((await readiness(gateway)).status).toBe(503);
  const answer = await read(gateway, 'made-elsewhere');
  expectStoreUnavailable(answer);
  expect(JSON.stringify(answer.body)).not.toMatch(/WRONGPASS|password|redis/i);
  expect(JSON.stringify(gateway.logs)).not.toContain('wrong-password');

  await redis.command('ACL', 'SETUSER', 'nobody', 'on', '>wrong-password', '~*', '&*', '+@all');
  await expect.poll(() => readiness(gateway)).toEqual(EMPTY);
});
