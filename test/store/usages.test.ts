/** What many windows hold, as it is read for reports: over both stores, and against the reservation that decides. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { uniqueIds } from '../../src/base/unique-ids.ts';
import { openStore } from '../../src/store/open/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { hourly } from '../../src/store/windows.ts';
import { STORES, type TestStore } from '../support/gateway.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { readCommandStats } from '../support/redis-system.ts';
import { silent } from '../support/silent.ts';

const BUCKET_MS = 10_000;

async function open(url: string, opened: AsyncDisposableStack): Promise<Store> {
  const store = await openStore({ url, keyPrefix: 'test', timeoutMs: 2000 }, silent);
  opened.defer(() => store.close());
  return store;
}

const newGrantId = uniqueIds();

const reserve = ({ windows }: Store, customer: string, need: number, holdMs = 2000) =>
  windows.reserve({ customer, grant: newGrantId(), need, ahead: 0, limits: hourly(1_000_000), holdMs, refunds: [] });

describe.each(STORES)('over $name', (kind) => {
  let place: TestStore;
  let store: Store;
  const opened = new AsyncDisposableStack();
  beforeAll(async () => {
    place = await kind.start();
    opened.defer(() => place.close());
    store = await open(place.url, opened);
  });
  afterAll(() => opened.disposeAsync());

  test('what was granted is counted, in the order asked for, and nothing where there is no window', async () => {
    await reserve(store, 'few', 3);
    await reserve(store, 'many', 400);
    const asked = ['many', 'nobody', 'few', 'many'].map((customer) => ({ customer, from: 1 }));
    expect(await store.usages.usedOf(asked)).toEqual([400, 0, 3, 400]);
    expect(await store.usages.usedOf([])).toEqual([]);
  });

  test('units are settled when no hold is open, or when their own are over', async () => {
    expect(await store.usages.settledOf('nobody')).toBe(0);
    await reserve(store, 'held', 7, 10_000);
    expect(await store.usages.settledOf('held')).toBe(0);
    await reserve(store, 'settling', 7);
    await expect.poll(() => store.usages.settledOf('settling')).toBe(7);
    expect((await reserve(store, 'settling', 0)).counts[0].used).toBe(7);
  });

  test('reading changes nothing', async () => {
    await reserve(store, 'still', 7);
    for (let i = 0; i < 3; i++) await store.usages.usedOf([{ customer: 'still', from: 1 }]);
    expect((await reserve(store, 'still', 0)).counts[0].used).toBe(7);
  });
});

describe('in Redis', () => {
  let redis: RedisServer;
  let store: Store;
  const opened = new AsyncDisposableStack();
  beforeAll(async () => {
    redis = await startRedis();
    opened.defer(() => redis.stop());
    store = await open(redis.url, opened);
  });
  afterAll(() => opened.disposeAsync());

  /** `buckets`: so long ago, and how many units. */
  async function write(customer: string, ...buckets: readonly (readonly [agoMs: number, units: number])[]) {
    const indices = buckets.map(([agoMs, units]) => [Math.floor((Date.now() - agoMs) / BUCKET_MS), units] as const);
    const sorted = indices.toSorted(([a], [b]) => a - b);
    const used = indices.reduce((sum, [, units]) => sum + units, 0);
    const head = `epoch ${used} ${sorted[0]?.[0]} ${sorted.at(-1)?.[0]} 0`;
    await redis.command('HSET', `test:window:{${customer}}`, 'head', head, ...indices.flat());
  }

  test('units that have dropped since the last reservation are not counted', async () => {
    await write('mixed', [4_000_000, 50], [3_700_000, 20], [1_800_000, 8], [0, 2]);
    await write('over', [4_000_000, 50]);
    expect(
      await store.usages.usedOf([
        { customer: 'mixed', from: 10 },
        { customer: 'over', from: 1 },
      ]),
    ).toEqual([10, 0]);
    expect((await reserve(store, 'mixed', 0)).counts[0].used).toBe(10);
  });

  test('whole windows are read only where their heads do not answer the question', async () => {
    await write('exact', [1_800_000, 90]);
    await write('low', [4_000_000, 50], [0, 2]);
    await write('unclear', [4_000_000, 50], [0, 45]);
    await redis.command('CONFIG', 'RESETSTAT');
    const [exact, low = 0, unclear] = await store.usages.usedOf([
      { customer: 'exact', from: 80 },
      { customer: 'low', from: 80 },
      { customer: 'unclear', from: 80 },
    ]);
    expect([exact, unclear]).toEqual([90, 45]);
    expect(low).toBeLessThan(80);
    expect((await readCommandStats(redis)).get('hgetall')?.calls).toBe(1);
  });

  test('what is no window of ours counts nothing', async () => {
    await redis.command('RPUSH', 'test:window:{list}', 'x');
    await redis.command('HSET', 'test:window:{odd}', 'head', 'nonsense');
    const asked = ['list', 'odd'].map((customer) => ({ customer, from: 1 }));
    expect(await store.usages.usedOf(asked)).toEqual([0, 0]);
  });
});
