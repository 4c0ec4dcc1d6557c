/** Lists over what other programs wrote, in a Redis that others use and that changes while it is walked through. */
import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { readCommandStats } from '../support/redis-system.ts';
import { createKeyWithCustomer, sha256Of } from '../support/stored-key.ts';
import { everyPage } from './every-page.ts';
import { ids, startListedRedis } from './listed-redis.ts';

const {
  redis,
  open,
  forEach,
  writeKeys,
  expectEachListedOnce,
  expectNoneLeftOutOfChangingTables,
  expectNoneLeftOutBesideDeletions,
} = startListedRedis();

/** Each puts the names into other buckets. */
const PREFIXES = ['a', 'b', 'c', 'd', 'e', 'f'];
const FIFTY = Array.from({ length: 50 }, (_, i) => `k${i}`).toSorted();

test('what other programs wrote is listed without any index', async () => {
  const { records } = await open();
  await redis().command('HSET', 'test:customer:{acme}', 'plan', 'custom', 'requests_per_hour', 'many', 'name', '');
  await redis().command('HSET', `test:key:${sha256Of(1)}`, 'id', 'k1', 'customer', 'acme', 'revoked_at', 'yesterday');
  expect((await records.listCustomers(undefined, 10)).items).toEqual([
    { id: 'acme', plan: 'custom', requestsPerHour: 'invalid', suspended: false },
  ]);
  expect((await records.listKeys(undefined, 10)).items).toEqual([
    { id: 'k1', customer: 'acme', revokedAt: 'yesterday' },
  ]);
  expect((await records.listCustomerKeys('acme', undefined, 1000)).items).toEqual([]);
});

test('what is no record is skipped: of a wrong type, without a required field, under a name that none can have', async () => {
  const { records } = await open();
  await redis().command('HSET', `test:key:${sha256Of('a')}`, 'id', 'good', 'customer', 'acme');
  await redis().command('HSET', 'test:customer:{acme}', 'plan', 'starter');
  for (const wrongType of [`test:key:${sha256Of('b')}`, 'test:customer:{list}']) {
    await redis().command('RPUSH', wrongType, 'x');
  }
  await redis().command('HSET', `test:key:${sha256Of('c')}`, 'customer', 'acme');
  await redis().command('HSET', `test:key:${sha256Of('d')}`, 'id', 'k', 'customer', '');
  await redis().command('HSET', 'test:customer:{planless}', 'name', 'x');
  const key = ['id', 'k', 'customer', 'acme'];
  for (const name of ['tg_the-key-itself', '', `${sha256Of('A')}`, `${sha256Of('e')}0`]) {
    await redis().command('HSET', `test:key:${name}`, ...key);
  }
  for (const name of ['{}', 'acme', '{a b}', '{acme', `{${'x'.repeat(129)}}`, '{-}', '{é}']) {
    await redis().command('HSET', `test:customer:${name}`, 'plan', 'starter');
  }
  await redis().command('HSET', Buffer.from('test:customer:{\xff}', 'latin1').toString('latin1'), 'plan', 'starter');
  expect(await ids(everyPage((cursor) => records.listKeys(cursor, 3)))).toEqual(['good']);
  expect(await ids(everyPage((cursor) => records.listCustomers(cursor, 3)))).toEqual(['acme']);
});

test('an index entry that leads to a key of somebody else, or to what is none, lists nothing', async () => {
  const { records } = await open();
  await createKeyWithCustomer(records, sha256Of(1), { id: 'moved', customer: 'acme' });
  await createKeyWithCustomer(records, sha256Of(2), { id: 'renamed', customer: 'acme' });
  await createKeyWithCustomer(records, sha256Of(3), { id: 'damaged', customer: 'acme' });
  await createKeyWithCustomer(records, sha256Of(4), { id: 'good', customer: 'acme' });
  await redis().command('HSET', `test:key:${sha256Of(1)}`, 'customer', 'globex');
  await redis().command('HSET', `test:key:${sha256Of(2)}`, 'id', 'new-name');
  await redis().command('DEL', 'test:key-id:damaged');
  await redis().command('RPUSH', 'test:key-id:damaged', 'x');
  await redis().command('SADD', 'test:customer-keys:{acme}', 'gone');
  expect((await records.listCustomerKeys('acme', undefined, 1000)).items).toEqual([{ id: 'good', customer: 'acme' }]);
});

test('a prefix is taken letter by letter', async () => {
  const { records } = await open('t*st[1]');
  await writeKeys(3, 't*st[1]');
  await writeKeys(5, 'test1');
  expect(await ids(everyPage((cursor) => records.listKeys(cursor, 10)))).toHaveLength(3);
});

test.each([100, 1000])('thousands of records are listed once each, in pages of at most %d', expectEachListedOnce);

const TABLES = PREFIXES.flatMap((prefix) => [
  { prefix, size: 'larger', others: 400 },
  { prefix, size: 'much larger', others: 8000 },
]);
test.each(TABLES)(
  'a bucket that pages share is listed once, also when Redis moves its names to a $size table meanwhile: prefix $prefix',
  async ({ prefix, others }) => {
    const store = await open(prefix);
    await writeKeys(50, prefix);
    const listed = await listOneByOne(store, () => forEach(others, "redis.call('SET', 'other:' .. i, 'x')"));
    expect(listed.toSorted()).toEqual(FIFTY);
  },
);

test.each(PREFIXES)(
  'no name of a bucket that pages share is left out, also when Redis moves its names to a smaller table meanwhile: prefix %s',
  async (prefix) => {
    const store = await open(prefix);
    await forEach(1000, "redis.call('SET', 'other:' .. i, 'x')");
    await writeKeys(50, prefix);
    const listed = await listOneByOne(store, async () => {
      await forEach(1000, "redis.call('DEL', 'other:' .. i)");
      // Ten times a second Redis looks whether a table is much too large.
      await setTimeout(400);
    });
    expect([...new Set(listed)].toSorted()).toEqual(FIFTY);
  },
);

test.each([50, 400])(
  'nothing that stays is left out while thousands come and go and the tables of Redis grow and shrink: pages of %d',
  expectNoneLeftOutOfChangingTables,
);

test.each([2, 20, 50])(
  'nothing that stays is left out while its neighbours are deleted, so that every step of the walk reaches further: pages of %d',
  expectNoneLeftOutBesideDeletions,
);

test('a page looks at a bounded part of Redis, in small steps, however few of its names are ours', async () => {
  const { records, status } = await open();
  await forEach(60_000, "redis.call('SET', 'other:' .. i, 'x')");
  await writeKeys(20);
  // Until the store knows of a record, it may scan for one.
  await expect.poll(() => status().empty).toBe(false);
  await redis().command('CONFIG', 'RESETSTAT');
  const steps = await lengthsOfSteps(async () => {
    const { items, next } = await records.listKeys(undefined, 100);
    expect(items.length).toBeLessThan(20);
    expect(next).toBeDefined();
  });
  expect((await readCommandStats(redis())).has('keys')).toBe(false);
  expect(steps.length).toBeLessThanOrEqual(32);
  // A step looks at a thousand names, which takes well below a millisecond.
  expect(Math.max(...steps)).toBeLessThanOrEqual(1000);

  const pages = await everyPage((cursor) => records.listKeys(cursor, 100));
  expect(pages.flat()).toHaveLength(20);
  expect(pages.length).toBeLessThan(10);
});

test('a page reads a bounded number of records, also from a cursor that says that a bucket is all of Redis', async () => {
  const { records, status } = await open();
  await writeKeys(20_000);
  await expect.poll(() => status().empty).toBe(false);
  const steps = await lengthsOfSteps(() => records.listKeys(`0.${'0'.repeat(16)}.0`, 1));
  expect(steps.reduce((sum, length) => sum + length)).toBeLessThan(3000);
});

test('records read by lists are not pushed: Redis tracks only what requests read', async () => {
  const { records } = await open();
  await writeKeys(50);
  await redis().command('HSET', 'test:customer:{acme}', 'plan', 'starter');
  const tracked = async () =>
    Number(/tracking_total_keys:(\d+)/.exec(String(await redis().command('INFO', 'stats')))?.[1]);
  await records.findKey(sha256Of(1));
  const before = await tracked();
  await records.listKeys(undefined, 100);
  await records.listCustomers(undefined, 100);
  await records.listCustomerKeys('acme', undefined, 1000);
  await records.reindex();
  expect(await tracked()).toBe(before);
});

/** Returns how many names each step of SCAN was to look at. */
async function lengthsOfSteps(list: () => Promise<unknown>): Promise<number[]> {
  await redis().command('CONFIG', 'SET', 'slowlog-log-slower-than', 0);
  await redis().command('CONFIG', 'SET', 'slowlog-max-len', 1_000_000);
  await redis().command('SLOWLOG', 'RESET');
  await list();
  const log = (await redis().command('SLOWLOG', 'GET', -1)) as [number, number, number, string[]][];
  const scans = log.map(([, , , command]) => command).filter(([name]) => name === 'scan');
  expect(scans.length).toBeGreaterThan(0);
  return scans.map((command) => Number(command.at(-1)));
}

/** Lists all keys, one a page. Calls `resize` as soon as pages share a bucket, and waits for it. */
async function listOneByOne({ records }: Store, resize: () => Promise<unknown>): Promise<string[]> {
  let isResized = false;
  const listed = everyPage(async (cursor) => {
    if (!isResized && cursor?.includes('.')) {
      isResized = true;
      await resize();
    }
    return records.listKeys(cursor, 1);
  });
  return await ids(listed);
}
