/**
 * A year of customers with random anchors, most of which use up some days or months, over gateways whose connections are
 * lost, in virtual time. Each period is read when it closes, as a bill would.
 */
import { expect, test } from 'vitest';
import { periodOf } from '../../../src/store/period-counts.ts';
import { DAY_MS, HOUR_MS } from '../../../src/store/usage-history.ts';
import { hourly, type PeriodLimit } from '../../../src/store/windows.ts';
import { unharmed } from '../../../tools/simulator/simulated-store.ts';
import { VirtualWorld } from '../../../tools/simulator/virtual-world.ts';
import { type StoredPeriod, storedPeriods, unitsWithin } from './support/stored-periods.ts';

/** A period is read this much after its end: no unit returns to it any more. */
const CLOSED_MS = 31_000;

test('a year of customers: closed periods follow each other without gap or overlap, never change, and each is the sum of its hours', {
  timeout: 600_000,
}, async () => {
  const startMs = Date.UTC(2027, 9, 5, 13);
  const endMs = startMs + 366 * DAY_MS;
  const world = new VirtualWorld({
    ...{
      seed: 1,
      gateways: 3,
      limit: 1000,
      customers: 2000,
      onError: 'deny',
      timeoutMs: 100,
      startMs,
      clockSkewMs: 500,
    },
    clocks: 'random',
    fate: (dice) => {
      const way = unharmed(dice.between(0.1, 4), dice.between(0.1, 4));
      return dice.chance(0.002)
        ? { ...way, lost: 'reply', noticedAfterMs: 500, reconnectMs: dice.between(0, 3000) }
        : way;
    },
    dispatch: (dice) => ({ kind: dice.chance(0.1) ? 'fails' : 'begins', afterMs: dice.between(0, 1500) }),
  });
  const { dice, time, store } = world;
  const request = (atMs: number, customer: string, limit: PeriodLimit) => {
    const units = dice.chance(0.2) ? 5 : 1;
    time.at(Math.max(0, atMs - startMs), () => {
      const gateway = world.gateway(Math.floor(dice.between(0, 3)));
      gateway.settings = { limits: [...hourly(1000), limit], usageResetAt: '' };
      gateway.request(() => undefined, customer, units);
    });
  };

  const count = 1000;
  const customers = Array.from({ length: count }, (_, index) => {
    // A tenth has days: there are thirty times as many.
    const policy = index % 10 === 0 ? ('daily' as const) : ('monthly' as const);
    const anchorMs = dice.chance(0.3) ? Date.UTC(2026, 0, 31, dice.between(0, 24)) : dice.between(0, 5e5) * HOUR_MS;
    const amount = Math.ceil(dice.between(5, 20));
    const limit: PeriodLimit = {
      ...{ policy, amount, beyond: 'refuse', plan: 'starter' },
      anchorMs: wholeHour(anchorMs),
    };
    return { id: `customer-${index}`, limit, closed: [] as StoredPeriod[] };
  });
  for (const { id, limit, closed } of customers) {
    for (let atMs = startMs; atMs < endMs; ) {
      const { startHour, endHour } = periodOf(limit, atMs);
      const [fromMs, toMs] = [Math.max(startMs, startHour * HOUR_MS), endHour * HOUR_MS];
      // At the beginning, in between, and around the end.
      request(fromMs + 40_000, id, limit);
      const isBusy = dice.chance(limit.policy === 'daily' ? 0.05 : 0.3);
      for (let left = isBusy ? 20 : 2; left > 0; left--) request(dice.between(fromMs, toMs), id, limit);
      if (isBusy) for (let left = 10; left > 0; left--) request(toMs + dice.between(-10_000, 5000), id, limit);
      time.at(toMs + CLOSED_MS - startMs, () => {
        closed.push(...storedPeriods(store, id).filter((period) => period.endHour === endHour));
      });
      atMs = toMs;
    }
  }
  await time.runUntil(endMs + 32 * DAY_MS - startMs);

  let filled = 0;
  for (const { id, limit, closed } of customers) {
    const history = store.hours(id);
    for (const [index, period] of closed.entries()) {
      expect(period.startHour).toBe(closed[index - 1]?.endHour ?? periodOf(limit, startMs).startHour);
      expect(period).toMatchObject(calendarPeriod(period.startHour, limit));
      expect(unitsWithin(history, period)).toBe(period.counted);
      if (period.counted === limit.amount) filled++;
    }
    const lastHour = closed.at(-1)?.endHour ?? 0;
    expect(lastHour).toBeGreaterThanOrEqual(endMs / HOUR_MS);
    // Those that the store still has are as they were when they closed.
    const kept = storedPeriods(store, id).filter(({ endHour }) => endHour <= lastHour);
    expect(closed.slice(-kept.length)).toEqual(kept);
  }
  expect(world.begins.length).toBeGreaterThan(20 * count);
  expect(filled).toBeGreaterThan(count / 4);
});

const wholeHour = (ms: number) => Math.floor(ms / HOUR_MS) * HOUR_MS;

/** Returns the period that begins in an hour, by the calendar of the date library of ECMAScript. */
function calendarPeriod(startHour: number, { policy, anchorMs }: PeriodLimit) {
  const [anchor, starts, ends] = [new Date(anchorMs), new Date(startHour * HOUR_MS), new Date(startHour * HOUR_MS)];
  expect(starts.getUTCHours()).toBe(anchor.getUTCHours());
  if (policy === 'daily') return { endHour: startHour + 24 };
  // Day 0 is the last one of the month before.
  const lastDay = (month: number) => new Date(Date.UTC(starts.getUTCFullYear(), month + 1, 0)).getUTCDate();
  expect(starts.getUTCDate()).toBe(Math.min(anchor.getUTCDate(), lastDay(starts.getUTCMonth())));
  ends.setUTCMonth(starts.getUTCMonth() + 1, Math.min(anchor.getUTCDate(), lastDay(starts.getUTCMonth() + 1)));
  return { endHour: ends.getTime() / HOUR_MS };
}
