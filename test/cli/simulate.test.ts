/** Limits tried on the past: what the usage history proves. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CustomerHours } from '../../src/cli/simulate.ts';
import { tryPeriod } from '../../src/cli/simulate-periods.ts';
import { SHORT_LEASE } from '../../src/customers/quota/leases.ts';
import { MemoryHash } from '../../src/store/memory-hash.ts';
import { periodAt } from '../../src/store/periods.ts';
import { HOURLY, reserve } from '../../src/store/window-arithmetic.ts';
import { hourly } from '../../src/store/windows.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startSystem } from '../support/system.ts';
import { tollgateHereFor } from './support.ts';

const tollgate = tollgateHereFor({ admin: 'http://127.0.0.1:9' });
const START_MS = Date.UTC(2026, 0, 31, 9, 30);

it.each([
  [[]],
  [['--plan', 'starter']],
  [['--plan', 'starter=0']],
  [['--plan', 'starter=many']],
  [['--period', 'starter']],
  [['--period', 'starter=0']],
  [['--period', 'starter=5/week']],
  [['--log', 'access.log', '--plan', 'starter=1']],
])('simulate %j is wrong usage', async (args) => {
  expect((await tollgate('simulate', ...args)).status).toBe(2);
});

/** How many requests at these seconds the stores refuse: near a limit, each request reserves one unit when it arrives. */
function refusedOf(seconds: readonly number[], limit: number): number {
  const window = new MemoryHash();
  const request = { need: 1, ahead: 0, limits: hourly(limit), holdMs: SHORT_LEASE.holdMs, refunds: [] };
  return seconds.filter(
    (second) => reserve(() => window, HOURLY, START_MS + second * 1000, request, 'epoch').granted === 0,
  ).length;
}

it('the usage history proves nothing that a replay of the requests contradicts', () => {
  const arrival = fc.record({
    hour: fc.integer({ min: 0, max: 3 }),
    // Not at the very end of an hour: such a unit may still count for some seconds of the hour after the next.
    second: fc.integer({ min: 0, max: 3589 }),
  });
  fc.assert(
    fc.property(fc.array(arrival, { maxLength: 40 }), fc.integer({ min: 1, max: 12 }), (arrivals, limit) => {
      const seconds = arrivals.map(({ hour, second }) => hour * 3600 + second).sort((a, b) => a - b);
      const refused = refusedOf(seconds, limit);
      const hours = new CustomerHours('acme', 'starter', limit);
      for (let hour = 0; hour < 4; hour++) {
        const requests = arrivals.filter((each) => each.hour === hour).length;
        if (requests > 0) hours.add(hour * 3_600_000, requests);
      }
      expect(refused).toBeGreaterThanOrEqual(hours.found.refused_at_least);
      if (hours.found.verdict === 'surely') expect(refused).toBeGreaterThan(0);
      if (hours.found.verdict === 'surely_not') expect(refused).toBe(0);
    }),
  );
});

it('the usage history is read of customers that the limit of the plan applies to', async () => {
  let nowMs = START_MS;
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs - START_MS };
  const { gateway } = await startSystem({ clock });
  for (const [id, requests, own] of [
    ['acme-2', 5, undefined],
    ['globex', 2, undefined],
    ['initech', 9, 50],
  ] as const) {
    const key = await createCustomerWithKey(gateway, { id, plan: 'starter', ...(own && { requests_per_hour: own }) });
    for (let i = 0; i < requests; i++) {
      nowMs += 1000;
      await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
    }
  }
  await callAdmin(gateway, '/admin/v1/customers', { body: { id: 'idle', plan: 'starter' } });
  nowMs += 2 * 3_600_000;
  const from = new Date(START_MS - 3_600_000).toISOString();
  const { status, stdout, stderr } = await tollgateHereFor(gateway)(
    ...['simulate', '--from', from, '--plan', 'starter=4', '--customer', 'nobody=1'],
  );
  const read = `Whole hours since ${from.slice(0, 19)}Z are counted. The current hour is not.`;
  expect({ status, stderr }).toEqual({ status: 0, stderr: `There is no customer nobody.\n${read}\n` });
  expect(stdout).toMatch(/^starter +4 +4 +1 +0 +3$/m);
  expect(stdout).toMatch(/^acme-2 +starter +4 +surely +1 +5 +5$/m);
  expect(stdout).not.toMatch(/globex|initech|idle/);
});

const HOUR_MS = 3_600_000;

it('of each whole day or month the usage history proves no more and no less than its hours, wherever periods begin', () => {
  const anchor = fc.record({ day: fc.integer({ min: 1, max: 31 }), hour: fc.integer({ min: 0, max: 23 }) });
  const use = fc.record({ hour: fc.integer({ min: 0, max: 130 * 24 - 1 }), units: fc.integer({ min: 1, max: 9 }) });
  const uses = fc.array(use, { maxLength: 60 });
  const startMs = Date.UTC(2027, 11, 20);
  fc.assert(
    fc.property(
      uses,
      anchor,
      fc.constantFrom('day', 'month'),
      fc.constantFrom('hour', 'day'),
      (used, at, per, step) => {
        const stepHours = step === 'hour' ? 1 : 24;
        const points = Array.from({ length: (130 * 24) / stepHours }, (_, index) => ({
          start: new Date(startMs + index * stepHours * HOUR_MS).toISOString(),
          units: used.reduce((sum, { hour, units }) => sum + (Math.floor(hour / stepHours) === index ? units : 0), 0),
          ...{ requests: 0, refused: 0 },
        }));
        const counts = new Map<number, number>();
        for (let hour = 0; hour < 130 * 24; hour++) {
          const { startHour, endHour } = periodAt(startMs + hour * HOUR_MS, per, at);
          const isWhole = startHour * HOUR_MS >= startMs && endHour * HOUR_MS <= startMs + 130 * 24 * HOUR_MS;
          if (isWhole && !counts.has(startHour)) counts.set(startHour, 0);
        }
        for (const { hour, units } of used) {
          const { startHour } = periodAt(startMs + hour * HOUR_MS, per, at);
          const counted = counts.get(startHour);
          if (counted !== undefined) counts.set(startHour, counted + units);
        }
        const most = Math.max(0, ...counts.values());
        const over = (limit: number) => [...counts.values()].filter((count) => count > limit);
        for (const limit of [1, 5, Math.max(1, most)]) {
          const tried = tryPeriod({ step, points }, limit, per, at);
          expect(tried.periods).toBe(counts.size);
          expect(tried.exceeded_at_least).toBeLessThanOrEqual(over(limit).length);
          expect(tried.most_in_one_period).toBeGreaterThanOrEqual(most);
          if (tried.verdict === 'surely') expect(over(limit)).not.toEqual([]);
          if (tried.verdict === 'surely_not') expect(over(limit)).toEqual([]);
          if (step === 'day' && at.hour !== 0) continue;
          const overage = over(limit).reduce((sum, count) => sum + count - limit, 0);
          expect(tried).toMatchObject({ overage_at_least: overage, most_in_one_period: most });
          expect(tried.verdict).toBe(over(limit).length > 0 ? 'surely' : 'surely_not');
        }
      },
    ),
    { numRuns: 60 },
  );
});

it('periods are tried on whole past days and months, of customers without a number of their own', async () => {
  // The command reads the history by the clock of this machine.
  const thisDayMs = Math.floor(Date.now() / (24 * HOUR_MS)) * 24 * HOUR_MS;
  let nowMs = thisDayMs - 3 * 24 * HOUR_MS;
  const startedMs = nowMs;
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs - startedMs };
  const config = { plans: { starter: { requests_per_hour: 100 } } };
  const { gateway } = await startSystem({ clock, config });
  for (const [id, requests, own] of [
    ['acme-2', 5, undefined],
    ['globex', 2, undefined],
    ['initech', 9, 50],
  ] as const) {
    const key = await createCustomerWithKey(gateway, { id, plan: 'starter', ...(own && { period_requests: own }) });
    for (let i = 0; i < requests; i++) {
      nowMs += 1000;
      await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
    }
  }
  nowMs = thisDayMs + 1000;
  const tollgate = tollgateHereFor(gateway);
  const { status, stdout, stderr } = await tollgate('simulate', '--period', 'starter=4/day');
  const read = 'Whole days and months that the usage history still has are counted. The current ones are not.';
  expect({ status, stderr }).toEqual({ status: 0, stderr: `${read}\n` });
  expect(stdout).toMatch(/^starter +4 +day +3 +1 +0 +2 +0$/m);
  expect(stdout).toMatch(/^acme-2 +starter +4 +day +surely +\d+ +1 +1 +5$/m);
  expect(stdout).not.toMatch(/globex|initech/);
  const { stdout: json } = await tollgate('simulate', '--period', 'starter=4', '--from', '2d', '--json');
  const { periods, ...hours } = JSON.parse(json);
  expect(hours).toEqual({});
  expect(periods.plans).toEqual([
    { plan: 'starter', requests: 4, per: 'month', customers: 3, surely: 0, perhaps: 0, surely_not: 0, unknown: 3 },
  ]);
});
