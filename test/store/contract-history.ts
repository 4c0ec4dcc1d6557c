/** What every store promises of the usage history. Part of the contract suite. */
import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, NEAR_CUSTOMERS, type UsageRetention } from '../../src/store/usage-history.ts';
import { hourly } from '../../src/store/windows.ts';
import type { OpenedStore } from './opened-store.ts';

export const RETENTION: UsageRetention = { hoursDays: 35, days: 400 };

const NONE = { counts: [], totals: [], near: [] };

export function historyContract(name: string, open: () => Promise<OpenedStore>): void {
  async function openHistory(customers: readonly string[] = ['acme', 'other', 'a', 'b', 'c']) {
    const { records, usageHistory: history } = (await open()).store;
    if (history === undefined) throw new Error('the store was opened without a history');
    await Promise.all(customers.map((id) => records.createCustomer({ id, plan: 'starter', suspended: false })));
    return { records, history, hourMs: Math.floor((await history.nowMs()) / HOUR_MS) * HOUR_MS };
  }

  describe(`${name}: usage history`, () => {
    test('refunds of units that were granted before a customer was deleted change nothing in the history of the next one', async () => {
      const { store } = await open();
      const history = store.usageHistory;
      if (history === undefined) throw new Error('the store was opened without a history');
      const acme = { id: 'acme', plan: 'starter', suspended: false };
      await store.records.createCustomer(acme);
      const request = { customer: 'acme', ahead: 0, limits: hourly(100), holdMs: 2000, refunds: [] };
      const { storeTimeMs } = await store.windows.reserve({ ...request, grant: 'before', need: 8 });
      await store.records.deleteCustomer('acme');
      await store.records.createCustomer(acme);
      await store.windows.reserve({ ...request, grant: 'after', need: 20 });
      const hour = Math.floor(storeTimeMs / HOUR_MS);
      await store.windows.refund('acme', [{ grant: 'before', units: 3, isFinal: true }]);
      const range = { fromMs: hour * HOUR_MS, toMs: storeTimeMs + HOUR_MS };
      const [hours = []] = await history.hours(['acme'], range);
      expect(hours.reduce((sum, { units }) => sum + units, 0)).toBe(20);
    });

    test('subtracts a refund of reported units that were older than the store itself by its clock', async () => {
      const { store } = await open();
      const history = store.usageHistory;
      if (history === undefined) throw new Error('the store was opened without a history');
      await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
      const nowMs = await history.nowMs();
      const request = { customer: 'acme', ahead: 0, limits: hourly(100), holdMs: 2000, refunds: [] };
      await store.windows.reserve({ ...request, grant: 'grant', need: 1 });
      // As a gateway reports units that count in the history alone, if its clock is 20 s ahead.
      await store.windows.charge('acme', [{ grant: 'report', ageMs: nowMs + 20_000, units: 5 }]);
      await store.windows.refund('acme', [{ grant: 'report', units: 2, isFinal: false }]);
      const [hours = []] = await history.hours(['acme'], { fromMs: nowMs - HOUR_MS, toMs: nowMs + HOUR_MS });
      expect(hours.reduce((sum, { requests }) => sum + requests, 0)).toBe(4);
    });

    test('adds refusals by customer, hour and code', async () => {
      const { history, hourMs } = await openHistory();
      const refusal = { customer: 'acme', hourMs, code: 'quota_exceeded', count: 2 };
      const earlier = { ...refusal, hourMs: hourMs - 2 * HOUR_MS, code: 'too_many_requests', count: 1 };
      await history.add({ ...NONE, counts: [refusal, earlier, { ...refusal, customer: 'other' }] });
      await history.add({ ...NONE, counts: [{ ...refusal, count: 3 }] });
      const range = { fromMs: hourMs - DAY_MS, toMs: hourMs + HOUR_MS };
      expect(await history.hours(['acme', 'nobody', 'other'], range)).toEqual([
        [
          { startMs: hourMs - 2 * HOUR_MS, requests: 0, units: 0, refused: { too_many_requests: 1 } },
          { startMs: hourMs, requests: 0, units: 0, refused: { quota_exceeded: 5 } },
        ],
        [],
        [{ startMs: hourMs, requests: 0, units: 0, refused: { quota_exceeded: 2 } }],
      ]);
    });

    test('has the units of each hour and day, and requests where they were counted', async () => {
      const { store } = await open();
      const { records, usageHistory: history, windows } = store;
      if (history === undefined) throw new Error('the store was opened without a history');
      await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
      const request = { customer: 'acme', grant: 'a', ahead: 0, limits: hourly(1000), holdMs: 2000, refunds: [] };
      const { storeTimeMs } = await windows.reserve({ ...request, need: 45, heaviest: 5 });
      const hourMs = Math.floor(storeTimeMs / HOUR_MS) * HOUR_MS;
      const dayMs = Math.floor(hourMs / DAY_MS) * DAY_MS;
      const range = { fromMs: dayMs - DAY_MS, toMs: dayMs + DAY_MS };
      const read = async () => [(await history.hours(['acme'], range))[0], await history.days('acme', range)];
      expect(await read()).toEqual([
        [{ startMs: hourMs, units: 45, requests: 45, refused: {} }],
        [{ startMs: dayMs, units: 45, requests: 0 }],
      ]);
      const sent = { customer: 'acme', hourMs, code: 'n', count: 9 };
      const yesterday = { ...sent, hourMs: dayMs - HOUR_MS, count: 2 };
      await history.add({ ...NONE, counts: [sent, yesterday, { ...sent, customer: 'unknown' }] });
      await history.add({ ...NONE, counts: [{ ...sent, count: 1 }] });
      expect(await read()).toEqual([
        [
          { startMs: dayMs - HOUR_MS, units: 0, requests: 2, refused: {} },
          { startMs: hourMs, units: 45, requests: 10, refused: {} },
        ],
        [
          { startMs: dayMs - DAY_MS, units: 0, requests: 2 },
          { startMs: dayMs, units: 45, requests: 10 },
        ],
      ]);
      expect(await history.refused(0, 10)).toEqual([]);
      expect(await history.days('unknown', range)).toEqual([]);
      await records.deleteCustomer('acme');
      expect(await read()).toEqual([[], []]);
    });

    test('adds calls of deprecated routes by customer and route, and gives those of 35 days, the latest first', async () => {
      const { history, records } = await openHistory();
      const nowMs = await history.nowMs();
      const today = { customer: 'acme', route: '/v1/{id}', count: 2, gone: 0, lastAtMs: nowMs - 1000 };
      const last = { ...today, count: 0, gone: 3, lastAtMs: nowMs };
      const before = { ...today, count: 5, lastAtMs: nowMs - 34 * DAY_MS };
      const ofOther = { customer: 'other', route: '/v1', count: 1, gone: 0, lastAtMs: nowMs - 2000 };
      for (const deprecated of [
        [last, before],
        [today, ofOther],
      ])
        await history.add({ ...NONE, deprecated });
      await history.add({ ...NONE, deprecated: [{ ...today, count: 100, lastAtMs: nowMs - 35 * DAY_MS }] });
      const acme = { ...last, count: 7, lastAtMs: Math.floor(nowMs) };
      expect(await history.deprecated()).toEqual([acme, { ...ofOther, lastAtMs: Math.floor(ofOther.lastAtMs) }]);
      expect(await history.deprecated({ customer: 'acme', routes: ['/v1', '/v1/{id}'] })).toEqual([acme]);
      expect(await history.deprecated({ customer: 'acme', routes: ['/v1'] })).toEqual([]);
      await records.deleteCustomer('acme');
      expect((await history.deprecated()).map(({ customer }) => customer)).toEqual(['other']);
    });

    test('reads only the hours of the range: its start, not its end', async () => {
      const { history, hourMs } = await openHistory();
      const refusals = [-2, -1, 0].map((at) => ({
        customer: 'acme',
        hourMs: hourMs + at * HOUR_MS,
        code: 'quota_exceeded',
        count: 1,
      }));
      await history.add({ ...NONE, counts: refusals });
      const [hours] = await history.hours(['acme'], { fromMs: hourMs - HOUR_MS, toMs: hourMs });
      expect(hours?.map(({ startMs }) => startMs)).toEqual([hourMs - HOUR_MS]);
    });

    test('adds totals by plan and hour, whatever characters a plan has', async () => {
      const { history, hourMs } = await openHistory();
      const plan = 'a:b requests';
      await history.add({
        ...NONE,
        totals: [
          { plan, hourMs, what: 'requests', count: 5 },
          { plan, hourMs, what: 'upstream_errors', count: 1 },
          { plan: 'none', hourMs: hourMs - DAY_MS, what: 'refused', count: 2 },
        ],
      });
      await history.add({ ...NONE, totals: [{ plan, hourMs, what: 'requests', count: 5 }] });
      const none = { requests: 0, refused: 0, upstream_errors: 0 };
      expect(await history.totals({ fromMs: hourMs - DAY_MS, toMs: hourMs + HOUR_MS })).toEqual([
        { startMs: hourMs - DAY_MS, plan: 'none', counts: { ...none, refused: 2 } },
        { startMs: hourMs, plan, counts: { ...none, requests: 10, upstream_errors: 1 } },
      ]);
    });

    test('lists the customers nearest to their limits, highest first, by what was seen last', async () => {
      const { history } = await openHistory();
      await history.add({
        ...NONE,
        near: [
          { customer: 'a', percent: 80 },
          { customer: 'b', percent: 95 },
          { customer: 'c', percent: 120 },
        ],
      });
      await history.add({ ...NONE, near: [{ customer: 'c', percent: 85 }] });
      expect(await history.near(2)).toEqual([
        { customer: 'b', percent: 95 },
        { customer: 'c', percent: 85 },
      ]);
      await history.noLongerNear(['b']);
      expect((await history.near(10)).map(({ customer }) => customer)).toEqual(['c', 'a']);
    });

    test('keeps a bounded number of customers near their limits: the highest', async () => {
      const near = Array.from({ length: NEAR_CUSTOMERS + 5 }, (_, i) => ({ customer: `c${i}`, percent: i }));
      const { history } = await openHistory(near.map(({ customer }) => customer));
      await history.add({ ...NONE, near });
      const listed = await history.near(NEAR_CUSTOMERS + 5);
      expect(listed).toHaveLength(NEAR_CUSTOMERS);
      expect(listed.at(-1)).toEqual({ customer: 'c5', percent: 5 });
    });

    test('nothing of a deleted customer is kept, nor added later by an instance that still remembers it', async () => {
      const { records, history, hourMs } = await openHistory();
      const collected = ['acme', 'other'].map((customer) => ({ customer, hourMs, code: 'quota_exceeded', count: 2 }));
      const near = ['acme', 'other'].map((customer) => ({ customer, percent: 99 }));
      await history.add({ ...NONE, counts: collected, near });
      await records.deleteCustomer('acme');
      const range = { fromMs: hourMs - DAY_MS, toMs: hourMs + HOUR_MS };
      const read = async () => [
        await history.hours(['acme'], range),
        (await history.near(10)).map(({ customer }) => customer),
        (await history.refused(0, 10)).filter(({ customer }) => customer === 'acme'),
      ];
      expect(await read()).toEqual([[[]], ['other'], []]);
      await history.add({ ...NONE, counts: collected, near });
      expect(await read()).toEqual([[[]], ['other'], []]);
    });

    test('adding nothing changes nothing', async () => {
      const { history, hourMs } = await openHistory();
      await history.add(NONE);
      await history.noLongerNear([]);
      const range = { fromMs: hourMs - DAY_MS, toMs: hourMs + HOUR_MS };
      expect([await history.totals(range), await history.near(10), await history.days('acme', range)]).toEqual([
        [],
        [],
        [],
      ]);
    });
  });
}
