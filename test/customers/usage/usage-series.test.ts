import { expect, test } from 'vitest';
import {
  HistoryRangeError,
  seriesRange,
  totalsSeries,
  usageSeries,
} from '../../../src/customers/usage/usage-series.ts';
import { DAY_MS, HOUR_MS, type UsageHistory } from '../../../src/store/usage-history.ts';

const NOON_MS = Date.UTC(2026, 2, 1, 12);

function historyOf(parts: Partial<UsageHistory>): UsageHistory {
  return { hours: async () => [[]], days: async () => [], totals: async () => [], ...parts } as UsageHistory;
}

test('without a range, hours are the last 24 and days the last 35, the present one included', () => {
  const hours = seriesRange('hour', NOON_MS + 1, {});
  expect(hours).toEqual({ fromMs: NOON_MS - 23 * HOUR_MS, toMs: NOON_MS + HOUR_MS });
  const days = seriesRange('day', NOON_MS, {});
  expect((days.toMs - days.fromMs) / DAY_MS).toBe(35);
});

test('a range becomes the whole hours or days around it', () => {
  const wanted = { fromMs: NOON_MS + 1, toMs: NOON_MS + 2 };
  expect(seriesRange('hour', NOON_MS, wanted)).toEqual({ fromMs: NOON_MS, toMs: NOON_MS + HOUR_MS });
});

test('a range without points, or with too many, is an error', () => {
  expect(() => seriesRange('hour', NOON_MS, { fromMs: NOON_MS, toMs: NOON_MS })).toThrow(HistoryRangeError);
  expect(() => seriesRange('hour', NOON_MS, { fromMs: NOON_MS - 2000 * HOUR_MS })).toThrow(/for days/);
});

test('hours without data are 0, and the newest is open', async () => {
  const history = historyOf({
    hours: async () => [
      [{ startMs: NOON_MS - HOUR_MS, requests: 7, units: 31, refused: { quota_exceeded: 2, suspended: 1 } }],
    ],
  });
  const range = { fromMs: NOON_MS - 2 * HOUR_MS, toMs: NOON_MS + HOUR_MS };
  expect(await usageSeries(history, 'acme', 'hour', range, NOON_MS + 5)).toEqual([
    { start: '2026-03-01T10:00:00Z', requests: 0, units: 0, refused: 0 },
    {
      start: '2026-03-01T11:00:00Z',
      requests: 7,
      units: 31,
      refused: 3,
      refusedByCode: { quota_exceeded: 2, suspended: 1 },
    },
    { start: '2026-03-01T12:00:00Z', requests: 0, units: 0, refused: 0, open: true },
  ]);
});

test('days come from the daily sums, which are kept longer; refusals from the hours', async () => {
  const dayMs = NOON_MS - 12 * HOUR_MS;
  const history = historyOf({
    hours: async () => [[{ startMs: NOON_MS, requests: 1, units: 1, refused: { suspended: 4 } }]],
    days: async () => [
      { startMs: dayMs - DAY_MS, units: 9, requests: 0 },
      { startMs: dayMs, units: 5, requests: 0 },
    ],
  });
  expect(await usageSeries(history, 'acme', 'day', { fromMs: dayMs - DAY_MS, toMs: dayMs + DAY_MS }, NOON_MS)).toEqual([
    { start: '2026-02-28T00:00:00Z', requests: 9, units: 9, refused: 0 },
    { start: '2026-03-01T00:00:00Z', requests: 5, units: 5, refused: 4, refusedByCode: { suspended: 4 }, open: true },
  ]);
});

test('requests of a day are those that were counted, and units of its hours in which they were not', async () => {
  const dayMs = NOON_MS - 12 * HOUR_MS;
  const history = historyOf({
    // In the first hour each request took one unit, so that none was counted.
    hours: async () => [
      [
        { startMs: dayMs, requests: 40, units: 40, refused: {} },
        { startMs: dayMs + HOUR_MS, requests: 3, units: 15, refused: {} },
      ],
    ],
    days: async () => [
      { startMs: dayMs - DAY_MS, units: 100, requests: 20 },
      { startMs: dayMs, units: 55, requests: 3 },
    ],
  });
  const range = { fromMs: dayMs - DAY_MS, toMs: dayMs + DAY_MS };
  expect(await usageSeries(history, 'acme', 'day', range, NOON_MS)).toMatchObject([
    { requests: 20, units: 100 },
    { requests: 43, units: 55 },
  ]);
});

test('totals of a day are the sums of its hours, by plan', async () => {
  const counts = { requests: 2, refused: 1, upstream_errors: 0 };
  const history = historyOf({
    totals: async () => [
      { startMs: NOON_MS, plan: 'starter', counts },
      { startMs: NOON_MS + HOUR_MS, plan: 'starter', counts },
      { startMs: NOON_MS, plan: 'business', counts },
    ],
  });
  const dayMs = NOON_MS - 12 * HOUR_MS;
  expect(await totalsSeries(history, 'day', { fromMs: dayMs, toMs: dayMs + DAY_MS }, NOON_MS + DAY_MS)).toEqual([
    {
      start: '2026-03-01T00:00:00Z',
      plans: { starter: { requests: 4, refused: 2, upstream_errors: 0 }, business: counts },
    },
  ]);
});
