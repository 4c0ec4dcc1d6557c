/** Lists of thousands of records in the smallest pages. */
import { test } from 'vitest';
import { startListedRedis } from './listed-redis.ts';

const { expectEachListedOnce, expectNoneLeftOutOfChangingTables, expectNoneLeftOutBesideDeletions } =
  startListedRedis();

test.each([1])('thousands of records are listed once each, in pages of at most %d', expectEachListedOnce);

test.each([2])(
  'nothing that stays is left out while thousands come and go and the tables of Redis grow and shrink: pages of %d',
  expectNoneLeftOutOfChangingTables,
);

test.each([1])(
  'nothing that stays is left out while its neighbours are deleted, so that every step of the walk reaches further: pages of %d',
  expectNoneLeftOutBesideDeletions,
);
