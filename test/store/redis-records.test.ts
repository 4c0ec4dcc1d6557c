/** Records that other programs wrote, or damaged, or left half-written. */
import { inspect } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NotRunError, StoreUnavailableError } from '../../src/store/errors.ts';
import { hourly } from '../../src/store/windows.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { createKeyWithCustomer } from '../support/stored-key.ts';
import { charged, refundOf, request } from './contract.ts';
import { openWithPrefix } from './open-with-prefix.ts';

const SHA256 = 'a'.repeat(64);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const open = () => openWithPrefix(redis);

test('records lie under the public names, with the public fields', async () => {
  const { store, prefix } = await open();
  await store.records.createCustomer({ id: 'acme', plan: 'custom', requestsPerHour: 5, suspended: true });
  await createKeyWithCustomer(store.records, SHA256, { id: 'k1', customer: 'acme', expiresAt: '2027-01-01T00:00:00Z' });
  await store.windows.reserve(request());

  const keys = (await redis.command('KEYS', `${prefix}:*`)) as string[];
  expect(keys.toSorted()).toEqual([
    `${prefix}:customer-keys:{acme}`,
    `${prefix}:customer:{acme}`,
    `${prefix}:grants:{acme}`,
    `${prefix}:installed`,
    `${prefix}:key-id:k1`,
    `${prefix}:key:${SHA256}`,
    `${prefix}:window:{acme}`,
  ]);
  expect(await redis.command('HGETALL', `${prefix}:customer:{acme}`)).toEqual([
    'plan',
    'custom',
    'requests_per_hour',
    '5',
    'suspended',
    '1',
  ]);
  expect(await redis.command('HGETALL', `${prefix}:key:${SHA256}`)).toEqual([
    'id',
    'k1',
    'customer',
    'acme',
    'expires_at',
    '2027-01-01T00:00:00Z',
  ]);
  expect(await redis.command('GET', `${prefix}:key-id:k1`)).toBe(SHA256);
  expect(await redis.command('SMEMBERS', `${prefix}:customer-keys:{acme}`)).toEqual(['k1']);
});

test('a window ends by itself after its last bucket was dropped', async () => {
  const { store, prefix } = await open();
  const [{ waitMs }] = (await store.windows.reserve(request())).counts;
  const ttlMs = Number(await redis.command('PTTL', `${prefix}:window:{acme}`));
  expect(ttlMs).toBeGreaterThan(waitMs);
  expect(ttlMs).toBeLessThan(waitMs + 40_000);
});

test.each([
  ['1000', 1000],
  ['0', 'invalid'],
  ['-5', 'invalid'],
  ['1.5', 'invalid'],
  ['1e3', 'invalid'],
  [' 7', 'invalid'],
  ['many', 'invalid'],
  ['9007199254740993', 'invalid'],
])('a limit written as %j is read as %j', async (written, read) => {
  const { store, prefix } = await open();
  await redis.command('HSET', `${prefix}:customer:{acme}`, 'plan', 'custom', 'requests_per_hour', written);
  expect(await store.records.findCustomer('acme')).toMatchObject({ requestsPerHour: read });
});

test.each([
  ['1', true],
  ['0', false],
  ['', false],
  ['false', false],
  ['true', true],
  ['yes', true],
  ['2026-01-01T00:00:00Z', true],
])('suspended written as %j is read as %j', async (written, read) => {
  const { store, prefix } = await open();
  await redis.command('HSET', `${prefix}:customer:{acme}`, 'plan', 'starter', 'suspended', written);
  expect(await store.records.findCustomer('acme')).toEqual({ id: 'acme', plan: 'starter', suspended: read });
});

test('an empty field is an unset field', async () => {
  const { store, prefix } = await open();
  const unset = ['name', '', 'prefix', '', 'created_at', '', 'expires_at', '', 'revoked_at', ''];
  await redis.command('HSET', `${prefix}:key:${SHA256}`, 'id', 'k1', 'customer', 'acme', ...unset);
  expect(await store.records.findKey(SHA256)).toEqual({ id: 'k1', customer: 'acme' });
  await redis.command('HSET', `${prefix}:customer:{acme}`, 'plan', 'starter', 'requests_per_hour', '', 'name', '');
  expect(await store.records.findCustomer('acme')).toEqual({ id: 'acme', plan: 'starter', suspended: false });
});

test.each([
  ['an id', ['customer', 'acme']],
  ['a customer', ['id', 'k1']],
  ['a customer that is not empty', ['id', 'k1', 'customer', '']],
])('a key record without %s is no key', async (_what, fields) => {
  const { store, prefix } = await open();
  await redis.command('HSET', `${prefix}:key:${SHA256}`, ...fields);
  expect(await store.records.findKey(SHA256)).toBeUndefined();
});

test('a customer record without a plan is no customer, and is not overwritten', async () => {
  const { store, prefix } = await open();
  await redis.command('HSET', `${prefix}:customer:{acme}`, 'suspended', '1');
  expect(await store.records.findCustomer('acme')).toBeUndefined();
  expect(await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false })).toBe('exists');
});

test('what is unset by a change is gone from the hash, and the rest of it is left alone', async () => {
  const { store, prefix } = await open();
  const customer = `${prefix}:customer:{acme}`;
  await redis.command('HSET', customer, 'plan', 'a', 'name', 'x', 'requests_per_hour', '5', 'note', 'of a dashboard');
  await store.records.updateCustomer('acme', { name: null, requestsPerHour: null, suspended: true });
  expect(await redis.command('HGETALL', customer)).toEqual(['plan', 'a', 'note', 'of a dashboard', 'suspended', '1']);
  await store.records.updateCustomer('acme', { suspended: false });
  expect(await redis.command('HEXISTS', customer, 'suspended')).toBe(0);

  await createKeyWithCustomer(store.records, SHA256, { id: 'k1', customer: 'acme', name: 'x' });
  await store.records.retireKey('k1', {}, { replacedBy: 'k2', expiresAt: '2027-01-01T00:00:00Z' });
  await store.records.updateKey('k1', { name: null });
  const fields = ['id', 'k1', 'customer', 'acme', 'replaced_by', 'k2', 'expires_at', '2027-01-01T00:00:00Z'];
  expect(await redis.command('HGETALL', `${prefix}:key:${SHA256}`)).toEqual(fields);
});

test('a key whose fields are there and empty is neither revoked nor replaced, and has no expiry', async () => {
  const { store, prefix } = await open();
  await createKeyWithCustomer(store.records, SHA256, { id: 'k1', customer: 'acme' });
  const unset = ['revoked_at', '', 'replaced_by', '', 'expires_at', ''];
  await redis.command('HSET', `${prefix}:key:${SHA256}`, ...unset);
  const replacement = { replacedBy: 'k2', expiresAt: '2027-01-01T00:00:00Z' };
  const record = { id: 'k1', customer: 'acme', ...replacement };
  expect(await store.records.retireKey('k1', {}, replacement)).toEqual(record);
});

test('a change by an index entry that leads to a key of another id changes nothing', async () => {
  const { store, prefix } = await open();
  await createKeyWithCustomer(store.records, SHA256, { id: 'k1', customer: 'acme' });
  await redis.command('SET', `${prefix}:key-id:k2`, SHA256);
  expect(await store.records.updateKey('k2', { name: 'x' })).toBeUndefined();
  expect(
    await store.records.retireKey('k2', {}, { replacedBy: 'k3', expiresAt: '2027-01-01T00:00:00Z' }),
  ).toBeUndefined();
  await store.records.discardKey('k2');
  expect(await store.records.findKey(SHA256)).toEqual({ id: 'k1', customer: 'acme' });
});

test('a customer record without a plan is not changed: no field of it makes it one', async () => {
  const { store, prefix } = await open();
  await redis.command('HSET', `${prefix}:customer:{acme}`, 'name', 'x', 'plan', '');
  expect(await store.records.updateCustomer('acme', { plan: 'starter', suspended: true })).toBeUndefined();
  expect(await redis.command('HGETALL', `${prefix}:customer:{acme}`)).toEqual(['name', 'x', 'plan', '']);
});

test('a key that was revoked with an empty time is revoked now', async () => {
  const { store, prefix } = await open();
  await createKeyWithCustomer(store.records, SHA256, { id: 'k1', customer: 'acme' });
  await redis.command('HSET', `${prefix}:key:${SHA256}`, 'revoked_at', '');
  const revokedAt = '2026-05-06T07:08:09Z';
  expect(await store.records.revokeKey('k1', revokedAt)).toEqual({ id: 'k1', customer: 'acme', revokedAt });
});

test('an index entry that leads nowhere, or to a key of another id, finds nothing and revokes nothing', async () => {
  const { store, prefix } = await open();
  await redis.command('SET', `${prefix}:key-id:gone`, SHA256);
  expect(await store.records.findKeyById('gone')).toBeUndefined();
  expect(await store.records.revokeKey('gone', '2026-01-01T00:00:00Z')).toBeUndefined();
  expect(await store.records.findKey(SHA256)).toBeUndefined();

  await redis.command('HSET', `${prefix}:key:${SHA256}`, 'id', 'k1', 'customer', 'acme');
  expect(await store.records.findKeyById('gone')).toBeUndefined();
  expect(await store.records.revokeKey('gone', '2026-01-01T00:00:00Z')).toBeUndefined();
  expect(await store.records.findKey(SHA256)).toEqual({ id: 'k1', customer: 'acme' });
});

test('a second attempt completes what a crash between two writes left', async () => {
  const { store, prefix } = await open();
  await redis.command('SET', `${prefix}:key-id:k1`, SHA256);
  expect(await createKeyWithCustomer(store.records, SHA256, { id: 'k1', customer: 'acme' })).toBe('created');
  expect(await store.records.findKeyById('k1')).toEqual({ id: 'k1', customer: 'acme' });
  expect(await redis.command('SMEMBERS', `${prefix}:customer-keys:{acme}`)).toEqual(['k1']);
});

test('a refused key leaves no index entries of its own', async () => {
  const { store, prefix } = await open();
  await createKeyWithCustomer(store.records, SHA256, { id: 'k1', customer: 'acme' });
  await createKeyWithCustomer(store.records, SHA256, { id: 'k2', customer: 'globex' });
  expect(await redis.command('EXISTS', `${prefix}:key-id:k2`, `${prefix}:customer-keys:{globex}`)).toBe(0);
});

test('a Redis key of a wrong type is a failure and never an unknown key', async () => {
  const { store, prefix, observer } = await open();
  const names = [
    `key:${SHA256}`,
    'customer:{acme}',
    'key-id:k1',
    'customer-keys:{acme}',
    'window:{acme}',
    'key-uses',
    'audit',
  ];
  for (const name of names) await redis.command('RPUSH', `${prefix}:${name}`, 'x');
  const calls = [
    () => store.records.findKey(SHA256),
    () => store.records.findCustomer('acme'),
    () => store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false }),
    () => store.records.findKeyById('k1'),
    () => store.records.revokeKey('k1', '2026-01-01T00:00:00Z'),
    () => store.records.resetUsage('acme', '2026-01-01T00:00:00Z'),
    () => store.records.updateCustomer('acme', { plan: 'starter' }),
    () => store.records.deleteCustomer('acme'),
    () => store.records.updateKey('k1', { name: 'x' }),
    () => store.records.retireKey('k1', {}, { replacedBy: 'k2', expiresAt: '2026-01-01T00:00:00Z' }),
    () => store.records.listCustomerKeys('acme', undefined, 1000),
    () => store.keyUses.noteUses([{ keyId: 'k1', usedAtMs: 1 }]),
    () => store.keyUses.lastUses(['k1']),
    () => store.audit.append({ at: '2026-01-01T00:00:00Z', actor: 'token', from: '::1', action: 'x' }),
    () => store.audit.list(undefined, 10),
    () => store.windows.charge('acme', []),
    () => store.windows.reserve(request()),
  ];
  for (const call of calls) {
    const error: unknown = await call().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(String(error)).toContain('WRONGTYPE');
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(prefix);
  }
  expect(observer.calls.filter(({ failed }) => failed)).toHaveLength(calls.length);
  expect(store.status()).toMatchObject({ up: true, lastError: expect.stringContaining('WRONGTYPE') });
});

test('grants of a wrong type are a failure, and are replaced by a reset of usage', async () => {
  const { store, prefix } = await open();
  await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  await redis.command('SET', `${prefix}:grants:{acme}`, 'garbage');
  await expect(store.windows.reserve(request())).rejects.toThrow('WRONGTYPE');
  expect(await redis.command('EXISTS', `${prefix}:window:{acme}`)).toBe(0);
  await store.records.resetUsage('acme', '2026-01-01T00:00:00Z');
  expect(await store.windows.reserve(request())).toMatchObject({ granted: 1 });
});

test.each([
  ['garbage', 'garbage'],
  ['numbers of another form', '5 x 1 1 e'],
])('a grant that is %s is never refunded', async (_what, note) => {
  const { store, prefix } = await open();
  await store.windows.reserve(request({ need: 5 }));
  await redis.command('HSET', `${prefix}:grants:{acme}`, 'damaged', note);
  expect(await store.windows.refund('acme', [{ grant: 'damaged', units: 5, isFinal: true }])).toBe(0);
  expect(await store.windows.reserve(request({ grant: 'damaged', need: 5 }))).toMatchObject({ granted: 0 });
});

test.each([
  ['of a wrong type', 'WRONGTYPE'],
  ['no number', 'not one of Tollgate'],
])('a period that is %s fails, leaves the window as it is, and begins again by its reset', async (what, reason) => {
  const { store, prefix } = await open();
  const limit = { policy: 'daily', amount: 9, beyond: 'refuse', anchorMs: 0, plan: 'starter' } as const;
  const asked = () => request({ limits: [...hourly(9), limit] });
  const first = asked();
  const { counts } = await store.windows.reserve(first);
  const counter = `d${counts[1]?.period?.startHour}`;
  const name = `${prefix}:period:{acme}`;
  const fields = await redis.command('HGETALL', `${prefix}:window:{acme}`);
  if (what === 'no number') await redis.command('HSET', name, counter, 'x');
  else await redis.command('SET', name, 'garbage');
  await expect(store.windows.reserve(asked())).rejects.toThrow(reason);
  await expect(store.windows.charge('acme', [charged(0, 1)], limit)).rejects.toThrow(reason);
  expect(await redis.command('HGETALL', `${prefix}:window:{acme}`)).toEqual(fields);
  // What the window alone decides goes on, and refunds with it.
  expect(await store.windows.refund('acme', [refundOf(first, 1)])).toBe(1);
  await store.records.resetPeriod('acme', '2026-01-01T00:00:00Z', limit);
  expect(await store.windows.reserve(asked())).toMatchObject({ granted: 1, counts: [{ used: 1 }, { used: 1 }] });
});

test('a window whose head is damaged is a failure, and is left as it is', async () => {
  const { store, prefix } = await open();
  await redis.command('HSET', `${prefix}:window:{acme}`, 'head', 'garbage');
  const refunds = [{ grant: 'a', units: 1, isFinal: true }];
  await expect(store.windows.reserve(request())).rejects.toThrow('the head of this window is not one of Tollgate');
  await expect(store.windows.refund('acme', refunds)).rejects.toThrow('the head of this window');
  const charging = store.windows.charge('acme', []);
  await expect(charging).rejects.toThrow('the head of this window');
  await expect(charging).rejects.toBeInstanceOf(NotRunError);
  expect(await redis.command('HGETALL', `${prefix}:window:{acme}`)).toEqual(['head', 'garbage']);
});
