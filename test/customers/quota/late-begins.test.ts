/**
 * The guarantee where it is tightest, in virtual time: requests begin at the last instant at which they may, around the
 * edges of buckets, by clocks that are wrong by nearly 1 %, after slow replies of the store. Then the limit is used up, and
 * an hour after the first requests everybody tries for the units that are dropped.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Dice } from '../../../tools/simulator/dice.ts';
import { type LinkedStore, SimulatedStore, unharmed } from '../../../tools/simulator/simulated-store.ts';
import { VirtualTime } from '../../../tools/simulator/virtual-time.ts';
import { type SimulatedGateway, VirtualWorld } from '../../../tools/simulator/virtual-world.ts';
import { shareOfRuns } from '../../support/share-of-runs.ts';
import { mostInAnyWindow } from './support/most-in-any-window.ts';

const WINDOW_MS = 3_600_000;
const BUCKET_MS = 10_000;
/** Requests of the first minute begin late. */
const LATE_MS = 60_000;
const ECHO_MS = 100;
const TIMEOUT_MS = 120_000;

interface Schedule {
  readonly seed: number;
  readonly gateways: number;
  readonly limit: number;
  /** When the first requests come, how many in percent of the limit, and over which time. */
  readonly atMs: number;
  readonly size: number;
  readonly spreadMs: number;
  /** When the rest of the limit is used. */
  readonly restAtMs: number;
}

const shared = {
  seed: fc.integer(),
  gateways: fc.integer({ min: 1, max: 3 }),
  restAtMs: fc.integer({ min: 2 * LATE_MS, max: WINDOW_MS - LATE_MS }),
};
/** A burst that arrives up to a hold before the edge of a bucket. */
const SHORT = fc.record<Schedule>({
  ...shared,
  limit: fc.integer({ min: 1, max: 60 }),
  atMs: fc.nat(2500).map((beforeMs) => 2 * BUCKET_MS - beforeMs),
  size: fc.integer({ min: 1, max: 100 }),
  spreadMs: fc.constantFrom(0, 100, 1000),
});
/** Two or three requests a second, far from the limit: leases are long from the second slot of 10 s on. */
const LONG = fc.record<Schedule>({
  ...shared,
  limit: fc.integer({ min: 1000, max: 1500 }),
  atMs: fc.nat(BUCKET_MS),
  size: fc.constant(10),
  spreadMs: fc.constant(45_000),
});

/** Slow replies, which come in time all the same. */
function fate(dice: Dice) {
  const latencyMs = () => (dice.chance(0.3) ? dice.between(20, 900) : dice.between(0.1, 4));
  return unharmed(latencyMs(), latencyMs());
}

/** Resolves to the most requests that began in any hour. */
async function run(schedule: Schedule, storeOf: (store: SimulatedStore) => LinkedStore): Promise<number> {
  const { seed, gateways, limit, atMs, size, spreadMs, restAtMs } = schedule;
  const time = new VirtualTime();
  const world = new VirtualWorld({
    seed,
    gateways,
    limit,
    onError: 'deny',
    timeoutMs: 2000,
    fate,
    dispatch: (dice) =>
      time.nowMs < LATE_MS && dice.chance(0.8)
        ? { kind: 'begins late', beforeMs: dice.chance(0.5) ? 0.01 : dice.between(0, 50) }
        : { kind: 'begins', afterMs: 0 },
    clocks: 'random',
    clockError: (dice) => (dice.chance(0.5) ? -1 : 1) * dice.between(0.0095, 0.0099),
    store: storeOf(new SimulatedStore(time)),
    time,
  });
  const any = () => world.gateway(Math.floor(world.dice.between(0, gateways)));
  for (let left = Math.ceil((size * limit) / 100); left > 0; left--) {
    time.at(atMs + world.dice.between(0, spreadMs), () => any().request());
  }
  const useUp = (gateway: SimulatedGateway): void => {
    gateway.request(({ outcome }) => outcome === 'admitted' && useUp(gateway));
  };
  time.at(restAtMs, () => useUp(any()));
  // From the edge of a bucket on, so also at the instants at which units are dropped.
  for (let echoMs = WINDOW_MS; echoMs < WINDOW_MS + atMs + spreadMs + 2 * BUCKET_MS; echoMs += ECHO_MS) {
    time.at(echoMs, () => useUp(any()));
  }
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  await time.runUntil(2 * WINDOW_MS);
  Error.stackTraceLimit = stackTraceLimit;
  return mostInAnyWindow(
    world.begins.map((begin) => begin.atMs),
    WINDOW_MS,
  );
}

/** A wrong protocol: a gateway asks for holds that are shorter than those it goes by. */
function withHolds(holdMs: (right: number) => number): (store: SimulatedStore) => LinkedStore {
  return (store) => ({
    reserve: (request) => store.reserve({ ...request, holdMs: Math.max(0, Math.floor(holdMs(request.holdMs))) }),
    refund: (customer, refunds) => store.refund(customer, refunds),
    charge: (customer, charged) => store.charge(customer, charged),
  });
}

function property(schedules: fc.Arbitrary<Schedule>, storeOf: (store: SimulatedStore) => LinkedStore) {
  return fc.asyncProperty(schedules, async (schedule) => {
    const most = await run(schedule, storeOf);
    expect(most).toBeLessThanOrEqual(schedule.limit);
    if (most === schedule.limit) windowsFilled++;
  });
}

/** A schedule that never fills a window proves little. */
let windowsFilled = 0;

async function isRefuted(schedules: fc.Arbitrary<Schedule>, holdMs: (right: number) => number): Promise<boolean> {
  // The same schedules each time: whether random ones refute it is a matter of chance.
  const options = { seed: 1, numRuns: 1000, endOnFailure: true };
  return (await fc.check(property(schedules, withHolds(holdMs)), options)).failed;
}

describe.each([
  { leases: 'short', schedules: SHORT, runs: shareOfRuns(1000) },
  { leases: 'long', schedules: LONG, runs: shareOfRuns(100, 20) },
])('with $leases leases', ({ schedules, runs }) => {
  test('requests that begin at the last instant do not exceed the limit', { timeout: TIMEOUT_MS }, async () => {
    windowsFilled = 0;
    await fc.assert(
      property(schedules, (store) => store),
      { numRuns: runs },
    );
    expect(windowsFilled).toBeGreaterThan(runs / 2);
  });

  test('with a hold that is a second too short they do', { timeout: TIMEOUT_MS }, async () => {
    expect(await isRefuted(schedules, (right) => right - 1000)).toBe(true);
  });
});

test('without a margin for slow clocks they do', { timeout: TIMEOUT_MS }, async () => {
  // The hold ends 10 ms before the edge of a bucket, and the requests begin up to 10 ms behind it.
  const atTheEdge = SHORT.map((schedule) => ({ ...schedule, atMs: 2 * BUCKET_MS - 1990, spreadMs: 0 }));
  expect(await isRefuted(atTheEdge, (right) => 0.99 * right)).toBe(true);
});
