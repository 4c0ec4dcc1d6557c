/**
 * A store that lost its data answers "no such key" for every key. The gateway must not repeat that lie to its callers.
 */
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { StoreDoubtError, StoreUnavailableError } from '../../src/store/errors.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import type { Store } from '../../src/store/store.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { RecordingObserver } from './contract.ts';
import { RecordedInvalidations } from './recorded-invalidations.ts';

const SHA256 = 'a'.repeat(64);
const INSTALLED = 'test:installed';

/** With a record, but no mark, as a dashboard leaves it. */
async function start(): Promise<RedisServer> {
  const redis = await startEmpty();
  await redis.command('HSET', 'test:customer:{globex}', 'plan', 'starter');
  return redis;
}

async function startEmpty(): Promise<RedisServer> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  return redis;
}

async function open(redis: RedisServer, keyPrefix = 'test') {
  const observer = new RecordingObserver();
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const options = { url: redis.url, keyPrefix, timeoutMs: 2000, clock: systemClock, observer, warn };
  const store = await openRedisStore(options);
  onTestFinished(() => store.close());
  return { store, warnings, observer };
}

function misses({ records }: Store): (() => Promise<unknown>)[] {
  return [
    () => records.findKey(SHA256),
    () => records.findCustomer('acme'),
    () => records.findKeyById('k1'),
    () => records.revokeKey('k1', '2026-01-01T00:00:00Z'),
    () => records.resetUsage('acme', '2026-01-01T00:00:00Z'),
    () => records.updateCustomer('acme', { plan: 'starter' }),
    () => records.deleteCustomer('acme'),
    () => records.updateKey('k1', { name: 'x' }),
    () => records.retireKey('k1', {}, { replacedBy: 'k2', expiresAt: '2026-01-01T00:00:00Z' }),
    () => records.listCustomers(undefined, 10),
    () => records.listKeys(undefined, 10),
    () => records.listCustomerKeys('acme', undefined, 1000),
  ];
}

test('an empty prefix gets a random id, and every gateway that starts then knows the same', async () => {
  const redis = await startEmpty();
  await redis.command('SET', 'another:program', 'x');
  await redis.command('ZADD', 'test:instances', 1, 'instance-1');
  const stores = await Promise.all([open(redis), open(redis), open(redis)]);
  const id = await redis.command('GET', INSTALLED);
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  await redis.command('HSET', 'test:customer:{globex}', 'plan', 'starter');
  await redis.command('DEL', INSTALLED);
  for (const { store } of stores) await expect(store.records.findKey(SHA256)).rejects.toBeInstanceOf(StoreDoubtError);
  await redis.command('SET', INSTALLED, String(id));
  for (const { store } of stores) expect(await store.records.findKey(SHA256)).toBeUndefined();
});

test('two prefixes in one Redis are two installations', async () => {
  const redis = await start();
  await open(redis, 'test[1]');
  await open(redis, 'test1');
  expect(await redis.command('GET', 'test1:installed')).not.toBe(await redis.command('GET', 'test[1]:installed'));
});

test('a prefix that others filled before gets an id as well, which is warned of, and its loss is noticed', async () => {
  const redis = await start();
  for (let other = 0; other < 3000; other += 1) await redis.command('SET', `other:${other}`, 'x');
  const { store, warnings } = await open(redis);
  expect(await redis.command('GET', INSTALLED)).toMatch(/^[0-9a-f]{32}$/);
  expect(warnings).toEqual([expect.stringContaining('test:installed was missing although the store has records')]);
  expect(await store.records.findKey(SHA256)).toBeUndefined();
  await redis.command('FLUSHALL');
  await expect(store.records.findKey(SHA256)).rejects.toBeInstanceOf(StoreDoubtError);

  const { warnings: later } = await open(await start());
  expect(later).toHaveLength(1);
});

test('a store that lost its data proves nothing: what is missing is unavailable, what is there is served', async () => {
  const redis = await start();
  const { store, warnings, observer } = await open(redis);
  warnings.length = 0;
  await redis.command('FLUSHALL');
  for (const miss of misses(store)) await expect(miss()).rejects.toBeInstanceOf(StoreDoubtError);
  await expect(store.records.findKey(SHA256)).rejects.toBeInstanceOf(StoreUnavailableError);
  expect(store.status()).toMatchObject({ wiped: true, up: true });
  expect(store.isUp()).toBe(true);
  expect(warnings).toEqual([expect.stringContaining('the store has lost its data: test:installed')]);
  // Redis answered: that is no failed call.
  expect(observer.calls.every(({ failed }) => !failed)).toBe(true);

  await redis.command('HSET', `test:key:${SHA256}`, 'id', 'k1', 'customer', 'acme');
  expect(await store.records.findKey(SHA256)).toEqual({ id: 'k1', customer: 'acme' });
  expect(store.status().wiped).toBe(true);
  // A list would say that this is all there is.
  await expect(store.records.listKeys(undefined, 10)).rejects.toBeInstanceOf(StoreDoubtError);
});

test('the loss is noticed without a call: by the push, and after a restart', async () => {
  const redis = await start();
  const { store } = await open(redis);
  const pushed = new RecordedInvalidations(store.invalidations);
  const id = String(await redis.command('GET', INSTALLED));
  await redis.command('FLUSHALL');
  await expect.poll(() => store.status().wiped).toBe(true);
  await redis.command('SET', INSTALLED, id);
  await expect.poll(() => store.status().wiped).toBe(false);

  pushed.all.length = 0;
  await redis.restart();
  await pushed.atLeast(2);
  await expect.poll(() => store.status().wiped).toBe(true);
});

test('a restore ends it', async () => {
  const redis = await start();
  const { store, warnings } = await open(redis);
  warnings.length = 0;
  const id = String(await redis.command('GET', INSTALLED));
  await redis.command('DEL', INSTALLED);
  await expect(store.records.findKey(SHA256)).rejects.toBeInstanceOf(StoreDoubtError);
  await redis.command('SET', INSTALLED, id);
  expect(await store.records.findKey(SHA256)).toBeUndefined();
  expect(store.status().wiped).toBe(false);
  expect(warnings).toEqual([expect.stringContaining('has lost its data'), expect.stringContaining('complete again')]);
});

test('the id of another installation does not end it and is not overwritten, one that was meant ends it', async () => {
  const redis = await start();
  const { store } = await open(redis);
  await redis.command('FLUSHALL');
  await redis.command('SET', INSTALLED, 'of-another-gateway');
  for (let read = 0; read < 3; read += 1) {
    await expect(store.records.findKey(SHA256)).rejects.toBeInstanceOf(StoreDoubtError);
  }

  await redis.command('SET', INSTALLED, 'init-1234');
  expect(await store.records.findKey(SHA256)).toBeUndefined();
  expect(store.status().wiped).toBe(false);

  // The new id is the one to miss from now on.
  await redis.command('DEL', INSTALLED);
  await expect(store.records.findKey(SHA256)).rejects.toBeInstanceOf(StoreDoubtError);
  await expect.poll(() => redis.command('GET', INSTALLED)).toBe('lost-init-1234');
});

test('an id that cannot be read fails what is missing and nothing else', async () => {
  const redis = await start();
  const { store } = await open(redis);
  await redis.command('HSET', `test:key:${SHA256}`, 'id', 'k1', 'customer', 'acme');
  await redis.command('DEL', INSTALLED);
  await redis.command('RPUSH', INSTALLED, 'x');
  expect(await store.records.findKey(SHA256)).toEqual({ id: 'k1', customer: 'acme' });
  await expect(store.records.findCustomer('acme')).rejects.toThrow('WRONGTYPE');
});
