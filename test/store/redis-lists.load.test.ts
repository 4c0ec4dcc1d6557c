/** Lists of thousands of records in the smallest pages. */
import { expect, test } from 'vitest';
import { everyPage } from './every-page.ts';
import { startListedRedis } from './listed-redis.ts';

const {
  open,
  forEach,
  writeKeys,
  expectEachListedOnce,
  expectNoneLeftOutOfChangingTables,
  expectNoneLeftOutBesideDeletions,
} = startListedRedis();

test.each([1, 3])('thousands of records are listed once each, in pages of at most %d', expectEachListedOnce);

test('pages are mostly full: a short one costs the client a round trip', async () => {
  const { records } = await open();
  await writeKeys(2000);
  await forEach(4000, "redis.call('SET', 'test:key-id:k' .. i, n)");
  for (const limit of [10, 100, 1000]) {
    const pages = await everyPage((cursor) => records.listKeys(cursor, limit));
    expect(pages.length).toBeLessThan((2 * 2000) / limit + 2);
  }
});

test.each([2])(
  'nothing that stays is left out while thousands come and go and the tables of Redis grow and shrink: pages of %d',
  expectNoneLeftOutOfChangingTables,
);

test.each([1])(
  'nothing that stays is left out while its neighbours are deleted, so that every step of the walk reaches further: pages of %d',
  expectNoneLeftOutBesideDeletions,
);
