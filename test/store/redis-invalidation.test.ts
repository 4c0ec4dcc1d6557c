/** What other programs change in Redis is pushed to the gateway, and a push that may be missing is no secret. */
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import type { RecordStore } from '../../src/store/store.ts';
import { awakeMs } from '../support/awake-clock.ts';
import { type RedisServer, type RedisServerOptions, startRedis } from '../support/redis-server.ts';
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
  expect(awakeMs() - startedMs).toBeLessThan(1000);
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
    [KEY_CHANGED, CUSTOMER_CHANGED],
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
  expect(warnings.filter((warning) => !warning.includes('has no records'))).toEqual([
    expect.stringMatching(/^Redis refuses a command, so changes .* are not pushed: NOPERM/),
  ]);

  await redis.command('ACL', 'SETUSER', 'gateway', '+client|tracking');
  await pushed.atLeast(1);
  expect(store.invalidations.connected).toBe(true);
  expect(warnings.filter((warning) => warning.includes('refuses'))).toHaveLength(1);
});
