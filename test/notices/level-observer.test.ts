/** What an instance claims of what the store tells it; the store decides whether that is new. */
import { expect, test } from 'vitest';
import { LevelObserver } from '../../src/notices/level-observer.ts';
import { parseNotice } from '../../src/notices/notice.ts';
import type { LevelClaim } from '../../src/store/notices.ts';

const LIMIT = 1000;

function observe(levels: readonly number[] | undefined) {
  const claims: LevelClaim[] = [];
  const created: string[] = [];
  const store = { nowMs: 0, isNew: true, isUp: true };
  const claimLevel = async (claim: LevelClaim) => {
    claims.push(claim);
    if (!store.isUp) throw new Error('away');
    return store.isNew;
  };
  const clock = { monotonicMs: () => store.nowMs };
  const options = { notices: { claimLevel }, created: (type: string) => created.push(type), customers: 10, clock };
  const observer = new LevelObserver(options, levels);
  return {
    observer,
    claims,
    created,
    store,
    async use(used: number, limit = LIMIT) {
      if (100 * used < observer.lowestPercent * limit) return;
      observer.reached('acme', limit, { used, waitMs: 41_000, storeTimeMs: Date.UTC(2030, 0, 1) });
      await new Promise((resolve) => setImmediate(resolve));
    },
    levels: () => claims.map(({ level }) => level),
  };
}

test('only the highest level that was reached is claimed, and a limit that is used up always is one', async () => {
  const { use, levels, created } = observe([95, 80]);
  for (const used of [799, 800, 949, 950, 999, 1000, 1200]) await use(used);
  expect(levels()).toEqual([80, 95, 100]);
  expect(created).toEqual(['quota.threshold', 'quota.threshold', 'quota.exceeded']);
});

test('a level is claimed again after a minute, and at once for another limit', async () => {
  const { use, levels, store, created } = observe([80]);
  await use(800);
  store.isNew = false;
  store.nowMs = 59_999;
  await use(850);
  expect(levels()).toEqual([80]);
  store.nowMs = 60_000;
  await use(850);
  await use(1700, 2000);
  expect(levels()).toEqual([80, 80, 80]);
  expect(created).toHaveLength(1);
});

test('a claim that failed is repeated by a later reply of the store, at most every five seconds', async () => {
  const { use, levels, store } = observe([80]);
  store.isUp = false;
  await use(800);
  await use(801);
  expect(levels()).toEqual([80]);
  store.nowMs = 5000;
  store.isUp = true;
  await use(802);
  await use(803);
  expect(levels()).toEqual([80, 80]);
});

test('without notices nothing is claimed, whatever a reload changes before', async () => {
  const { observer, use, levels, claims } = observe(undefined);
  await use(5000);
  expect(levels()).toEqual([]);
  observer.applyLevels([]);
  await use(999);
  await use(1000);
  expect(levels()).toEqual([100]);
  expect(parseNotice(claims[0]?.notice.content ?? '')).toMatchObject({
    type: 'quota.exceeded',
    timestamp: '2030-01-01T00:00:00.000Z',
    data: { customer: 'acme', limit: LIMIT, used: 1000, percent: 100, reset_seconds: 41 },
  });
  observer.applyLevels(undefined);
  await use(5000);
  expect(levels()).toEqual([100]);
});
