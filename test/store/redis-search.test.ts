/**
 * Searches use an index that a dashboard does not write. A customer that it wrote by HSET alone must be found all the
 * same: an operator who does not find it would create it again, or not suspend it.
 */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { CustomerSearch } from '../../src/store/customer-search.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import type { Store } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { readCommandStats } from '../support/redis-system.ts';
import { RecordingObserver } from './contract.ts';
import { everyPage } from './every-page.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

async function open(url = redis.url): Promise<Store> {
  const surroundings = { clock: systemClock, observer: new RecordingObserver(), warn: () => undefined };
  const store = await openRedisStore({ url, keyPrefix: 'test', timeoutMs: 2000, ...surroundings });
  onTestFinished(() => store.close());
  return store;
}

async function openEmpty(): Promise<Store> {
  await redis.command('FLUSHALL');
  return open();
}

async function idsOf({ records }: Store, search: CustomerSearch, limit = 10): Promise<string[]> {
  const pages = await everyPage((cursor) => records.findCustomers(search, cursor, limit));
  return pages.flat().map(({ id }) => id);
}

const write = (id: string, ...fields: string[]) =>
  redis.command('HSET', `test:customer:{${id}}`, 'plan', 'starter', ...fields);

/** Whether a search reads no records but those that match. */
async function isComplete(store: Store): Promise<boolean> {
  const { next } = await store.records.findCustomers({ beginning: 'nobody' }, undefined, 10);
  return next === undefined;
}

test('a customer that another program wrote is found, before and after the gateway knows all of them', async () => {
  const store = await openEmpty();
  await write('acme', 'name', 'Rocket Works', 'suspended', '1');
  expect(await idsOf(store, { beginning: 'works' })).toEqual(['acme']);
  expect(await idsOf(store, { suspended: true })).toEqual(['acme']);
  expect(await isComplete(store)).toBe(true);
  await write('globex', 'name', 'Working');
  await eventually('both are found', async () => (await idsOf(store, { beginning: 'work' })).length === 2);
});

test('a change by another program is found by its new value alone', async () => {
  const store = await openEmpty();
  await write('acme', 'name', 'Before');
  expect(await idsOf(store, { beginning: 'before' })).toEqual(['acme']);
  expect(await isComplete(store)).toBe(true);
  await write('acme', 'name', 'After', 'suspended', '1');
  await eventually('the new name is found', async () => (await idsOf(store, { beginning: 'after' })).length === 1);
  expect(await idsOf(store, { suspended: true })).toEqual(['acme']);
  expect(await idsOf(store, { beginning: 'before' })).toEqual([]);
  await redis.command('DEL', 'test:customer:{acme}');
  expect(await idsOf(store, { beginning: 'after' })).toEqual([]);
});

test('what another program wrote while changes were not pushed is found', async () => {
  const store = await openEmpty();
  await write('acme');
  await idsOf(store, {});
  expect(await isComplete(store)).toBe(true);
  await redis.disconnect('tollgate-push');
  await write('acme-2');
  expect(await idsOf(store, { beginning: 'acme' })).toEqual(['acme', 'acme-2']);
  await eventually('changes are pushed again', () => store.invalidations.connected);
  await write('acme-3');
  expect(await idsOf(store, { beginning: 'acme' })).toEqual(['acme', 'acme-2', 'acme-3']);
});

test('a gateway that starts does not trust an index that it did not complete', async () => {
  const one = await openEmpty();
  await write('acme');
  await idsOf(one, {});
  await one.close();
  await write('globex');
  expect(await idsOf(await open(), { beginning: 'glo' })).toEqual(['globex']);
});

test('a search that another one overtakes misses nothing that the other added', async () => {
  const store = await openEmpty();
  await write('acme');
  const { items, next } = await store.records.findCustomers({ beginning: 'acme' }, undefined, 10);
  expect(items).toEqual([]);
  expect(await idsOf(store, { beginning: 'nobody' })).toEqual([]);
  const rest = await everyPage((cursor) => store.records.findCustomers({ beginning: 'acme' }, cursor ?? next, 10));
  expect(rest.flat().map(({ id }) => id)).toEqual(['acme']);
});

test('a search continues at another gateway', async () => {
  const [one, other] = [await openEmpty(), await open()];
  await write('acme');
  const { next } = await one.records.findCustomers({ beginning: 'acme' }, undefined, 10);
  expect(await idsOf(other, { beginning: 'nobody' })).toEqual([]);
  const rest = await everyPage((cursor) => other.records.findCustomers({ beginning: 'acme' }, cursor ?? next, 10));
  expect(rest.flat().map(({ id }) => id)).toEqual(['acme']);
});

test('with thousands of customers, a search reads those that match', async () => {
  const store = await openEmpty();
  const script = `for i = 1, ARGV[1] do redis.call('HSET', 'test:customer:{c-' .. i .. '}', 'plan', 'starter', 'name', 'Customer ' .. i) end`;
  await redis.command('EVAL', script, 0, 3000);
  await store.records.createCustomer({ id: 'acme', name: 'Acme', plan: 'business', suspended: false });
  const { items } = await store.records.findCustomers({ beginning: 'acm' }, undefined, 10);
  expect(items.map(({ id }) => id)).toEqual(['acme']);
  expect(await idsOf(store, { beginning: 'customer 2' }, 1000)).toHaveLength(1111);
  await redis.command('CONFIG', 'RESETSTAT');
  expect(await idsOf(store, { beginning: '2999' })).toEqual(['c-2999']);
  const stats = await readCommandStats(redis);
  expect([stats.get('hmget')?.calls, stats.get('scan')?.calls]).toEqual([1, undefined]);
});

test('without permission for the index, all records are read', async () => {
  await redis.command('FLUSHALL');
  await redis.command('ACL', 'SETUSER', 'old', 'on', '>secret', '~*', '&*', '+@all', '-zrangebylex');
  const store = await open(redis.url.replace('redis://', 'redis://old:secret@'));
  await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  await write('acme-2');
  expect((await idsOf(store, { beginning: 'acme' })).toSorted()).toEqual(['acme', 'acme-2']);
});

test('with something else under the name of the index, all records are read', async () => {
  const store = await openEmpty();
  await redis.command('SET', 'test:customer-index', 'x');
  await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  expect(await idsOf(store, { beginning: 'acme' })).toEqual(['acme']);
});

test('entries that another program made up list nothing that is no customer, and end', async () => {
  const store = await openEmpty();
  await write('acme');
  await redis.command('HSET', 'test:customer:{a b}', 'plan', 'starter', 'name', 'Evil');
  await redis.command('ZADD', 'test:customer-index', 0, 'tevil\0a b', 0, 'tevil', 0, 'tevil\0acme', 0, 'tevil\0{x}');
  const script = "for i = 200, 255 do redis.call('ZADD', KEYS[1], 0, 'tevil' .. string.char(i)) end";
  await redis.command('EVAL', script, 1, 'test:customer-index');
  for (const limit of [1, 2, 1000]) expect(await idsOf(store, { beginning: 'evil' }, limit)).toEqual([]);
  await store.records.reindex();
  expect(await idsOf(store, { beginning: 'a' })).toEqual(['acme']);
});

test('reindex adds the entries of what other programs wrote, and deletes those of what they deleted', async () => {
  const store = await openEmpty();
  await store.records.createCustomer({ id: 'gone', name: 'Personal Name', plan: 'starter', suspended: false });
  await redis.command('DEL', 'test:customer:{gone}');
  await write('acme', 'name', 'Rocket');
  await store.records.reindex();
  expect(await redis.command('ZRANGE', 'test:customer-index', 0, -1)).toEqual([
    'pstarter\n\0acme',
    'tacme\0acme',
    'trocket\0acme',
  ]);
});

test('nothing is left in the index of a customer that was deleted, nor of its former name', async () => {
  const { records } = await openEmpty();
  await records.createCustomer({ id: 'acme', name: 'Personal Name', plan: 'starter', suspended: false });
  await records.updateCustomer('acme', { name: 'Company' });
  expect(JSON.stringify(await redis.command('ZRANGE', 'test:customer-index', 0, -1))).not.toContain('personal');
  await records.deleteCustomer('acme');
  expect(await redis.command('ZCARD', 'test:customer-index')).toBe(0);
});

test('a key that another program wrote is found by its expiry', async () => {
  const { records } = await openEmpty();
  const sha256 = 'ab'.repeat(32);
  await redis.command(
    'HSET',
    `test:key:${sha256}`,
    'id',
    'k1',
    'customer',
    'acme',
    'expires_at',
    '2026-03-01T01:00:00+02:00',
  );
  const range = { fromMs: Date.parse('2026-02-28T22:00:00Z'), toMs: Date.parse('2026-02-28T23:30:00Z') };
  const pages = await everyPage((cursor) => records.findExpiringKeys(range, cursor, 10));
  expect(pages.flat().map(({ id }) => id)).toEqual(['k1']);
});
