/** Searches among tens of thousands of customers that another program writes meanwhile. */
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startCustomersInRedis } from './customers-in-redis.ts';
import { everyPage } from './every-page.ts';

const { redis, openEmpty, idsOf, write, writeMany, costOf } = startCustomersInRedis();

test('what is written while a first search reads all customers is found, and what is deleted meanwhile is not', async () => {
  const store = await openEmpty();
  await writeMany(25_000);
  let step = 0;
  const pages = await everyPage(
    (cursor) => store.records.findCustomers({ fragments: ['late'] }, cursor, 100),
    async () => {
      step += 1;
      await write(`late-${step}`);
      await write(`c-${step}`, 'name', `Late ${step}`);
      await store.records.createCustomer({ id: `late-own-${step}`, plan: 'starter', suspended: false });
      if (step === 1) await redis().command('DEL', 'test:customer:{c-25000}');
    },
  );
  expect(step).toBeGreaterThan(0);
  expect(pages.flat().map(({ id }) => id)).toContain('late-own-1');
  await eventually('all are found', async () => (await idsOf(store, { fragments: ['late'] })).length === 3 * step);
  expect(await idsOf(store, { fragments: ['c-25000'] })).toEqual([]);
});

test('more changes than a gateway remembers are found, by reading all customers again', async () => {
  const store = await openEmpty();
  await writeMany(11_000);
  expect(await idsOf(store, { fragments: ['c-7'] }, 1000)).toHaveLength(1111);
  let pushes = 0;
  store.invalidations.subscribe(() => {
    pushes += 1;
  });
  await writeMany(11_000, 'Renamed');
  await eventually('all changes are pushed', () => pushes === 11_000);
  const cost = await costOf(async () => {
    expect(await idsOf(store, { fragments: ['renamed'] }, 1000)).toHaveLength(11_000);
  });
  expect(cost.scans).toBeGreaterThan(0);
  expect(await idsOf(store, { fragments: ['customer'] }, 1000)).toEqual([]);
});
