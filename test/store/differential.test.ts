/**
 * The window exists twice, in TypeScript and in Lua. Both get the same random histories and must give the same answers
 * and keep the same buckets, whatever the clock does. Where the clock only goes forward, both are also held against a
 * model that knows nothing of heads, walks or recounts: a list of what was granted.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refund, reserve, type WindowGrant, type WindowShape } from '../../src/store/window-arithmetic.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { MemoryHash } from './memory-hash.ts';
import { type ScriptedWindows, scriptedWindows } from './window-scripts-with-clock.ts';

/** Far ahead of Redis' own clock, so that the expiry which reserve sets does not come during a test. */
const START_MS = Date.UTC(2200, 0, 1);
const HOURLY: WindowShape = { windowMs: 3_600_000, bucketMs: 10_000 };
const SHORT: WindowShape = { windowMs: 60_000, bucketMs: 1000 };
const RUNS = 80;

type Step =
  | {
      readonly kind: 'reserve';
      readonly advanceMs: number;
      readonly need: number;
      readonly ahead: number;
      readonly limit: number;
      readonly holdMs: number;
      readonly giveBacks: readonly PastGiveBack[];
    }
  | { readonly kind: 'refund'; readonly giveBacks: readonly PastGiveBack[] };

/** Names an earlier grant by how long ago it was. */
interface PastGiveBack {
  readonly stepsAgo: number;
  readonly units: number;
  readonly wrongEpoch: boolean;
}

let redis: RedisServer;
let keyNumber = 0;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const giveBack = fc.record({
  stepsAgo: fc.nat(6),
  units: fc.nat(12),
  wrongEpoch: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
});
const giveBacks = fc.oneof(
  { weight: 3, arbitrary: fc.constant([]) },
  { weight: 1, arbitrary: fc.array(giveBack, { maxLength: 3 }) },
);

function steps(shape: WindowShape, goesBack: boolean): fc.Arbitrary<Step[]> {
  const forward = fc.oneof(
    { weight: 4, arbitrary: fc.nat(2 * shape.bucketMs) },
    { weight: 3, arbitrary: fc.nat(20 * shape.bucketMs) },
    { weight: 1, arbitrary: fc.nat(2 * shape.windowMs) },
  );
  const back = fc.oneof(fc.nat(90_000), fc.nat(2 * shape.windowMs)).map((ms) => -ms);
  const reserveStep = fc.record({
    kind: fc.constant('reserve' as const),
    advanceMs: goesBack ? fc.oneof({ weight: 8, arbitrary: forward }, { weight: 1, arbitrary: back }) : forward,
    need: fc.oneof(fc.nat(3), fc.nat(30)),
    ahead: fc.nat(40),
    limit: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(20, 50) }, { weight: 1, arbitrary: fc.nat(60) }),
    holdMs: fc.constantFrom(0, 1000, 2000, 10_000),
    giveBacks,
  });
  const refundStep = fc.record({ kind: fc.constant('refund' as const), giveBacks });
  return fc.array(fc.oneof({ weight: 6, arbitrary: reserveStep }, { weight: 1, arbitrary: refundStep }), {
    minLength: 20,
    maxLength: 60,
  });
}

function resolve(past: readonly PastGiveBack[], grants: readonly WindowGrant[]) {
  return past.flatMap(({ stepsAgo, units, wrongEpoch }) => {
    const grant = grants.at(-1 - stepsAgo);
    return grant ? [{ epoch: wrongEpoch ? 'another' : grant.epoch, bucket: grant.bucket, units }] : [];
  });
}

async function replay(windows: ScriptedWindows, shape: WindowShape, history: readonly Step[]): Promise<void> {
  keyNumber += 1;
  const key = `window-${keyNumber}`;
  const hash = new MemoryHash();
  const grants: WindowGrant[] = [];
  let nowMs = START_MS;
  for (const [index, step] of history.entries()) {
    const back = resolve(step.giveBacks, grants);
    if (step.kind === 'refund') {
      expect(await windows.refund(key, back)).toBe(refund(hash, back));
    } else {
      nowMs += step.advanceMs;
      const request = { ...step, giveBacks: back };
      const grant = reserve(hash, shape, nowMs, request, `epoch-${index}`);
      expect(await windows.reserve(key, nowMs, request, `epoch-${index}`)).toEqual(grant);
      if (grant.granted > 0) grants.push(grant);
    }
    expect(await windows.fields(key)).toEqual(hash.fields());
  }
}

describe.each([
  ['the hourly shape', HOURLY],
  ['a short shape', SHORT],
])('with %s', (_name, shape) => {
  test('Lua and TypeScript give the same answers and keep the same buckets', async () => {
    const windows = scriptedWindows(redis, shape);
    await fc.assert(
      fc.asyncProperty(steps(shape, true), (history) => replay(windows, shape, history)),
      { numRuns: RUNS },
    );
  }, 120_000);

  test('no interval of one window sees more than the limit, and nothing is refused that is free', () => {
    fc.assert(
      fc.property(steps(shape, false), (history) => holdAgainstModel(shape, history)),
      { numRuns: 20 * RUNS },
    );
  }, 120_000);
});

interface Granted {
  readonly grantedAtMs: number;
  readonly latestSendMs: number;
  readonly bucket: number;
  units: number;
}

function holdAgainstModel(shape: WindowShape, history: readonly Step[]): void {
  const hash = new MemoryHash();
  const grants: WindowGrant[] = [];
  const model: Granted[] = [];
  const countedAt = (nowMs: number) => sum(model.filter(({ bucket }) => dropMs(bucket, shape) > nowMs));
  let nowMs = START_MS;
  for (const step of history) {
    // Only what was granted and never sent is given back, as the gateway does: once for each grant.
    const last = grants.at(-1);
    const entry = model.at(-1);
    const wanted = step.giveBacks[0]?.units ?? 0;
    const units = last && entry ? Math.min(wanted, entry.units) : 0;
    const back = last && units > 0 ? [{ epoch: last.epoch, bucket: last.bucket, units }] : [];
    const isCounted = last !== undefined && hash.units(last.bucket) !== undefined;
    if (entry && isCounted) entry.units -= units;
    if (step.kind === 'refund') {
      expect(refund(hash, back)).toBe(isCounted ? units : 0);
      continue;
    }
    nowMs += step.advanceMs;
    const before = Math.max(0, step.limit - countedAt(nowMs));
    const grant = reserve(hash, shape, nowMs, { ...step, giveBacks: back }, 'epoch');
    const needed = Math.min(step.need, before);
    expect(grant.granted).toBe(needed + Math.min(step.ahead, Math.floor((before - needed) / 8)));
    expect(grant.free).toBe(before - grant.granted);
    if (grant.granted > 0) {
      const { granted, bucket } = grant;
      grants.push(grant);
      model.push({ grantedAtMs: nowMs, latestSendMs: nowMs + step.holdMs, bucket, units: granted });
      // Whatever may still be sent within one window of this grant, each unit at the worst instant of its hold.
      const together = model.filter(({ latestSendMs }) => latestSendMs > nowMs - shape.windowMs);
      expect(sum(together)).toBeLessThanOrEqual(step.limit);
    }
    expect(grant.used).toBe(countedAt(nowMs));
    expectWait(grant, nowMs, step.limit, countedAt);
  }
}

/** More is free when the wait is over, and not one millisecond before. */
function expectWait({ waitMs }: WindowGrant, nowMs: number, limit: number, countedAt: (nowMs: number) => number): void {
  const freeAt = (ms: number) => Math.max(0, limit - countedAt(ms));
  if (waitMs === -1) {
    expect(limit === 0 || countedAt(nowMs) === 0).toBe(true);
    return;
  }
  expect(freeAt(nowMs + waitMs)).toBeGreaterThan(freeAt(nowMs));
  expect(freeAt(nowMs + waitMs - 1)).toBe(freeAt(nowMs));
}

function dropMs(bucket: number, { windowMs, bucketMs }: WindowShape): number {
  return (bucket + 1) * bucketMs + windowMs;
}

function sum(granted: readonly Granted[]): number {
  return granted.reduce((total, { units }) => total + units, 0);
}
