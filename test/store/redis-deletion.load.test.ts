/** A customer that is deleted leaves no key behind that works and cannot be found, whatever happens on the way. */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { StoreUnavailableError } from '../../src/store/errors.ts';
import type { Store } from '../../src/store/store.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { createKeyWithCustomer, sha256Of } from '../support/stored-key.ts';
import { request } from './contract.ts';
import { openWithPrefix } from './open-with-prefix.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const open = (prefix?: string) => openWithPrefix(redis, prefix);

async function createCustomerWithKeys({ records }: Store, keys: number): Promise<void> {
  await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  await Promise.all(
    Array.from({ length: keys }, (_, i) =>
      createKeyWithCustomer(records, sha256Of(i), { id: `k${i}`, customer: 'acme' }),
    ),
  );
}

async function namesUnder(prefix: string): Promise<string[]> {
  return ((await redis.command('KEYS', `${prefix}:*`)) as string[]).toSorted();
}

test('nothing of a deleted customer is left in Redis', async () => {
  const { store, prefix } = await open();
  await createCustomerWithKeys(store, 3);
  await store.windows.reserve(request());
  await store.keyUses.noteUses([{ keyId: 'k1', usedAtMs: 1 }]);
  expect(await store.records.deleteCustomer('acme')).toBe(3);
  expect(await namesUnder(prefix)).toEqual([`${prefix}:installed`]);
});

test('what a crash left of a deletion is completed by a second attempt', async () => {
  const { store, prefix } = await open();
  await createCustomerWithKeys(store, 3);
  // The record of one key is gone, and its entries are there; of another nothing but the customer's entry is left.
  await redis.command('DEL', `${prefix}:key:${sha256Of(0)}`, `${prefix}:key:${sha256Of(1)}`, `${prefix}:key-id:k1`);
  expect(await store.records.deleteCustomer('acme')).toBe(1);
  expect(await namesUnder(prefix)).toEqual([`${prefix}:installed`]);
});

test('a key that another program gave to another customer stays', async () => {
  const { store, prefix } = await open();
  await createCustomerWithKeys(store, 2);
  await redis.command('HSET', `${prefix}:key:${sha256Of(0)}`, 'customer', 'globex');
  expect(await store.records.deleteCustomer('acme')).toBe(1);
  expect(await store.records.findKeyById('k0')).toEqual({ id: 'k0', customer: 'globex' });
  expect(await store.records.findCustomer('acme')).toBeUndefined();
});

test('a record without a plan, which nobody can read or create, can be deleted', async () => {
  const { store, prefix } = await open();
  await redis.command('HSET', `${prefix}:customer:{acme}`, 'name', 'x');
  expect(await store.records.deleteCustomer('acme')).toBe(0);
  expect(await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false })).toBe('created');
});

test('what is no hash is left alone', async () => {
  const { store, prefix } = await open();
  await redis.command('RPUSH', `${prefix}:customer:{acme}`, 'x');
  await expect(store.records.deleteCustomer('acme')).rejects.toThrow('WRONGTYPE');
  await expect(store.records.updateCustomer('acme', { plan: 'starter' })).rejects.toThrow('WRONGTYPE');
  expect(await redis.command('LRANGE', `${prefix}:customer:{acme}`, 0, -1)).toEqual(['x']);
});

test('a key whose record is damaged does not keep its customer from being deleted', async () => {
  const { store, prefix } = await open();
  await createCustomerWithKeys(store, 2);
  await redis.command('DEL', `${prefix}:key:${sha256Of(0)}`, `${prefix}:key-id:k1`);
  await redis.command('RPUSH', `${prefix}:key:${sha256Of(0)}`, 'x');
  await redis.command('RPUSH', `${prefix}:key-id:k1`, 'x');
  expect(await store.records.deleteCustomer('acme')).toBe(0);
  expect(await store.records.findCustomer('acme')).toBeUndefined();
});

test('a deletion that breaks off leaves every key that works where it can be found, and can be repeated', async () => {
  const { store, prefix } = await open();
  let brokenOff = 0;
  for (let attempt = 0; attempt < 8; attempt += 1) {
    await createCustomerWithKeys(store, 600);
    const deletion = store.records.deleteCustomer('acme').then(
      () => 'done',
      (error: unknown) => error,
    );
    await setTimeout(attempt);
    await redis.disconnect('tollgate-background');
    const outcome = await deletion;
    if (outcome !== 'done') {
      brokenOff += 1;
      expect(outcome).toBeInstanceOf(StoreUnavailableError);
      const left = await namesUnder(`${prefix}:key`);
      await expect.poll(() => store.records.findKeyById('none').catch(() => 'away')).toBeUndefined();
      const check = async (name: string) => {
        const id = String(await redis.command('HGET', name, 'id'));
        expect(await store.records.findKeyById(id)).toMatchObject({ id });
        expect(await redis.command('SISMEMBER', `${prefix}:customer-keys:{acme}`, id)).toBe(1);
      };
      await Promise.all(left.map(check));
      // Keys that are left have their customer still.
      if (left.length > 0) expect(await store.records.findCustomer('acme')).toBeDefined();
    }
    await expect.poll(() => store.records.deleteCustomer('acme').catch(() => 'away')).not.toBe('away');
    expect((await namesUnder(prefix)).filter((name) => !name.startsWith(`${prefix}:key-id:`))).toEqual([
      `${prefix}:installed`,
    ]);
    await store.records.reindex();
    expect(await namesUnder(prefix)).toEqual([`${prefix}:installed`]);
  }
  expect(brokenOff).toBeGreaterThan(0);
});
