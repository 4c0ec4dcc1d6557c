/** What other programs change in Redis is pushed to the gateway, and a push that may be missing is no secret. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { RecordCache } from '../../src/customers/keys/record-cache.ts';
import type { RecordStore } from '../../src/store/records.ts';
import { RedisConnection } from '../../src/store/redis/connection/connection.ts';
import { InvalidationPush } from '../../src/store/redis/connection/invalidation-push.ts';
import { redisKeyNames } from '../../src/store/redis/protocol/key-names.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { awakeMs } from '../support/awake-clock.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { type RedisServer, type RedisServerOptions, startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';
import { createKeyWithCustomer } from '../support/stored-key.ts';
import { RecordingObserver } from './contract.ts';
import { RecordedInvalidations } from './recorded-invalidations.ts';

const SHA256 = 'a'.repeat(64);
const OTHER_SHA256 = 'b'.repeat(64);
const KEY = `test:key:${SHA256}`;
const CUSTOMER = 'test:customer:{acme}';
const KEY_CHANGED = { kind: 'key', sha256: SHA256 };
const CUSTOMER_CHANGED = { kind: 'customer', id: 'acme' };

async function start(options?: RedisServerOptions): Promise<RedisServer> {
  const redis = await startRedis(options);
  onTestFinished(() => redis.stop());
  return redis;
}

async function open(url: string) {
  const observer = new RecordingObserver();
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const store = await openRedisStore({ url, keyPrefix: 'test', timeoutMs: 2000, clock: systemClock, observer, warn });
  onTestFinished(() => store.close());
  return { store, warnings, pushed: new RecordedInvalidations(store.invalidations) };
}

test('a record that another program changes is pushed within 100 ms', async () => {
  const redis = await start();
  await redis.command('HSET', KEY, 'id', 'k1', 'customer', 'acme');
  await redis.command('HSET', CUSTOMER, 'plan', 'starter');
  const { store, pushed } = await open(redis.url);
  await store.records.findKey(SHA256);
  await store.records.findCustomer('acme');

  const startedMs = awakeMs();
  await redis.command('HSET', KEY, 'revoked_at', '2026-01-01T00:00:00Z');
  await redis.command('HSET', CUSTOMER, 'suspended', '1');
  expect(await pushed.atLeast(2)).toEqual([
    { kind: 'key', sha256: SHA256 },
    { kind: 'customer', id: 'acme' },
  ]);
  // It takes a millisecond; the rest is for a busy machine.
  expect(awakeMs() - startedMs).toBeLessThan(5000);
});

test('a record that another program deletes is pushed', async () => {
  const redis = await start();
  await redis.command('HSET', KEY, 'id', 'k1', 'customer', 'acme');
  const { pushed } = await open(redis.url);
  await redis.command('DEL', KEY);
  expect(await pushed.atLeast(1)).toEqual([{ kind: 'key', sha256: SHA256 }]);
});

test('a missing record that another program creates is pushed', async () => {
  const redis = await start();
  const { pushed } = await open(redis.url);
  await redis.command('HSET', KEY, 'id', 'k1', 'customer', 'acme');
  await redis.command('HSET', CUSTOMER, 'plan', 'starter');
  expect(await pushed.atLeast(2)).toEqual([
    { kind: 'key', sha256: SHA256 },
    { kind: 'customer', id: 'acme' },
  ]);
});

test('a write of one gateway is pushed to another', async () => {
  const redis = await start();
  const { store } = await open(redis.url);
  await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  const { pushed } = await open(redis.url);
  await store.records.createKey(SHA256, { id: 'k1', customer: 'acme' });
  expect(await pushed.atLeast(1)).toEqual([{ kind: 'key', sha256: SHA256 }]);
});

test.each<[string, (records: RecordStore) => Promise<unknown>, object[]]>([
  ['a change of a customer', (records) => records.updateCustomer('acme', { suspended: true }), [CUSTOMER_CHANGED]],
  ['a change of a key', (records) => records.updateKey('k1', { expiresAt: '2027-01-01T00:00:00Z' }), [KEY_CHANGED]],
  [
    'the replacement of a key',
    (records) => records.retireKey('k1', {}, { replacedBy: 'k2', expiresAt: '2027-01-01T00:00:00Z' }),
    [KEY_CHANGED],
  ],
  ['a key that is taken away', (records) => records.discardKey('k1'), [KEY_CHANGED]],
  [
    'the deletion of a customer, with its keys',
    (records) => records.deleteCustomer('acme'),
    [KEY_CHANGED, CUSTOMER_CHANGED, CUSTOMER_CHANGED],
  ],
])('%s by one gateway is pushed to another', async (_what, change, expected) => {
  const redis = await start();
  const { store } = await open(redis.url);
  const { pushed } = await open(redis.url);
  await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  await createKeyWithCustomer(store.records, SHA256, { id: 'k1', customer: 'acme' });
  expect(await pushed.atLeast(2)).toEqual([CUSTOMER_CHANGED, KEY_CHANGED]);
  await change(store.records);
  expect((await pushed.atLeast(2 + expected.length)).slice(2)).toEqual(expected);
});

test('when everything is deleted, everything may have changed', async () => {
  const redis = await start();
  const { store, pushed } = await open(redis.url);
  for (const [index, command] of ['FLUSHALL', 'FLUSHDB'].entries()) {
    await redis.command(command);
    expect((await pushed.atLeast(index + 1)).at(-1)).toEqual({ kind: 'all' });
  }
  expect(store.invalidations.connected).toBe(true);
});

test.each(['tollgate-records', 'tollgate-push'])(
  'when the connection %s is lost, everything may have changed, and again once changes are pushed anew',
  async (name) => {
    const redis = await start();
    const { store, pushed } = await open(redis.url);
    expect(store.status().invalidation).toBe('connected');

    expect(await redis.disconnect(name)).toBe(1);
    expect(await pushed.atLeast(1)).toEqual([{ kind: 'all' }]);
    expect(store.invalidations.connected).toBe(false);
    expect(store.status().invalidation).toBe('disconnected');

    expect(await pushed.atLeast(2)).toEqual([{ kind: 'all' }, { kind: 'all' }]);
    expect(store.invalidations.connected).toBe(true);
    expect(store.status()).toMatchObject({ up: true, invalidation: 'connected' });

    await redis.command('HSET', `test:key:${OTHER_SHA256}`, 'id', 'k2', 'customer', 'acme');
    expect((await pushed.atLeast(3)).slice(2)).toEqual([{ kind: 'key', sha256: OTHER_SHA256 }]);
  },
);

test('changes are pushed again after Redis was restarted', async () => {
  const redis = await start();
  const { store, pushed } = await open(redis.url);
  await redis.restart();
  expect(await pushed.atLeast(2)).toEqual([{ kind: 'all' }, { kind: 'all' }]);
  await store.records.findCustomer('acme').catch(() => undefined);
  await redis.command('HSET', CUSTOMER, 'plan', 'starter');
  expect((await pushed.atLeast(3)).slice(2)).toEqual([{ kind: 'customer', id: 'acme' }]);
});

test('a Redis that refuses to push is used without it, says so once, and pushes when it is allowed to', async () => {
  const redis = await start();
  await redis.command('ACL', 'SETUSER', 'gateway', 'on', '>secret', '~*', '&*', '+@all', '-client|tracking');
  const { store, warnings, pushed } = await open(redis.url.replace('//', '//gateway:secret@'));
  expect(store.status()).toMatchObject({ up: true, invalidation: 'disconnected' });
  expect(await store.records.findCustomer('acme')).toBeUndefined();
  expect(warnings.filter((warning) => !warning.includes('has no customers yet'))).toEqual([
    expect.stringMatching(/^Redis refuses a command, so changes .* are not pushed: NOPERM/),
  ]);

  await redis.command('ACL', 'SETUSER', 'gateway', '+client|tracking');
  await pushed.atLeast(1);
  expect(store.invalidations.connected).toBe(true);
  expect(warnings.filter((warning) => warning.includes('refuses'))).toHaveLength(1);
});

describe('the push', () => {
  const HEARTBEAT_MS = 50;

  async function connect(url: string, { pushPort = Number(new URL(url).port), timeoutMs = 500 } = {}) {
    const common = {
      server: { host: '127.0.0.1', port: Number(new URL(url).port) },
      socketTimeoutMs: 2 * timeoutMs,
      commandTimeoutMs: timeoutMs,
      heartbeatMs: HEARTBEAT_MS,
      clock: systemClock,
      observer: silent.observer,
      onChange: () => startTasks(),
    };
    let push: InvalidationPush | undefined;
    const startTasks = () => {
      for (const task of push?.tasks ?? []) task.startIfDue();
    };
    const records = new RedisConnection({ ...common, name: 'records' });
    const server = { ...common.server, port: pushPort };
    const subscriber = new RedisConnection({ ...common, server, name: 'subscriber' });
    const pushes: string[] = [];
    push = new InvalidationPush({
      records,
      subscriber,
      names: redisKeyNames('test'),
      clock: systemClock,
      heartbeatMs: HEARTBEAT_MS,
      onPush: ({ kind }) => void pushes.push(kind),
      onFailure: () => undefined,
    });
    onTestFinished(async () => {
      for (const task of push?.tasks ?? []) task.close();
      await Promise.all([records.close(), subscriber.close()]);
    });
    await Promise.all([records.open(), subscriber.open()]);
    startTasks();
    await Promise.all(push.tasks.map((task) => task.whenIdle()));
    return { push, records, pushes };
  }

  const provenAfter = ({ provenAtMs }: InvalidationPush, ms: number) => provenAtMs > ms;

  test('is proven again and again', async () => {
    const redis = await start();
    const { push } = await connect(redis.url);
    for (let proof = 0; proof < 3; proof++) {
      const nowMs = systemClock.monotonicMs();
      await expect.poll(() => provenAfter(push, nowMs), { interval: 5 }).toBe(true);
    }
  });

  test('proves nothing once Redis has ceased to track, and is armed again', async () => {
    const redis = await start();
    const { push, records, pushes } = await connect(redis.url);
    await expect.poll(() => push.provenAtMs, { interval: 5 }).toBeGreaterThan(0);
    const { length } = pushes;
    const offAtMs = systemClock.monotonicMs();
    await records.client.client('TRACKING', 'OFF');
    // What was changed meanwhile was not pushed, so anything may have changed.
    await expect.poll(() => pushes.slice(length), { interval: 5 }).toContain('all');
    await expect.poll(() => provenAfter(push, offAtMs), { interval: 5 }).toBe(true);
    await redis.command('HSET', KEY, 'id', 'k1');
    await expect.poll(() => pushes.at(-1), { interval: 5 }).toBe('key');
  });

  test('proves nothing while its connection is silent', async () => {
    const redis = await start();
    const { push } = await connect(redis.url);
    await expect.poll(() => push.provenAtMs, { interval: 5 }).toBeGreaterThan(0);
    redis.pause();
    const pausedAtMs = systemClock.monotonicMs();
    await expect.poll(() => push.connected, { interval: 5 }).toBe(false);
    expect(provenAfter(push, pausedAtMs)).toBe(false);
    redis.resume();
    await expect.poll(() => provenAfter(push, pausedAtMs), { interval: 5 }).toBe(true);
  });

  test('that is lost in silence keeps no record in memory beyond the cache time and a heartbeat', async () => {
    const redis = await start();
    const proxy = await startFaultProxy(redis);
    await redis.command('HSET', CUSTOMER, 'plan', 'starter');
    // No deadline of the connection helps.
    const { push, records } = await connect(redis.url, { pushPort: proxy.port, timeoutMs: 60_000 });
    const cacheMs = 1000;
    const cache = new RecordCache<{ plan: string | null }>({
      read: async () => ({ plan: await records.client.hget(CUSTOMER, 'plan') }),
      unchanged: (cached, read) => cached.plan === read.plan,
      clock: systemClock,
      provenAtMs: () => push.provenAtMs,
      cacheMs,
      staleIfErrorMs: 60_000,
      entries: 10,
    });
    const plan = async () => (await cache.get('acme'))?.plan;
    await plan();
    const readAtMs = systemClock.monotonicMs();
    // Served long after the cache time, without being read again.
    await expect.poll(() => provenAfter(push, readAtMs + 2 * cacheMs), { interval: 5 }).toBe(true);
    expect(cache.get('acme')).toEqual({ plan: 'starter' });

    proxy.stall();
    const lostAtMs = awakeMs();
    await redis.command('HSET', CUSTOMER, 'plan', 'business');
    await expect.poll(plan, { interval: 5 }).toBe('business');
    expect(push.connected).toBe(true);
    // The rest is for a busy machine.
    expect(awakeMs() - lostAtMs).toBeLessThan(cacheMs + HEARTBEAT_MS + 5000);
    proxy.resume();
  });
});
