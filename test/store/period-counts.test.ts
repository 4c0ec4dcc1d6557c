/**
 * Days and months are counted twice, in TypeScript and in Lua. Both get the same random histories, across the boundaries
 * of periods, and must give the same answers and store the same fields. Both are also held against what they promise: no
 * more units than the limit are granted in a period, and the usage history has as many as the period counts.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CustomerCounters, chargeOnce, refundOnce, reserveOnce } from '../../src/store/grants.ts';
import { countInPeriod, forgivePeriod, periodOf } from '../../src/store/period-counts.ts';
import { HOURLY } from '../../src/store/window-arithmetic.ts';
import { type Grant, hourly, type Limits, type PeriodLimit, type Refund } from '../../src/store/windows.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { shareOfRuns } from '../support/share-of-runs.ts';
import { InspectableHash } from './inspectable-hash.ts';
import { InspectableNotes } from './inspectable-notes.ts';
import { scriptedHistory, scriptedWindows } from './window-scripts-with-clock.ts';

/** Far ahead of Redis' own clock, so that the expiry which the scripts set does not come during a test. */
const START_MS = Date.UTC(2200, 0, 30, 22);
const HOUR_MS = 3_600_000;
const RETENTION = { hoursDays: 3000, days: 3000 };

/** One customer in memory, open to inspection. */
class Customer implements CustomerCounters {
  readonly window = new InspectableHash();
  readonly periods = new Map<string, string>();
  readonly notes = new InspectableNotes();
  readonly history = new Map<number, number>();

  readonly windowOf = () => this.window;

  readonly addToHistory = (hour: number, units: number) => {
    const before = this.history.get(hour) ?? 0;
    const sum = Math.max(0, before + units);
    if (sum > 0) this.history.set(hour, sum);
    else this.history.delete(hour);
    return sum - before;
  };
}

interface Step {
  readonly advanceMs: number | 'boundary';
  readonly units: number;
  readonly ahead: number;
  /** Names an earlier grant by how long ago it was. */
  readonly refunds: readonly { readonly stepsAgo: number; readonly units: number }[];
  readonly kind: 'reserve' | 'charge' | 'refund' | 'reset' | 'read';
}

const step: fc.Arbitrary<Step> = fc.record({
  advanceMs: fc.oneof(
    { weight: 4, arbitrary: fc.nat(60_000) },
    { weight: 2, arbitrary: fc.nat(3 * HOUR_MS) },
    { weight: 2, arbitrary: fc.constant('boundary' as const) },
    { weight: 1, arbitrary: fc.nat(50 * 24 * HOUR_MS) },
  ),
  units: fc.nat(12),
  ahead: fc.nat(40),
  refunds: fc.array(fc.record({ stepsAgo: fc.nat(5), units: fc.nat(12) }), { maxLength: 2 }),
  kind: fc.constantFrom('reserve', 'reserve', 'reserve', 'reserve', 'charge', 'refund', 'reset', 'read'),
});

const period = fc.record({
  policy: fc.constantFrom('daily' as const, 'monthly' as const),
  amount: fc.integer({ min: 1, max: 60 }),
  beyond: fc.constantFrom('refuse' as const, 'refuse' as const, 'allow' as const),
  anchorMs: fc.constantFrom(0, Date.UTC(2026, 0, 31, 10), Date.UTC(2026, 0, 30, 23), Date.UTC(2026, 5, 15)),
  plan: fc.constantFrom('starter', 'professional'),
});

let redis: RedisServer;
let customers = 0;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('Lua and TypeScript give the same answers and store the same fields, whatever happens to the limit', async () => {
  const windows = scriptedWindows(redis, HOURLY, RETENTION);
  // Half of the steps keep the limit of the one before.
  const history = fc.array(fc.tuple(step, fc.option(fc.option(period))), { minLength: 10, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      customers += 1;
      const prefix = `p${customers}`;
      const id = `{c${customers}}`;
      const window = `${prefix}:window:${id}`;
      const inRedis = scriptedHistory(redis, prefix, RETENTION);
      const customer = new Customer();
      const grants: { readonly id: string; readonly grant: Grant }[] = [];
      let nowMs = START_MS;
      let limit: PeriodLimit | null = null;
      for (const [index, [{ advanceMs, units, ahead, refunds: past, kind }, change]] of steps.entries()) {
        if (change !== null || limit === null) limit = change;
        nowMs = advanceMs === 'boundary' ? nextBoundary(limit, nowMs) : nowMs + advanceMs;
        const refunds = past.flatMap(({ stepsAgo, units }): Refund[] => {
          const grant = grants.at(-1 - stepsAgo);
          return grant ? [{ grant: grant.id, units, isFinal: false }] : [];
        });
        const limits: Limits = limit ? [...hourly(1000), limit] : hourly(1000);
        const epoch = `epoch-${index}`;
        if (kind === 'charge') {
          const charged = [{ grant: `c${index}`, ageMs: 1000, units }];
          const expected = chargeOnce(customer, HOURLY, nowMs, charged, epoch, limit ?? undefined);
          expect(await windows.charge(window, nowMs, charged, epoch, limit ?? undefined)).toEqual(expected);
        } else if (kind === 'reset') {
          if (limit) forgivePeriod(customer.periods, limit, nowMs);
          if (limit) await windows.resetPeriod(window, nowMs, limit);
        } else {
          const asked = kind === 'reserve' ? { need: units, ahead } : { need: 0, ahead: 0 };
          const request = { ...asked, grant: `g${index}`, limits, holdMs: 2000, refunds };
          const grant = reserveOnce(customer, HOURLY, nowMs, request, epoch);
          expect(await windows.reserve([window], nowMs, [request], epoch)).toEqual([grant]);
          if (grant.granted > 0) grants.push({ id: `g${index}`, grant });
        }
        expect(await windows.fields(`${prefix}:period:${id}`)).toEqual(Object.fromEntries(customer.periods));
        expect(await windows.fields(window)).toEqual(customer.window.fields());
      }
      const day = 24 * HOUR_MS;
      const [hours = []] = await inRedis.hours([`c${customers}`], { fromMs: START_MS - day, toMs: nowMs + day });
      expect(hours.map(({ startMs, requests }) => [startMs / HOUR_MS, requests])).toEqual(
        [...customer.history].toSorted(([a], [b]) => a - b),
      );
    }),
    { numRuns: shareOfRuns(60) },
  );
}, 120_000);

/** The last millisecond of the period, or its end, or what follows before and after it closes. */
function nextBoundary(limit: PeriodLimit | null, nowMs: number): number {
  if (limit === null) return nowMs;
  const endMs = periodOf(limit, nowMs).endHour * HOUR_MS;
  return endMs + ([-1, 0, 29_999][nowMs % 4] ?? 30_000);
}

test('a period grants at most its limit, and has what the history has in its hours', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 80 }), period, (steps, limit) => {
      const customer = new Customer();
      const grants: { readonly id: string; readonly grant: Grant; returned: number }[] = [];
      let nowMs = START_MS;
      for (const [index, { advanceMs, units, ahead, refunds, kind }] of steps.entries()) {
        nowMs = advanceMs === 'boundary' ? nextBoundary(limit, nowMs) : nowMs + advanceMs;
        const { startHour, endHour } = periodOf(limit, nowMs);
        for (const { stepsAgo, units } of refunds) {
          const grant = grants.at(-1 - stepsAgo);
          if (grant === undefined) continue;
          grant.returned = Math.min(grant.grant.granted, grant.returned + units);
          const refund = { grant: grant.id, units: grant.returned, isFinal: false };
          refundOnce(customer, [undefined], nowMs, [refund]);
        }
        if (kind === 'charge') {
          chargeOnce(customer, HOURLY, nowMs, [{ grant: `c${index}`, ageMs: 0, units }], `e${index}`, limit);
        } else {
          const before = countInPeriod(customer.periods, limit, nowMs, 0);
          const request = { grant: `g${index}`, need: units, ahead, limits: [...hourly(1000), limit] as const };
          const grant = reserveOnce(customer, HOURLY, nowMs, { ...request, holdMs: 2000, refunds: [] }, `e${index}`);
          const [hour, counted] = grant.counts;
          if (limit.beyond === 'refuse') expect(grant.granted).toBeLessThanOrEqual(before.free);
          else expect(grant.granted).toBeGreaterThanOrEqual(Math.min(units, hour.free + grant.granted));
          expect(counted).toMatchObject({ used: before.used + grant.granted, period: { startHour, endHour } });
          expect(counted?.waitMs).toBe(endHour * HOUR_MS - nowMs);
          if (grant.granted > 0) grants.push({ id: `g${index}`, grant, returned: 0 });
        }
        const inHistory = [...customer.history].filter(([hour]) => hour >= startHour && hour < endHour);
        const sum = inHistory.reduce((total, [, units]) => total + units, 0);
        expect(countInPeriod(customer.periods, limit, nowMs, 0).used).toBe(sum);
      }
    }),
    { numRuns: shareOfRuns(600) },
  );
});
