import { expect, test } from 'vitest';
import type { Scheduler } from '../../../src/base/clock.ts';
import { HistoryCollector } from '../../../src/customers/usage/history-collector.ts';
import { type CollectedUsage, HOUR_MS } from '../../../src/store/usage-history.ts';
import { HeldClock } from '../keys/held-clock.ts';

function collectorOver({ storeAheadMs = 0 } = {}) {
  const clock = new HeldClock();
  const added: CollectedUsage[] = [];
  const dropped: number[] = [];
  let tick: () => void = () => undefined;
  const scheduler: Pick<Scheduler, 'after'> = {
    after(_delayMs, action) {
      tick = action;
      return { cancel: () => undefined };
    },
  };
  const store = { isUp: true, fails: false };
  const collector = new HistoryCollector({
    history: {
      nowMs: async () => clock.nowMs() + storeAheadMs,
      add: async (collected) => {
        if (store.fails) throw new Error('connection lost');
        added.push(collected);
      },
    },
    storeIsUp: () => store.isUp,
    dropped: (count) => dropped.push(count),
    clock,
    scheduler,
  });
  const flush = async () => {
    tick();
    await new Promise(setImmediate);
  };
  return { clock, collector, added, dropped, store, flush };
}

test('counts of one interval are added in one call', async () => {
  const { clock, collector, added, flush } = collectorOver();
  collector.refused('acme', 'starter', 'quota_exceeded');
  collector.refused('acme', 'starter', 'quota_exceeded');
  collector.refused(undefined, 'none', 'invalid_api_key');
  collector.sent('starter');
  collector.upstreamFailed('starter');
  collector.near('acme', 81);
  collector.near('acme', 82);
  for (const isGone of [false, true, false]) collector.deprecated('acme', '/v1/{id}', isGone);
  await flush();
  const hourMs = clock.nowMs();
  expect(added).toEqual([
    {
      counts: [{ customer: 'acme', hourMs, code: 'quota_exceeded', count: 2 }],
      totals: [
        { plan: 'starter', hourMs, what: 'requests', count: 1 },
        { plan: 'starter', hourMs, what: 'refused', count: 2 },
        { plan: 'starter', hourMs, what: 'upstream_errors', count: 1 },
        { plan: 'none', hourMs, what: 'refused', count: 1 },
      ],
      near: [{ customer: 'acme', percent: 82 }],
      deprecated: [{ customer: 'acme', route: '/v1/{id}', count: 2, gone: 1, lastAtMs: clock.nowMs() }],
      atMs: clock.nowMs(),
    },
  ]);
  await flush();
  expect(added).toHaveLength(1);
});

test('requests of a customer are counted where they are told, beside its refusals', async () => {
  const { clock, collector, added, flush } = collectorOver();
  collector.sent('starter', 'acme');
  collector.sent('starter', 'acme');
  collector.sent('starter');
  collector.refused('acme', 'starter', 'suspended');
  await flush();
  const hourMs = clock.nowMs();
  expect(added[0]).toMatchObject({
    counts: [
      { customer: 'acme', hourMs, code: 'n', count: 2 },
      { customer: 'acme', hourMs, code: 'suspended', count: 1 },
    ],
    totals: [{ what: 'requests', count: 3 }, { what: 'refused' }],
  });
});

test('a count belongs to the hour of the store, once its time is known', async () => {
  const { clock, collector, added, flush } = collectorOver({ storeAheadMs: 10_000 });
  const startMs = clock.nowMs();
  await flush();
  clock.advance(HOUR_MS - 15_000);
  collector.sent('starter');
  clock.advance(6_000);
  collector.sent('starter');
  await flush();
  expect(added.flatMap(({ totals }) => totals.map(({ hourMs }) => hourMs - startMs))).toEqual([0, HOUR_MS]);
});

test('while the store is away, counts wait for it with the hours they belong to', async () => {
  const { clock, collector, added, store, flush } = collectorOver();
  const startMs = clock.nowMs();
  store.isUp = false;
  collector.refused('acme', 'starter', 'quota_exceeded');
  await flush();
  clock.advance(HOUR_MS);
  collector.refused('acme', 'starter', 'quota_exceeded');
  store.isUp = true;
  await flush();
  expect(added.flatMap(({ counts }) => counts.map(({ hourMs }) => hourMs - startMs))).toEqual([0, HOUR_MS]);
});

test('refusals of an hour that is closed, and perhaps exported, count in the current one', async () => {
  const { clock, collector, added, store, flush } = collectorOver();
  const startMs = clock.nowMs();
  store.isUp = false;
  collector.refused('acme', 'starter', 'quota_exceeded');
  clock.advance(HOUR_MS + 30_000);
  store.isUp = true;
  await flush();
  const hours = added.map(({ counts, totals }) => [counts[0]?.hourMs, totals[0]?.hourMs]);
  expect(hours).toEqual([[startMs + HOUR_MS, startMs]]);
});

test('a write that fails is not repeated: counts may be missing, but are never counted twice', async () => {
  const { collector, added, store, flush } = collectorOver();
  store.fails = true;
  collector.sent('starter');
  await flush();
  store.fails = false;
  await flush();
  collector.sent('starter');
  await collector.close();
  expect(added.map(({ totals }) => totals.map(({ count }) => count))).toEqual([[1]]);
});

test('memory is bounded: refusals of further customers are dropped, and their number is told', async () => {
  const { collector, added, dropped, flush } = collectorOver();
  for (let customer = 0; customer < 20_003; customer++) collector.refused(`c${customer}`, 'starter', 'suspended');
  collector.refused('c0', 'starter', 'suspended');
  await flush();
  expect(added[0]?.counts).toHaveLength(20_000);
  expect(added[0]?.counts[0]?.count).toBe(2);
  expect(added[0]?.totals).toEqual([expect.objectContaining({ what: 'refused', count: 20_004 })]);
  expect(dropped).toEqual([3]);
});
