/**
 * A Redis with an evicting `maxmemory-policy` throws records away when its memory is full. Good keys were then called
 * invalid (401), and keys of evicted customers had no quota (403), while `/readyz` said that all is well. Under a
 * `volatile-*` policy the windows and the usage history were lost as silently.
 */
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/open/open-store.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { INSTALLED_NAME, writeCustomer, writeKey } from '../support/redis-system.ts';
import { silent } from '../support/silent.ts';

const KEYS = Array.from({ length: 100 }, (_, i) => `good-key-${i}`);
const UNKNOWN = 'a-key-of-nobody';
const DOUBTED = '503 store_unavailable';

async function start(...args: string[]) {
  const redis = await startRedis({ args });
  onTestFinished(() => redis.stop());
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  for (const key of KEYS) {
    await writeCustomer(redis, `customer-of-${key}`, { plan: 'starter' });
    await writeKey(redis, key, `customer-of-${key}`);
  }
  const startGateway = async () => {
    const gateway = await startTestGateway({ storeUrl: redis.url, upstreamUrl: backend.url });
    onTestFinished(() => gateway.close());
    return gateway;
  };
  return { redis, startGateway };
}

/** Makes Redis evict some of the records. */
async function fillMemory(redis: RedisServer, policy: string): Promise<void> {
  await redis.command('CONFIG', 'SET', 'maxmemory-policy', policy);
  const [, used] = /^used_memory:(\d+)/m.exec(String(await redis.command('INFO', 'memory'))) ?? [];
  // More than the buffers of connections take, which count as used memory, too.
  await redis.command('CONFIG', 'SET', 'maxmemory', Number(used) + 250_000);
  for (let i = 0; i < 500; i += 1) await redis.command('SET', `filler:${i}`, 'x'.repeat(1000));
}

async function ask({ public: url }: TestGateway, key: string): Promise<string> {
  const response = await fetch(`${url}/v1/conversations`, { headers: bearer(key) });
  const { code } = (await response.json()) as { code?: string };
  return [response.status, ...(code ? [code] : [])].join(' ');
}

async function reasons({ ops }: TestGateway): Promise<readonly string[]> {
  return ((await (await fetch(`${ops}/readyz`)).json()) as { reasons?: string[] }).reasons ?? [];
}

test('under an evicting policy no valid key gets 401, from the first eviction on', async () => {
  const { redis, startGateway } = await start('--maxmemory-policy', 'allkeys-random');
  const gateway = await startGateway();
  expect(await ask(gateway, UNKNOWN)).toBe('401 invalid_key');
  await fillMemory(redis, 'allkeys-random');

  const answers = new Set(await Promise.all(KEYS.map((key) => ask(gateway, key))));
  expect(answers).toEqual(new Set(['200', DOUBTED]));
  expect(await reasons(gateway)).toContain('store_evicted');
  expect((await callAdmin(gateway, '/status')).body.store.evicted).toBe(true);
  // So does a gateway that starts now.
  const late = await startGateway();
  expect(await ask(late, UNKNOWN)).toBe(DOUBTED);
  expect(await reasons(late)).toContain('store_evicted');
});

test('unknown keys get 401 again when an operator accepts the evictions, also at gateways that start later', async () => {
  const { redis, startGateway } = await start();
  await fillMemory(redis, 'allkeys-random');
  const gateway = await startGateway();
  expect(await ask(gateway, UNKNOWN)).toBe(DOUBTED);

  await redis.command('CONFIG', 'SET', 'maxmemory', 0);
  await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
  expect(await ask(gateway, UNKNOWN)).toBe(DOUBTED);
  const store = await openStore({ url: redis.url, keyPrefix: 'tollgate', timeoutMs: 2000 }, silent);
  onTestFinished(() => store.close());
  await store.initialise?.();
  for (const each of [gateway, await startGateway()]) {
    await expect.poll(() => reasons(each)).toEqual([]);
    expect(await ask(each, UNKNOWN)).toBe('401 invalid_key');
  }
});

test('what a volatile policy evicts are windows and usage history: reported, but no doubt of records', async () => {
  const { redis, startGateway } = await start();
  for (let i = 0; i < 1000; i += 1) await redis.command('SET', `volatile:${i}`, 'x'.repeat(1000), 'EX', 1000);
  await fillMemory(redis, 'volatile-lru');
  const gateway = await startGateway();
  expect(String(await redis.command('INFO', 'stats'))).not.toMatch(/^evicted_keys:0\r?$/m);
  expect(await ask(gateway, UNKNOWN)).toBe('401 invalid_key');
  expect(await reasons(gateway)).toEqual(['store_evicted']);
  expect((await callAdmin(gateway, '/status')).body.store.evicted).toBe(true);
  expect(gateway.logs.map(({ msg }) => msg)).toContainEqual(expect.stringContaining('usage history may be lost'));
});

test('a Redis that is too full for the mark is asked all the same, and marked later', async () => {
  const { redis, startGateway } = await start();
  await redis.command('CONFIG', 'SET', 'maxmemory', 1);
  const gateway = await startGateway();
  // A search for records that a busy machine delays beyond the timeout is repeated after a second.
  await expect.poll(() => reasons(gateway)).toEqual([]);
  expect(await ask(gateway, UNKNOWN)).toBe('401 invalid_key');
  await redis.command('CONFIG', 'SET', 'maxmemory', 0);
  expect(await ask(gateway, 'another-key-of-nobody')).toBe('401 invalid_key');
  await expect.poll(() => redis.command('EXISTS', INSTALLED_NAME)).toBe(1);
});
