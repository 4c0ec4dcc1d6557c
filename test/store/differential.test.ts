/**
 * The window exists twice, in TypeScript and in Lua. Both get the same random histories and must give the same answers
 * and keep the same buckets, whatever the clock does. Where the clock only goes forward, both are also held against a
 * model that knows nothing of heads, walks or recounts: a list of what was granted and reported.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CustomerCounters, chargeOnce, refundOnce, reserveOnce } from '../../src/store/grants.ts';
import {
  charge,
  refund,
  reserve,
  reset,
  type WindowCharge,
  type WindowShape,
} from '../../src/store/window-arithmetic.ts';
import { type Grant, hourly, type Limits, type Refund, type WindowRoot } from '../../src/store/windows.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { shareOfRuns } from '../support/share-of-runs.ts';
import { InspectableHash } from './inspectable-hash.ts';
import { InspectableNotes } from './inspectable-notes.ts';
import { type ScriptedWindows, scriptedWindows } from './window-scripts-with-clock.ts';

/** Far ahead of Redis' own clock, so that the expiry which reserve sets does not come during a test. */
const START_MS = Date.UTC(2200, 0, 1);
const HOURLY: WindowShape = { windowMs: 3_600_000, bucketMs: 10_000 };
const SHORT: WindowShape = { windowMs: 60_000, bucketMs: 1000 };
const MAX_HOLD_MS = 10_000;
const RUNS = shareOfRuns(80);

type Step =
  | {
      readonly kind: 'reserve';
      readonly advanceMs: number;
      readonly need: number;
      readonly heaviest: number;
      readonly ahead: number;
      readonly limit: number;
      readonly holdMs: number;
      readonly refunds: readonly PastRefund[];
    }
  | { readonly kind: 'refund'; readonly refunds: readonly PastRefund[] }
  | { readonly kind: 'reset' }
  | {
      readonly kind: 'report';
      readonly advanceMs: number;
      readonly admitted: readonly WindowCharge[];
      readonly again: boolean;
    };

/** Names an earlier grant by how long ago it was, or the next one. */
interface PastRefund {
  readonly stepsAgo: number;
  readonly units: number;
  readonly isFinal: boolean;
}

let redis: RedisServer;
let keyNumber = 0;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const pastRefund = fc.record({
  stepsAgo: fc.integer({ min: -1, max: 6 }),
  units: fc.nat(12),
  isFinal: fc.boolean(),
});
const pastRefunds = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  { weight: 1, arbitrary: fc.array(pastRefund, { maxLength: 3 }) },
);

const heaviest = fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 25 }));

function steps(
  shape: WindowShape,
  { goesBack, isReset }: { goesBack: boolean; isReset: boolean },
): fc.Arbitrary<Step[]> {
  const forward = fc.oneof(
    { weight: 4, arbitrary: fc.nat(2 * shape.bucketMs) },
    { weight: 3, arbitrary: fc.nat(20 * shape.bucketMs) },
    { weight: 1, arbitrary: fc.nat(2 * shape.windowMs) },
  );
  const back = fc.oneof(fc.nat(90_000), fc.nat(2 * shape.windowMs)).map((ms) => -ms);
  const advanceMs = goesBack ? fc.oneof({ weight: 8, arbitrary: forward }, { weight: 1, arbitrary: back }) : forward;
  const reserveStep = fc.record({
    kind: fc.constant('reserve' as const),
    advanceMs,
    need: fc.oneof(fc.nat(3), fc.nat(30)),
    heaviest,
    ahead: fc.nat(40),
    limit: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(20, 50) }, { weight: 1, arbitrary: fc.nat(60) }),
    holdMs: fc.constantFrom(0, 1000, 2000, 10_000),
    refunds: pastRefunds,
  });
  const refundStep = fc.record({ kind: fc.constant('refund' as const), refunds: pastRefunds });
  // From what is about to be sent up to what was dropped long ago; between two milliseconds too.
  const ageMs = fc.oneof(
    fc.integer({ min: goesBack ? -60_000 : -MAX_HOLD_MS, max: 1.2 * shape.windowMs }),
    fc.constant(0.25),
  );
  const root = fc.constantFrom(undefined, 'first', 'second');
  const admitted = fc.array(fc.record({ ageMs, units: fc.nat(12), root }), { maxLength: 5 });
  const reportStep = fc.record({ kind: fc.constant('report' as const), advanceMs, admitted, again: fc.boolean() });
  return fc.array(
    fc.oneof(
      { weight: 6, arbitrary: reserveStep },
      { weight: 1, arbitrary: refundStep },
      { weight: 1, arbitrary: reportStep },
      ...(isReset ? [{ weight: 1, arbitrary: fc.constant({ kind: 'reset' as const }) }] : []),
    ),
    { minLength: 20, maxLength: 60 },
  );
}

/** The id of the grant of each step. */
function idOf(step: number): string {
  return `grant-${step}`;
}

function resolve(past: readonly PastRefund[], step: number): Refund[] {
  return past.map(({ stepsAgo, units, isFinal }) => {
    const grant = idOf(stepsAgo < 0 ? step + 1 : step - 1 - stepsAgo);
    return { grant, units, isFinal };
  });
}

class Counters implements CustomerCounters {
  readonly periods = new Map<string, string>();
  readonly notes = new InspectableNotes();
  readonly hashes = new Map<WindowRoot, InspectableHash>();

  windowOf = (root: WindowRoot): InspectableHash => {
    const hash = this.hashes.get(root) ?? new InspectableHash();
    this.hashes.set(root, hash);
    return hash;
  };

  addToHistory = (_hour: number, units: number): number => units;
}

async function replay(windows: ScriptedWindows, shape: WindowShape, history: readonly Step[]): Promise<void> {
  keyNumber += 1;
  const customers = [`${keyNumber}`, `${keyNumber}-again`];
  const [key, again] = customers.map((customer) => `t:window:{${customer}}`) as [string, string];
  const damaged = `t:window:{${keyNumber}-damaged}`;
  const counters = new Counters();
  const hash = counters.windowOf(undefined);
  let nowMs = START_MS;
  await redis.command('HSET', damaged, 'head', 'garbage');
  for (const [index, step] of history.entries()) {
    const epoch = `epoch-${index}`;
    if (step.kind === 'reset') {
      reset(hash);
      for (const name of [key, again]) await windows.reset(name);
    } else if (step.kind === 'refund') {
      const refunds = resolve(step.refunds, index);
      const request = { grant: '', need: 0, ahead: 0, limits: hourly(0), holdMs: 0, refunds };
      const [reserved] = await windows.reserve([key], nowMs, [request], epoch);
      await windows.reserve([again], nowMs, [request], epoch);
      const refunded = refundOnce(counters, [undefined], nowMs, refunds);
      const grant = reserveOnce(counters, shape, nowMs, { ...request, refunds: [] }, epoch);
      expect(reserved).toEqual({ ...grant, refunded });
    } else if (step.kind === 'report') {
      nowMs += step.advanceMs;
      const admitted = step.admitted.map((each, entry) => ({ ...each, grant: `${idOf(index)}-${entry}` }));
      for (let times = step.again ? 2 : 1; times > 0; times--) {
        const counted = chargeOnce(counters, shape, nowMs, admitted, epoch, undefined);
        for (const name of [key, again]) expect(await windows.charge(name, nowMs, admitted, epoch)).toEqual(counted);
      }
    } else {
      nowMs += step.advanceMs;
      const request = {
        ...step,
        grant: idOf(index),
        limits: hourly(step.limit),
        refunds: resolve(step.refunds, index),
      };
      const grant = reserveOnce(counters, shape, nowMs, request, epoch);
      const [reserved] = await windows.reserve([key], nowMs, [request], epoch);
      expect(reserved).toEqual(grant);
      // The same history once more, in calls with a damaged window and one whose reservation is another.
      const several = [damaged, again, `t:window:{${keyNumber}-other}`];
      const other = { ...request, need: 1, refunds: [] };
      const together = await windows.reserve(several, nowMs, [request, request, other], epoch);
      expect(together).toMatchObject([{ message: expect.stringContaining('not one of Tollgate') }, grant, {}]);
    }
    for (const customer of customers) {
      for (const [end, window] of Object.entries({ '': hash, ':first': counters.windowOf('first') })) {
        expect(await windows.fields(`t:window:{${customer}}${end}`)).toEqual(window.fields());
      }
      const { kept: _, ...grants } = await windows.fields(`t:grants:{${customer}}`);
      expect(withoutHoursOfVoid(grants)).toEqual(withoutHoursOfVoid(counters.notes.fields()));
    }
  }
}

/** A reservation that finds itself void notes in Redis that it came, so that its id is kept for an hour more. */
function withoutHoursOfVoid(grants: Record<string, string>): [string, string][] {
  return Object.entries(grants)
    .map(([id, text]): [string, string] => [id, text.startsWith('0 ') ? 'void' : text])
    .toSorted(([a], [b]) => a.localeCompare(b));
}

/** `alone`: the reservation has the first limit only, so that the two windows differ. */
type TwoLimitsStep = readonly [
  { readonly advanceMs: number; readonly need: number; readonly heaviest: number; readonly ahead: number },
  second: number,
  readonly PastRefund[],
  alone: boolean,
];

async function replayTwoLimits(windows: ScriptedWindows, shape: WindowShape, history: readonly TwoLimitsStep[]) {
  keyNumber += 1;
  const counters = new Counters();
  const names = [`t:window:{two-${keyNumber}}`, `t:window:{two-${keyNumber}}:second`];
  let nowMs = START_MS;
  for (const [index, [{ advanceMs, ...units }, amount, past, alone]] of history.entries()) {
    nowMs += advanceMs;
    const limits: Limits = alone ? hourly(20) : [...hourly(20), { policy: 'key', amount, root: 'second' }];
    const request = { grant: idOf(index), ...units, limits, holdMs: 2000, refunds: resolve(past, index) };
    const [reserved] = await windows.reserve(names.slice(0, limits.length), nowMs, [request], `epoch-${index}`);
    const grant = reserveOnce(counters, shape, nowMs, request, `epoch-${index}`);
    expect(reserved).toEqual(grant);
    for (const [position, root] of [undefined, 'second'].entries()) {
      expect(await windows.fields(names[position] ?? '')).toEqual(counters.windowOf(root).fields());
    }
  }
}

describe.each([
  ['the hourly shape', HOURLY],
  ['a short shape', SHORT],
])('with %s', (_name, shape) => {
  test('Lua and TypeScript give the same answers and keep the same buckets', async () => {
    const windows = scriptedWindows(redis, shape);
    await fc.assert(
      fc.asyncProperty(steps(shape, { goesBack: true, isReset: true }), (history) => replay(windows, shape, history)),
      { numRuns: RUNS },
    );
  }, 120_000);

  test('the wait is the same after the limit was lowered, however many buckets must drop', async () => {
    const windows = scriptedWindows(redis, shape);
    const hash = new InspectableHash();
    const bucketCount = shape.windowMs / shape.bucketMs;
    const everyBucket = Array.from({ length: bucketCount }, (_, index) => ({
      grant: idOf(index),
      ageMs: index * shape.bucketMs,
      units: 2,
    }));
    const { used } = charge(hash, shape, START_MS, everyBucket, 'epoch');
    const key = `t:window:{full-${bucketCount}}`;
    expect(await windows.charge(key, START_MS, everyBucket, 'epoch')).toMatchObject({ used });
    for (let limit = used + 1; limit >= 0; limit -= Math.ceil(used / 50)) {
      const request = { grant: '', need: 0, ahead: 0, limits: hourly(limit), holdMs: 0, refunds: [] };
      const [{ waitMs }] = reserve(() => hash, shape, START_MS, request, 'epoch').counts;
      expect(await windows.reserve([key], START_MS, [request], 'epoch')).toMatchObject([{ counts: [{ waitMs }] }]);
      // One bucket drops after the other, the oldest one when the next one but one begins.
      const drops = Math.max(1, Math.ceil((used - limit + 1) / 2));
      expect(waitMs).toBe(limit === 0 ? -1 : (drops + 1) * shape.bucketMs);
    }
  });

  test('of several limits, Lua and TypeScript take the same units from all or from none', async () => {
    const windows = scriptedWindows(redis, shape);
    const other = fc.record({ advanceMs: fc.nat(20 * shape.bucketMs), need: fc.nat(9), heaviest, ahead: fc.nat(40) });
    const history = fc.array(fc.tuple(other, fc.integer({ min: 0, max: 30 }), pastRefunds, fc.boolean()), {
      minLength: 20,
    });
    await fc.assert(
      fc.asyncProperty(history, (each) => replayTwoLimits(windows, shape, each)),
      { numRuns: RUNS },
    );
  }, 120_000);

  test('no interval of one window sees more than the limit, and nothing is refused that is free', () => {
    fc.assert(
      fc.property(steps(shape, { goesBack: false, isReset: false }), (history) => holdAgainstModel(shape, history)),
      { numRuns: 20 * RUNS },
    );
  }, 120_000);
});

interface Counted {
  readonly latestSendMs: number;
  readonly bucket: number;
  units: number;
}

function holdAgainstModel(shape: WindowShape, history: readonly Step[]): void {
  const hash = new InspectableHash();
  const grants: Grant[] = [];
  const model: Counted[] = [];
  let lastGranted: Counted | undefined;
  const countedAt = (nowMs: number) => sum(model.filter(({ bucket }) => dropMs(bucket, shape) > nowMs));
  let nowMs = START_MS;
  for (const step of history) {
    if (step.kind === 'reset') continue;
    if (step.kind === 'report') {
      nowMs += step.advanceMs;
      for (const { ageMs, units } of step.admitted) {
        const latestSendMs = nowMs - ageMs;
        model.push({ latestSendMs, bucket: Math.floor(latestSendMs / shape.bucketMs), units });
      }
      expect(charge(hash, shape, nowMs, step.admitted, 'epoch')).toMatchObject({ used: countedAt(nowMs) });
      continue;
    }
    // Only what was granted and never sent is given back, as the gateway does: once for each grant.
    const last = grants.at(-1);
    const entry = lastGranted;
    const wanted = step.refunds[0]?.units ?? 0;
    const units = last && entry ? Math.min(wanted, entry.units) : 0;
    const back = last && units > 0 ? [{ epoch: last.counts[0].epoch, bucket: last.bucket, units }] : [];
    const isCounted = last !== undefined && hash.units(last.bucket) !== undefined;
    if (entry && isCounted) entry.units -= units;
    if (step.kind === 'refund') {
      expect(refund(hash, back)).toBe(isCounted ? units : 0);
      continue;
    }
    nowMs += step.advanceMs;
    const before = Math.max(0, step.limit - countedAt(nowMs));
    refund(hash, back);
    const grant = reserve(() => hash, shape, nowMs, { ...step, limits: hourly(step.limit) }, 'epoch');
    const isShort = before < step.need;
    const share = step.holdMs > 2000 ? 64 : 8;
    const whole = Math.floor(before / step.heaviest) * step.heaviest;
    const ahead = Math.min(step.ahead, Math.floor((before - step.need) / share));
    expect(grant.granted).toBe(isShort ? whole : step.need + ahead);
    expect(grant.counts[0].free).toBe(before - grant.granted);
    if (grant.granted > 0) {
      const { granted, bucket } = grant;
      grants.push(grant);
      lastGranted = { latestSendMs: nowMs + step.holdMs, bucket, units: granted };
      model.push(lastGranted);
      // Whatever may still be sent within one window of this grant, each unit at the worst instant of its hold.
      const together = model.filter(({ latestSendMs }) => latestSendMs > nowMs - shape.windowMs);
      expect(sum(together)).toBeLessThanOrEqual(step.limit);
    }
    expect(grant.counts[0].used).toBe(countedAt(nowMs));
    expectWait(grant, nowMs, step.limit, isShort || step.need === 0 ? step.heaviest : 1, countedAt);
  }
}

/** `wanted` units, and more than now, are free when the wait is over, and not one millisecond before. */
function expectWait(
  { counts: [{ waitMs }] }: Grant,
  nowMs: number,
  limit: number,
  wanted: number,
  countedAt: (nowMs: number) => number,
): void {
  const freeAt = (ms: number) => Math.max(0, limit - countedAt(ms));
  if (waitMs === -1) {
    expect(limit < wanted || countedAt(nowMs) === 0).toBe(true);
    return;
  }
  const enough = Math.max(wanted, freeAt(nowMs) + 1);
  expect(freeAt(nowMs + waitMs)).toBeGreaterThanOrEqual(enough);
  expect(freeAt(nowMs + waitMs - 1)).toBeLessThan(enough);
}

function dropMs(bucket: number, { windowMs, bucketMs }: WindowShape): number {
  return (bucket + 1) * bucketMs + windowMs;
}

function sum(counted: readonly Counted[]): number {
  return counted.reduce((total, { units }) => total + units, 0);
}
