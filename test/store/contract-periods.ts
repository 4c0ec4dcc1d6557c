/** What every store promises of days and months. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { periodOf } from '../../src/store/period-counts.ts';
import { hourly, type PeriodLimit } from '../../src/store/windows.ts';
import { charged, type OpenStore, RecordingObserver, refundOf, request } from './contract.ts';

const HOUR_MS = 3_600_000;
const MONTH: PeriodLimit = { policy: 'monthly', amount: 7, beyond: 'refuse', anchorMs: 0, plan: 'starter' };
const customer = { id: 'acme', plan: 'starter', suspended: false };

/** A reservation of the hour, with a limit that never refuses, and of a period. */
const inPeriod = (overrides: Partial<PeriodLimit> = {}, asked: Parameters<typeof request>[0] = {}) =>
  request({ ...asked, limits: [...hourly(1000), { ...MONTH, ...overrides }] });

export function periodsContract(name: string, openStore: OpenStore): void {
  async function open() {
    const store = await openStore(new RecordingObserver());
    onTestFinished(() => store.close());
    return store;
  }

  describe(`${name}: periods`, () => {
    test('a grant takes its units from the hour and the period, and says when the period ends', async () => {
      const { windows } = await open();
      const { granted, counts, storeTimeMs } = await windows.reserve(inPeriod({}, { need: 5 }));
      const { startHour, endHour } = periodOf(MONTH, storeTimeMs);
      const period = { startHour, endHour, beyond: 'refuse' };
      const waitMs = endHour * HOUR_MS - storeTimeMs;
      expect(granted).toBe(5);
      expect(counts[0]).toMatchObject({ policy: 'hourly', used: 5, free: 995 });
      expect(counts[1]).toMatchObject({ policy: 'monthly', used: 5, free: 2, waitMs, period });
    });

    test('a period that is used up grants nothing, and a refusal takes nothing from the hour', async () => {
      const { windows } = await open();
      expect(await windows.reserve(inPeriod({}, { need: 9 }))).toMatchObject({ granted: 7 });
      expect(await windows.reserve(inPeriod())).toMatchObject({
        granted: 0,
        counts: [{ used: 7 }, { used: 7, free: 0 }],
      });
      expect(await windows.reserve(request({ limit: 1000 }))).toMatchObject({ granted: 1 });
    });

    test('what exceeds a period that allows it is counted, and shown as less than nothing left', async () => {
      const { windows } = await open();
      const granted = await windows.reserve(inPeriod({ beyond: 'allow' }, { need: 9 }));
      expect(granted).toMatchObject({ granted: 9, counts: [{}, { used: 9, free: -2 }] });
      // It may be refused from now on.
      expect(await windows.reserve(inPeriod())).toMatchObject({ granted: 0, counts: [{}, { used: 9, free: 0 }] });
    });

    test('reports read the present period of each customer, in the order asked for, and change nothing', async () => {
      const { windows, records, usages } = await open();
      await records.createCustomer(customer);
      await windows.reserve(inPeriod({}, { need: 5 }));
      await records.resetPeriod('acme', '2026-03-01T12:00:00.000Z', MONTH);
      await windows.reserve(inPeriod({ beyond: 'allow' }, { grant: 'b', need: 9 }));
      const day: PeriodLimit = { ...MONTH, policy: 'daily' };
      const asked = [MONTH, { ...MONTH, beyond: 'allow' as const }, day].map((period) => ({
        customer: 'acme',
        period,
      }));
      for (let times = 0; times < 2; times++) {
        const counts = await usages.presentPeriodsOf([{ customer: 'nobody', period: MONTH }, ...asked]);
        expect(counts.map(({ used, free }) => [used, free])).toEqual([
          [0, 7],
          [9, 0],
          [9, -2],
          [0, 7],
        ]);
      }
      expect(await usages.presentPeriodsOf([])).toEqual([]);
    });

    test('units that come back, come back to the period, too', async () => {
      const { windows } = await open();
      const asked = inPeriod({}, { need: 7 });
      await windows.reserve(asked);
      for (let times = 0; times < 2; times++)
        expect(await windows.refund('acme', [refundOf(asked, 3)])).toBe(times ? 0 : 3);
      expect(await windows.reserve(inPeriod({}, { need: 9 }))).toMatchObject({ granted: 3 });
    });

    test('a report counts in the present period, once, whatever the limit', async () => {
      const { windows } = await open();
      const report = [charged(2 * HOUR_MS, 5), charged(0, 4)];
      for (let times = 0; times < 2; times++) {
        expect(await windows.charge('acme', report, MONTH)).toMatchObject({ used: 4, period: { used: 9, free: 0 } });
      }
    });

    test('another anchor, and a day in place of a month, lead to their own count, and back to the old one', async () => {
      const { windows } = await open();
      const { storeTimeMs } = await windows.reserve(inPeriod({}, { need: 3 }));
      // Not the present hour and not the first day of a month.
      const time = new Date(storeTimeMs + 12 * HOUR_MS);
      const anchorMs = Date.UTC(2026, 0, 2 + (time.getUTCDate() % 20), time.getUTCHours());
      const read = { need: 0 };
      expect((await windows.reserve(inPeriod({ anchorMs }, read))).counts[1]).toMatchObject({ used: 0 });
      expect((await windows.reserve(inPeriod({ policy: 'daily' }, read))).counts[1]).toMatchObject({ used: 0 });
      expect((await windows.reserve(inPeriod({ amount: 90, plan: 'other' }, read))).counts[1]).toMatchObject({
        used: 3,
      });
    });

    test('a reset of the period forgives what it has counted, and leaves the hour alone', async () => {
      const { records, windows } = await open();
      await records.createCustomer(customer);
      await windows.reserve(inPeriod({}, { need: 7 }));
      const resetAt = '2026-05-06T07:08:09Z';
      expect(await records.resetPeriod('acme', resetAt, MONTH)).toEqual({ ...customer, periodResetAt: resetAt });
      expect(await records.findCustomerRecord('acme')).toEqual({ ...customer, periodResetAt: resetAt });
      expect(await windows.reserve(inPeriod({}, { need: 9 }))).toMatchObject({
        granted: 7,
        counts: [{ used: 14 }, { used: 7, free: 0 }],
      });
    });

    test('the periods of customers are read as they were counted, in the order asked', async () => {
      const { records, windows, periods } = await open();
      await records.createCustomer(customer);
      const reserved = await windows.reserve(inPeriod({ beyond: 'allow' }, { need: 9 }));
      await records.resetPeriod('acme', '2026-05-06T07:08:09Z', MONTH);
      const asked = inPeriod({ beyond: 'allow', amount: 5, plan: 'other' }, { need: 8 });
      await windows.reserve(asked);
      await windows.refund('acme', [refundOf(asked, 2)]);
      const { startHour, endHour } = periodOf(MONTH, reserved.storeTimeMs);
      const [startMs, endMs] = [startHour * HOUR_MS, endHour * HOUR_MS];
      const read = { plan: 'other', startMs, endMs, included: 5, used: 15, forgiven: 9, overage: 1 };
      expect(await periods.periodsOf(['nobody', 'acme', 'globex'])).toEqual([
        { periods: [], isDamaged: false },
        { periods: [read], isDamaged: false },
        { periods: [], isDamaged: false },
      ]);
      // Half a minute after the end of an hour at most.
      const closedForMs = reserved.storeTimeMs - (await periods.openFromMs());
      expect(closedForMs).toBeLessThan(HOUR_MS + 30_000);
    });

    test('a reset of the hour leaves the period alone', async () => {
      const { records, windows } = await open();
      await records.createCustomer(customer);
      await windows.reserve(inPeriod({}, { need: 5 }));
      await records.resetUsage('acme', '2026-05-06T07:08:09Z');
      expect((await windows.reserve(inPeriod({}, { need: 0 }))).counts).toMatchObject([{ used: 0 }, { used: 5 }]);
    });

    test('a reset makes no customer of one that is not there', async () => {
      const { records } = await open();
      expect(await records.resetPeriod('acme', '2026-05-06T07:08:09Z', MONTH)).toBeUndefined();
      expect(await records.findCustomer('acme')).toBeUndefined();
    });

    test('a deleted customer takes its periods along: one that is created again begins with 0', async () => {
      const { records, windows } = await open();
      await records.createCustomer(customer);
      const asked = inPeriod({}, { need: 5 });
      await windows.reserve(asked);
      await records.deleteCustomer('acme');
      await records.createCustomer(customer);
      await windows.reserve(inPeriod({}, { need: 2 }));
      await windows.refund('acme', [refundOf(asked, 5)]);
      expect((await windows.reserve(inPeriod({}, { need: 0 }))).counts[1]).toMatchObject({ used: 2 });
    });
  });
}
