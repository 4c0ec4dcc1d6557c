/**
 * A customer that was deleted and created again under its id was refused for up to 28 s, with no usage: gateways remembered
 * the refusal of its predecessor. A deletion that failed halfway (503) was "not found" when it was repeated: it was not in
 * the audit log, and the usage history stayed. A key id whose record another program had deleted could never be used again,
 * and a use that was written after the deletion of its key stayed in the store.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import { openWithPrefix } from '../store/open-with-prefix.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { STORES } from '../support/gateway.ts';
import { startRedis } from '../support/redis-server.ts';
import { startRedisSystem } from '../support/redis-system.ts';
import { startSystem } from '../support/system.ts';

const ACME_FIELDS = { plan: 'enterprise', requests_per_hour: 2 };
const ACME = { id: 'acme', ...ACME_FIELDS };
const REFUSALS = ['200', '200', '429'];

async function startRedisForTest() {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  return redis;
}

describe.each(STORES)('with $name', (store) => {
  test('a customer that is created again is not refused for what its predecessor used', async () => {
    const { gateway, key } = await startSystem({ store, customer: ACME });
    const statuses = async (key: string) => {
      const all: string[] = [];
      for (const _ of REFUSALS)
        all.push(String((await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status));
      return all;
    };
    expect(await statuses(key)).toEqual(REFUSALS);
    expect((await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'DELETE' })).status).toBe(204);
    expect(await statuses(await createCustomerWithKey(gateway, ACME))).toEqual(REFUSALS);
  });
});

test('nor by another gateway', async () => {
  const { gateways, gateway, key } = await startRedisSystem({ gateways: 2, customer: ACME_FIELDS });
  const statusesOf = (key: string) =>
    Promise.all(
      gateways.map(async (each) => (await fetch(`${each.public}/v1/conversations`, { headers: bearer(key) })).status),
    );
  expect(await statusesOf(key)).toEqual([200, 200]);
  expect(await statusesOf(key)).toEqual([429, 429]);
  expect((await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'DELETE' })).status).toBe(204);
  const again = await createCustomerWithKey(gateway, ACME);
  expect(await statusesOf(again)).toEqual([200, 200]);
});

test('a deletion that failed halfway is completed by a second attempt, with its audit entry', async () => {
  const { redis, gateway } = await startRedisSystem({ customer: ACME_FIELDS });
  const remove = () => callAdmin(gateway, '/admin/v1/customers/acme', { method: 'DELETE' });
  const day = new Date().toISOString().slice(0, 10).replaceAll('-', '');
  await redis.command('HSET', `tollgate:usage:{acme}:${day}`, '00', 7);
  // The deletion of the usage history is the last step but one.
  await redis.command('ACL', 'SETUSER', 'default', '-zrevrange');
  expect((await remove()).status).toBe(503);
  expect((await callAdmin(gateway, '/admin/v1/customers', { body: ACME })).status).toBe(409);
  await redis.command('ACL', 'SETUSER', 'default', '+zrevrange');
  expect((await remove()).status).toBe(204);
  const { body } = await callAdmin(gateway, '/admin/v1/audit?action=customer.delete');
  expect(body.items).toMatchObject([{ customer: 'acme' }]);
  expect(await redis.command('KEYS', '*{acme}*')).toEqual([]);
  expect((await remove()).status).toBe(404);
  await createCustomerWithKey(gateway, ACME);
});

test('the id of a key that another program deleted can be used again, by one of two who try at once', async () => {
  const redis = await startRedisForTest();
  const { store, prefix } = await openWithPrefix(redis);
  const { records } = store;
  await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  const create = (sha256: string) => records.createKey(sha256.repeat(64), { id: 'k1', customer: 'acme' });
  expect(await create('a')).toBe('created');
  expect(await create('b')).toBe('exists');
  await redis.command('DEL', `${prefix}:key:${'a'.repeat(64)}`);
  expect((await Promise.all([create('b'), create('c')])).toSorted()).toEqual(['created', 'exists']);
  expect(await redis.command('KEYS', `${prefix}:key:*`)).toHaveLength(1);
  expect(await records.findKeyById('k1')).toMatchObject({ id: 'k1' });
});

test('a use that is written after the deletion of its key is not kept', async () => {
  const redis = await startRedisForTest();
  const { store, prefix } = await openWithPrefix(redis);
  await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  const use = (digit: string) => ({ keyId: `k-${digit}`, sha256: digit.repeat(64), usedAtMs: 1 });
  for (const { keyId, sha256 } of [use('a'), use('b')]) {
    await store.records.createKey(sha256, { id: keyId, customer: 'acme' });
  }
  await store.records.discardKey('k-a');
  await store.keyUses.noteUses([use('a'), use('b')]);
  expect(await redis.command('ZRANGE', `${prefix}:key-uses`, 0, -1)).toEqual(['k-b']);
});
