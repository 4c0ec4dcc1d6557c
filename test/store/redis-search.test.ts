/**
 * Searches use a directory in memory, and a dashboard writes customers in Redis. A customer that it wrote by HSET alone
 * must be found: an operator who does not find it would create it again, or not suspend it.
 */
import { expect, test } from 'vitest';
import { InvalidCursorError, StoreDoubtError } from '../../src/store/errors.ts';
import { CustomerDirectory } from '../../src/store/redis/records/customer-directory.ts';
import { eventually } from '../support/eventually.ts';
import { startCustomersInRedis } from './customers-in-redis.ts';
import { everyPage } from './every-page.ts';

const { redis, open, openEmpty, idsOf, write, writeMany, costOf } = startCustomersInRedis();

test('a customer that another program wrote is found, before and after the gateway knows all of them', async () => {
  const store = await openEmpty();
  await write('acme', 'name', 'Rocket Works', 'suspended', '1');
  expect(await idsOf(store, { fragments: ['works'] })).toEqual(['acme']);
  expect(await idsOf(store, { suspended: true })).toEqual(['acme']);
  await write('globex', 'name', 'Working');
  await eventually('both are found', async () => (await idsOf(store, { fragments: ['work'] })).length === 2);
});

test('a change by another program is found by its new value alone', async () => {
  const store = await openEmpty();
  await write('acme', 'name', 'Before');
  expect(await idsOf(store, { fragments: ['before'] })).toEqual(['acme']);
  await write('acme', 'name', 'After', 'suspended', '1');
  await eventually('the new name is found', async () => (await idsOf(store, { fragments: ['after'] })).length === 1);
  expect(await idsOf(store, { suspended: true })).toEqual(['acme']);
  expect(await idsOf(store, { fragments: ['before'] })).toEqual([]);
  await redis().command('DEL', 'test:customer:{acme}');
  expect(await idsOf(store, { fragments: ['after'] })).toEqual([]);
});

test('what another program wrote while changes were not pushed is found', async () => {
  const store = await openEmpty();
  await write('acme');
  await idsOf(store, {});
  await redis().disconnect('tollgate-push');
  await write('acme-2');
  expect((await idsOf(store, { fragments: ['acme'] })).toSorted()).toEqual(['acme', 'acme-2']);
  await eventually('changes are pushed again', () => store.invalidations.connected);
  await write('acme-3');
  expect(await idsOf(store, { fragments: ['acme'] })).toEqual(['acme', 'acme-2', 'acme-3']);
});

test('a change by this process is found by its next search', async () => {
  const { records } = await openEmpty();
  await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  expect((await records.findCustomers({ suspended: true }, undefined, 10)).items).toEqual([]);
  await records.updateCustomer('acme', { suspended: true });
  expect((await records.findCustomers({ suspended: true }, undefined, 10)).items).toHaveLength(1);
});

test('a search continues at another gateway', async () => {
  const [one, other] = [await openEmpty(), await open()];
  for (const id of ['acme', 'acme-2', 'acme-3']) await write(id);
  const { items, next } = await one.records.findCustomers({ fragments: ['acme'] }, undefined, 1);
  expect(items.map(({ id }) => id)).toEqual(['acme']);
  const rest = await everyPage((cursor) => other.records.findCustomers({ fragments: ['acme'] }, cursor ?? next, 1));
  expect(rest.flat().map(({ id }) => id)).toEqual(['acme-2', 'acme-3']);
});

test('with thousands of customers, a search reads those that match', async () => {
  const store = await openEmpty();
  await writeMany(3000);
  await store.records.createCustomer({ id: 'acme', name: 'Acme', plan: 'business', suspended: false });
  const { items } = await store.records.findCustomers({ fragments: ['acm'] }, undefined, 10);
  expect(items.map(({ id }) => id)).toEqual(['acme']);
  expect(await idsOf(store, { fragments: ['c-2'] }, 1000)).toHaveLength(1111);
  const cost = await costOf(async () => expect(await idsOf(store, { fragments: ['2999'] })).toEqual(['c-2999']));
  expect(cost).toEqual({ read: 1, scans: 0 });
});

test('all matches are listed in the order of their ids, in pages of any size', async () => {
  await redis().command('FLUSHALL');
  await writeMany(12_000);
  const store = await open();
  const expected = Array.from({ length: 12_000 }, (_, i) => `c-${i + 1}`).toSorted();
  expect(await idsOf(store, {}, 1000)).toEqual(expected);
  expect(await idsOf(store, { fragments: ['c-77'] }, 3)).toEqual(expected.filter((id) => id.startsWith('c-77')));
});

test('without a search, a gateway reads no customer but those of requests', async () => {
  const store = await openEmpty();
  const cost = await costOf(async () => {
    await writeMany(3000);
    await eventually(
      'changes are pushed',
      async () => (await store.records.findCustomerRecord('c-3000')) !== undefined,
    );
  });
  expect(cost.read).toBeLessThan(10);
});

test('while changes are not pushed, each search reads all customers', async () => {
  const { records } = await openEmpty();
  const pushed = { connected: false, subscribe: () => () => undefined };
  const directory = new CustomerDirectory({ records, pushed });
  for (const id of ['acme-1', 'acme-2', 'acme-3']) {
    await write(id);
    const pages = await everyPage((cursor) => directory.find({ fragments: [id] }, cursor, 10));
    expect(pages.flat().map((customer) => customer.id)).toEqual([id]);
  }
});

test('a change is found, however long an earlier search takes to read the record as it was before', async () => {
  const { records } = await openEmpty();
  await write('acme', 'name', 'First');
  let reply = Promise.resolve();
  const slow: typeof records.readCustomers = async (ids) => {
    const held = reply;
    const read = await records.readCustomers(ids);
    await held;
    return read;
  };
  // Reports no change by itself, so that nothing repairs the directory afterwards.
  const pushed = { connected: true, subscribe: () => () => undefined };
  const directory = new CustomerDirectory({ records: { ...records, readCustomers: slow }, pushed });
  const find = (fragment: string) => directory.find({ fragments: [fragment] }, undefined, 10);
  expect((await find('first')).items).toHaveLength(1);
  directory.changed('acme');
  const held = Promise.withResolvers<void>();
  reply = held.promise;
  const earlier = find('nobody');
  // Answered after the read of the earlier search.
  await records.readCustomers([]);
  reply = Promise.resolve();
  await write('acme', 'name', 'Second');
  directory.changed('acme');
  const later = find('second');
  // Longer than the later search takes, unless it waits for the earlier one.
  for (let i = 0; i < 20; i += 1) await records.readCustomers(['acme']);
  held.resolve();
  await Promise.all([earlier, later]);
  expect((await find('second')).items).toHaveLength(1);
});

test('searches at once find the same, also while the first of them reads all customers', async () => {
  const store = await openEmpty();
  await writeMany(3000);
  const found = await Promise.all(Array.from({ length: 20 }, () => idsOf(store, { fragments: ['c-2'] }, 1000)));
  for (const ids of found) expect(ids).toHaveLength(1111);
});

test('customers that would take too much memory are found by reading all of them', async () => {
  const { records, invalidations } = await openEmpty();
  await writeMany(3000);
  const directory = new CustomerDirectory({ records, pushed: invalidations, maxBytes: 100_000 });
  const find = async () => {
    const pages = await everyPage((cursor) => directory.find({ fragments: ['c-2'] }, cursor, 1000));
    return new Set(pages.flat().map(({ id }) => id)).size;
  };
  expect(await find()).toBe(1111);
  const cost = await costOf(async () => expect(await find()).toBe(1111));
  expect(cost.read).toBeGreaterThanOrEqual(3000);
  await write('last', 'name', 'Also C-2');
  expect(await find()).toBe(1112);
});

test('a search fails in a store that lost its data: what is in memory is no longer there', async () => {
  const store = await openEmpty();
  await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  expect(await idsOf(store, { fragments: ['acme'] })).toEqual(['acme']);
  await redis().command('FLUSHALL');
  for (const beginning of ['acme', 'nobody']) {
    await expect(idsOf(store, { fragments: [beginning] })).rejects.toBeInstanceOf(StoreDoubtError);
  }
});

test.each(['dYSBi', 'd!', 's', 'sx', 'e0.YQ', 'a'])('a cursor that no search gave is refused: %s', async (cursor) => {
  const { records } = await openEmpty();
  await expect(records.findCustomers({}, cursor, 10)).rejects.toBeInstanceOf(InvalidCursorError);
});
