/** What quotas cost the store, counted by Redis itself. */
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock, systemScheduler } from '../../src/base/clock.ts';
import { uniqueIds } from '../../src/base/unique-ids.ts';
import type { Admission } from '../../src/customers/quota/hourly-quota.ts';
import { LeasedQuota } from '../../src/customers/quota/leased-quota.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import type { Store } from '../../src/store/store.ts';
import { hourly } from '../../src/store/windows.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { readCommandStats, readScriptCalls, storeTimeMs, windowName } from '../support/redis-system.ts';
import { silent } from '../support/silent.ts';

const STEP_MS = 5;
const BUCKET_MS = 10_000;
const BUCKETS = 361;

async function start() {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const store = await openRedisStore({
    url: redis.url,
    keyPrefix: 'tollgate',
    timeoutMs: 5000,
    ...silent,
  });
  onTestFinished(() => store.close());
  return { redis, store, quota: openQuota(store) };
}

function openQuota(store: Store): LeasedQuota {
  const quota = new LeasedQuota({
    windows: store.windows,
    storeIsUp: () => store.isUp(),
    withoutStore: {
      admit: () => {
        throw new Error('the store was not asked');
      },
    },
    clock: systemClock,
    scheduler: systemScheduler,
    timeoutMs: 5000,
    customers: 100,
  });
  onTestFinished(() => quota.close());
  return quota;
}

/** Requests of one customer, evenly over time; when this process falls behind, the rest comes at once. */
async function drive(quota: LeasedQuota, limit: number, perSecond: number, seconds: number): Promise<Admission[]> {
  const settings = { limits: hourly(limit), usageResetAt: '' };
  const admissions: (Admission | Promise<Admission>)[] = [];
  const startedMs = performance.now();
  while (admissions.length < perSecond * seconds) {
    const due = Math.min(seconds, (performance.now() - startedMs) / 1000) * perSecond;
    while (admissions.length < due) admissions.push(quota.admit('acme', settings));
    await setTimeout(STEP_MS);
  }
  return Promise.all(admissions);
}

function countOf(admissions: readonly Admission[], wanted: Partial<Admission>): number {
  return admissions.filter(({ outcome, mode }) => outcome === wanted.outcome && mode === wanted.mode).length;
}

test('a customer that sends 2,000 requests a second, far from its limit, costs at most 0.02 store calls a request', async () => {
  const { redis, quota } = await start();
  await redis.command('CONFIG', 'RESETSTAT');
  const admissions = await drive(quota, 10_000_000, 2000, 4);
  expect(admissions).toHaveLength(8000);
  expect(countOf(admissions, { outcome: 'admitted', mode: 'lease' })).toBeGreaterThan(0.95 * admissions.length);
  expect((await readScriptCalls(redis)) / admissions.length).toBeLessThanOrEqual(0.02);
});

test('a flood of refused requests costs at most one store call a second in all', async () => {
  const { redis, quota } = await start();
  const seconds = 3;
  await drive(quota, 10, 20, 1);
  await redis.command('CONFIG', 'RESETSTAT');
  const startedMs = performance.now();
  const admissions = await drive(quota, 10, 20_000 / seconds, seconds);
  // At least `seconds`; more if this process falls behind.
  const tookSeconds = (performance.now() - startedMs) / 1000;
  expect(admissions).toHaveLength(20_000);
  expect(admissions.filter(({ outcome }) => outcome === 'admitted')).toHaveLength(0);
  expect(await readScriptCalls(redis)).toBeLessThanOrEqual(Math.floor(tookSeconds));
});

/** A window that was busy all the hour, as the scripts keep it. */
async function fillWindow(redis: RedisServer, unitsPerBucket: number): Promise<number> {
  const now = Math.floor((await storeTimeMs(redis)) / BUCKET_MS);
  // The oldest is not due to drop within the test's time.
  const oldest = now - BUCKETS + 4;
  const newest = oldest + BUCKETS - 1;
  const fields = Array.from({ length: BUCKETS }, (_, i) => [oldest + i, unitsPerBucket]);
  const used = unitsPerBucket * BUCKETS;
  await redis.command('DEL', windowName('acme'));
  await redis.command('HSET', windowName('acme'), 'head', `epoch ${used} ${oldest} ${newest} 0`, ...fields.flat());
  return used;
}

// Counted, for a time in µs says more of the machine than of the script.
test.each([
  ['grants', (used: number) => 2 * used, { hget: 1, hset: 2, hincrby: 1 }],
  ['refuses at the limit', (used: number) => used, { hget: 1 }],
])('a reservation that %s, with all 361 buckets in use, looks at none but its own', async (_, limitOf, commands) => {
  const { redis, store } = await start();
  const used = await fillWindow(redis, 50);
  const newGrantId = uniqueIds();
  const request = { customer: 'acme', need: 1, ahead: 100, limits: hourly(limitOf(used)), holdMs: 2000, refunds: [] };
  // Redis learns the script from the first call.
  await store.windows.reserve({ ...request, grant: newGrantId() });
  await redis.command('CONFIG', 'RESETSTAT');
  for (let i = 0; i < 200; i++) await store.windows.reserve({ ...request, grant: newGrantId() });
  const callsEach = [...(await readCommandStats(redis))].map(([name, { calls }]) => [name, calls / 200] as const);
  expect(Object.fromEntries(callsEach.filter(([name]) => /^(evalsha|h(?!ello))/.test(name)))).toEqual({
    evalsha: 1,
    ...commands,
  });
});
