/** The indexes of keys that other programs wrote, moved or deleted. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FaultCode } from '../../src/store/record-faults.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { createKeyWithCustomer, sha256Of } from '../support/stored-key.ts';
import { openWithPrefix } from './open-with-prefix.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const open = (prefix?: string) => openWithPrefix(redis, prefix);

const ALL_INDEXED = { passedOver: {}, examples: [] };
const DONE = { entriesAdded: 0, entriesDropped: 0, ...ALL_INDEXED };

function write(prefix: string, number: number, id: string, customer = 'acme'): Promise<unknown> {
  return redis.command('HSET', `${prefix}:key:${sha256Of(number)}`, 'id', id, 'customer', customer);
}

test('keys that other programs wrote can be found by id and by customer afterwards, and revoked', async () => {
  const { store, prefix } = await open();
  await Promise.all(Array.from({ length: 2500 }, (_, i) => write(prefix, i, `k${i}`, `customer-${i % 3}`)));
  expect(await store.records.findKeyById('k7')).toBeUndefined();
  expect(await store.records.reindex()).toEqual({ keys: 2500, entriesAdded: 5000, entriesDropped: 0, ...ALL_INDEXED });
  expect(await store.records.findKeyById('k7')).toEqual({ id: 'k7', customer: 'customer-1' });
  expect((await store.records.listCustomerKeys('customer-1', undefined, 1000)).items).toHaveLength(833);
  expect(await store.records.revokeKey('k7', '2026-01-01T00:00:00Z')).toMatchObject({ id: 'k7' });
  expect(await store.records.reindex()).toEqual({ keys: 2500, ...DONE });
});

test('an entry that was forgotten is added, what is right is left alone', async () => {
  const { store, prefix } = await open();
  await createKeyWithCustomer(store.records, sha256Of(1), { id: 'k1', customer: 'acme' });
  await createKeyWithCustomer(store.records, sha256Of(2), { id: 'k2', customer: 'acme' });
  await redis.command('SREM', `${prefix}:customer-keys:{acme}`, 'k1');
  await redis.command('DEL', `${prefix}:key-id:k2`);
  expect(await store.records.reindex()).toEqual({ keys: 2, entriesAdded: 2, entriesDropped: 0, ...ALL_INDEXED });
  expect((await store.records.listCustomerKeys('acme', undefined, 1000)).items.map(({ id }) => id).toSorted()).toEqual([
    'k1',
    'k2',
  ]);
});

test('what leads nowhere is dropped: entries by id and by customer, and last uses', async () => {
  const { store, prefix } = await open();
  await createKeyWithCustomer(store.records, sha256Of(1), { id: 'gone', customer: 'acme' });
  await createKeyWithCustomer(store.records, sha256Of(2), { id: 'stays', customer: 'acme' });
  await store.keyUses.noteUses([
    { keyId: 'gone', usedAtMs: 1 },
    { keyId: 'stays', usedAtMs: 2 },
  ]);
  await redis.command('DEL', `${prefix}:key:${sha256Of(1)}`);
  expect(await store.records.reindex()).toEqual({ keys: 1, entriesAdded: 0, entriesDropped: 3, ...ALL_INDEXED });
  expect(await redis.command('EXISTS', `${prefix}:key-id:gone`)).toBe(0);
  expect(await redis.command('SMEMBERS', `${prefix}:customer-keys:{acme}`)).toEqual(['stays']);
  expect(await store.keyUses.lastUses(['gone', 'stays'])).toEqual([undefined, 2]);
  expect(await store.records.reindex()).toEqual({ keys: 1, ...DONE });
});

test('the indexes of former versions are deleted, with the hashes of deleted keys that they kept', async () => {
  const { store, prefix } = await open();
  const script = "for i = 1, 2500 do redis.call('ZADD', KEYS[1], 0, 'tacme' .. i) end";
  await redis.command('EVAL', script, 1, `${prefix}:customer-index`);
  await redis.command('ZADD', `${prefix}:key-index`, 0, `2026-01-01T00:00:00.000Z\0${sha256Of(1)}`);
  expect(await store.records.reindex()).toEqual({ keys: 0, ...DONE });
  expect(await redis.command('EXISTS', `${prefix}:customer-index`, `${prefix}:key-index`)).toBe(0);
  await redis.command('SET', `${prefix}:customer-index`, 'of another program');
  expect(await store.records.reindex()).toEqual({ keys: 0, ...DONE });
});

test('a last use of a key that only the record knows is kept', async () => {
  const { store, prefix } = await open();
  await write(prefix, 1, 'k1');
  await store.keyUses.noteUses([{ keyId: 'k1', usedAtMs: 5 }]);
  await store.records.reindex();
  expect(await store.keyUses.lastUses(['k1'])).toEqual([5]);
});

test('a key that moved to another customer, got another id or was written anew is found where it is now', async () => {
  const { store, prefix } = await open();
  for (const number of [1, 2, 3]) {
    await createKeyWithCustomer(store.records, sha256Of(number), { id: `k${number}`, customer: 'acme' });
  }
  await redis.command('HSET', `${prefix}:key:${sha256Of(1)}`, 'customer', 'globex');
  await redis.command('HSET', `${prefix}:key:${sha256Of(2)}`, 'id', 'renamed');
  await redis.command('RENAME', `${prefix}:key:${sha256Of(3)}`, `${prefix}:key:${sha256Of(4)}`);
  // Added: k1 to globex, two for `renamed`, k3 led elsewhere. Dropped: k1 of acme, two of k2.
  expect(await store.records.reindex()).toEqual({ keys: 3, entriesAdded: 4, entriesDropped: 3, ...ALL_INDEXED });
  expect((await store.records.listCustomerKeys('globex', undefined, 1000)).items).toEqual([
    { id: 'k1', customer: 'globex' },
  ]);
  expect((await store.records.listCustomerKeys('acme', undefined, 1000)).items.map(({ id }) => id).toSorted()).toEqual([
    'k3',
    'renamed',
  ]);
  expect(await store.records.findKeyById('k2')).toBeUndefined();
  expect(await store.records.findKeyById('k3')).toEqual({ id: 'k3', customer: 'acme' });
});

test('an id stays with the key that has it, and a second key with it is named', async () => {
  const { store, prefix } = await open();
  await createKeyWithCustomer(store.records, sha256Of(1), { id: 'k1', customer: 'acme' });
  await write(prefix, 2, 'k1', 'globex');
  expect(await store.records.reindex()).toEqual({
    keys: 1,
    entriesAdded: 0,
    entriesDropped: 0,
    passedOver: { duplicate_id: 1 },
    examples: [
      {
        record: `${prefix}:key:${'0'.repeat(12)}…`,
        fault: { code: 'duplicate_id', text: expect.stringContaining(`the same id as ${prefix}:key:`) },
      },
    ],
  });
  expect(await store.records.findKeyById('k1')).toEqual({ id: 'k1', customer: 'acme' });
  expect((await store.records.listCustomerKeys('globex', undefined, 1000)).items).toEqual([]);
});

test.each<[string, (prefix: string) => Promise<unknown>, FaultCode, string?]>([
  ['without an id', (p) => redis.command('HSET', `${p}:key:${sha256Of(1)}`, 'customer', 'acme'), 'no_id'],
  ['with other fields only', (p) => redis.command('HSET', `${p}:key:${sha256Of(1)}`, 'Id', 'k'), 'no_id'],
  ['without a customer', (p) => redis.command('HSET', `${p}:key:${sha256Of(1)}`, 'id', 'k'), 'no_customer'],
  ['that is a list', (p) => redis.command('RPUSH', `${p}:key:${sha256Of(1)}`, 'x'), 'wrong_type'],
  [
    'under the key itself',
    (p) => redis.command('HSET', `${p}:key:tg_secret-of-acme`, 'id', 'k', 'customer', 'acme'),
    'bad_name',
    'tg_s',
  ],
  [
    'whose entry would stand where something else is',
    async (p) => {
      await redis.command('RPUSH', `${p}:key-id:k`, 'x');
      await write(p, 1, 'k');
    },
    'damaged_index',
  ],
  [
    'whose customer cannot have a set',
    async (p) => {
      await redis.command('SET', `${p}:customer-keys:{globex}`, 'x');
      await write(p, 1, 'k', 'globex');
    },
    'damaged_index',
  ],
])('a record %s is named by the beginning of its name, and the others are indexed', async (...row) => {
  const [, damage, code, shown = '0'.repeat(12)] = row;
  const { store, prefix } = await open();
  await damage(prefix);
  await write(prefix, 9, 'good');
  expect(await store.records.reindex()).toMatchObject({
    keys: 1,
    passedOver: { [code]: 1 },
    examples: [{ record: `${prefix}:key:${shown}…`, fault: { code } }],
  });
  expect(await store.records.findKeyById('good')).toEqual({ id: 'good', customer: 'acme' });
});

test('all are counted, and ten are named', async () => {
  const { store, prefix } = await open();
  for (let i = 0; i < 15; i += 1) await redis.command('HSET', `${prefix}:key:${sha256Of(i)}`, 'id', 'k');
  const { passedOver, examples } = await store.records.reindex();
  expect(passedOver).toEqual({ no_customer: 15 });
  expect(examples).toHaveLength(10);
});

test('keys that are created and deleted meanwhile are indexed as they must be, however the steps fall', async () => {
  const { store, prefix } = await open();
  const { store: other } = await open(prefix);
  let creating = true;
  const reindexing = (async () => {
    let runs = 0;
    for (; creating; runs += 1) await other.records.reindex();
    return runs;
  })();
  for (let i = 0; i < 240; i += 1) {
    await createKeyWithCustomer(store.records, sha256Of(i), { id: `k${i}`, customer: `customer-${i % 2}` });
    // Finds nothing while a reindex that began before the key existed has its entry deleted, and not yet restored.
    const isStored = async () => (await redis.command('EXISTS', `${prefix}:key:${sha256Of(i)}`)) === 1;
    while (i % 3 === 0 && (await isStored())) await store.records.discardKey(`k${i}`);
  }
  creating = false;
  expect(await reindexing).toBeGreaterThan(1);
  for (let i = 0; i < 240; i += 1) {
    const expected = i % 3 === 0 ? undefined : { id: `k${i}`, customer: `customer-${i % 2}` };
    expect(await store.records.findKeyById(`k${i}`)).toEqual(expected);
  }
  expect((await store.records.listCustomerKeys('customer-0', undefined, 1000)).items).toHaveLength(80);
  // An entry may have been restored while its key was deleted: that one is dropped now, and none is missing.
  expect(await store.records.reindex()).toMatchObject({ keys: 160, entriesAdded: 0, ...ALL_INDEXED });
  expect(await store.records.reindex()).toEqual({ keys: 160, ...DONE });
});
