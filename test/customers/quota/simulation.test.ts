/**
 * Thousands of random schedules in virtual time, held against a brute-force count of what began upstream. Nothing here
 * knows how a decision comes about. On a failure fast-check prints the seed and the smallest schedule that it found.
 *
 * While the store's clock is not set, its time is true time. Not simulated, because it is not promised: a store that
 * loses data, a store clock that jumps forward, and a machine both of whose clocks are wrong within one lease.
 */
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { hourly } from '../../../src/store/windows.ts';
import type { Answer } from '../../../tools/simulator/leasing-gateway.ts';
import { unharmed } from '../../../tools/simulator/simulated-store.ts';
import { type Begin, CUSTOMER, type SimulatedGateway, VirtualWorld } from '../../../tools/simulator/virtual-world.ts';
import { shareOfRuns } from '../../support/share-of-runs.ts';
import { mostInAnyWindow } from './support/most-in-any-window.ts';
import {
  crash,
  flapping,
  HORIZON_MS,
  harmless,
  outage,
  outageOfAtMost,
  plan,
  type Schedule,
  schedules,
  schedulesOfRareRequests,
  stop,
  unitsOf,
  WINDOW_MS,
  wallClock,
  worldOptions,
} from './support/schedules.ts';

const BUCKET_MS = 10_000;
/** Schedules with leases of one length. `holdMs`: from the reservation to the last instant at which a request begins. */
const SHORT = { leases: 'short', holdMs: 2000, schedules, runs: 1, maxLimit: 60 };
const LONG = { leases: 'long', holdMs: 10_000, schedules: schedulesOfRareRequests, runs: 0.1, maxLimit: 500 };
/** By then every machine goes on, every lease has ended, what was not used has gone back, and no refusal is remembered. */
const QUIET_MS = 150_000;
const TIMEOUT_MS = 120_000;
const BACK_MS = 15_000;

const machineFaults = fc.array(fc.oneof(crash, stop, wallClock), { maxLength: 12 });
const machineFaultsWithoutCrash = fc.array(fc.oneof(stop, wallClock), { maxLength: 12 });
/** Within the hour for which ids are known. */
const shortOutages = fc
  .tuple(
    fc.array(fc.oneof(outageOfAtMost(1000), outageOfAtMost(60_000), outageOfAtMost(0.3 * WINDOW_MS)), { maxLength: 3 }),
    fc.array(flapping, { maxLength: 3 }),
    fc.array(stop, { maxLength: 3 }),
  )
  .map(([single, flaps, stops]) => [...single, ...flaps.flat(), ...stops]);
const outages = fc
  .tuple(fc.array(fc.oneof(outage, stop, wallClock), { maxLength: 6 }), fc.array(flapping, { maxLength: 3 }))
  .map(([single, flaps]) => [...single, ...flaps.flat()]);

/** A schedule that never fills a window proves little, as does one whose leases are all short where they need not be. */
let schedulesRun = 0;
let windowsFilled = 0;
let longLeases = 0;
afterAll(() => {
  expect(windowsFilled).toBeGreaterThanOrEqual(schedulesRun / 3);
  expect(longLeases).toBeGreaterThan(schedulesRun / 10);
});

function check<Ts extends [unknown, ...unknown[]]>(
  runs: number,
  arbitraries: { [K in keyof Ts]: fc.Arbitrary<Ts[K]> },
  property: (...values: Ts) => Promise<void>,
): Promise<void> {
  return fc.assert(fc.asyncProperty(...arbitraries, property), { numRuns: shareOfRuns(runs) });
}

async function runSchedule(world: VirtualWorld, schedule: Schedule): Promise<void> {
  plan(world, schedule);
  // While the store is away every refusal is an error, and their stacks would take a fifth of the time.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  await world.time.runUntil(HORIZON_MS);
  Error.stackTraceLimit = stackTraceLimit;
  schedulesRun++;
  if (mostBegun(world.begins) >= schedule.limit) windowsFilled++;
  for (const { link } of world.everyGateway) {
    longLeases += link.reservations.filter(({ holdMs }) => holdMs > SHORT.holdMs).length;
  }
}

function mostBegun(begins: readonly Begin[]): number {
  return mostInAnyWindow(
    begins.map(({ atMs }) => atMs),
    WINDOW_MS,
  );
}

describe.each([SHORT, LONG])('with $leases leases', ({ schedules, holdMs, runs, maxLimit }) => {
  /** How much longer than a window a unit may be counted: until the end of its bucket, and its hold. */
  const resolutionMs = BUCKET_MS + holdMs;

  describe('no 3600 s of store time see more requests begin than the limit', () => {
    test('whatever networks, stopped processes, clocks and crashes do', { timeout: TIMEOUT_MS }, () =>
      check<[Schedule]>(2000 * runs, [schedules(machineFaults)], async (schedule) => {
        const world = new VirtualWorld(worldOptions(schedule));
        await runSchedule(world, schedule);
        expect(mostBegun(world.begins)).toBeLessThanOrEqual(schedule.limit);
      }),
    );

    test('with the store away now and then, when nothing is admitted without it', { timeout: TIMEOUT_MS }, () =>
      check<[Schedule]>(1000 * runs, [schedules(outages)], async (schedule) => {
        const world = new VirtualWorld(worldOptions(schedule));
        await runSchedule(world, schedule);
        expect(mostBegun(world.begins)).toBeLessThanOrEqual(schedule.limit);
      }),
    );

    test('after a limit was changed, once open leases have run out', { timeout: TIMEOUT_MS }, () => {
      const changes = fc.array(
        fc.record({
          atMs: fc.nat(HORIZON_MS),
          limit: fc.integer({ min: 1, max: maxLimit }),
          knownWithinMs: fc.nat(1000),
        }),
        { minLength: 1, maxLength: 4 },
      );
      return check<[Schedule, Change[]]>(1000 * runs, [schedules(machineFaults), changes], async (schedule, limits) => {
        const world = new VirtualWorld(worldOptions(schedule));
        for (const index of world.gateways.keys()) {
          for (const { atMs, limit, knownWithinMs } of limits) {
            world.time.at(atMs + world.dice.between(0, knownWithinMs), () => {
              world.gateway(index).settings = { limits: hourly(limit), usageResetAt: '' };
            });
          }
        }
        await runSchedule(world, schedule);
        const reservations = world.everyGateway.flatMap(({ link }) => link.reservations);
        const allowedAt = (ms: number) =>
          Math.max(...reservations.filter(({ atMs }) => atMs <= ms && atMs > ms - holdMs).map(({ limit }) => limit));
        const instants = world.begins.map(({ atMs }) => atMs).toSorted((a, b) => a - b);
        for (const [last, atMs] of instants.entries()) {
          const begun = instants.slice(0, last + 1).filter((before) => before > atMs - WINDOW_MS).length;
          expect(begun).toBeLessThanOrEqual(allowedAt(atMs));
        }
      });
    });

    test('before and after a usage reset, each for itself, once open leases have run out', {
      timeout: TIMEOUT_MS,
    }, () => {
      const resets = fc.array(fc.record({ atMs: fc.nat(HORIZON_MS), knownWithinMs: fc.nat(3000) }), {
        minLength: 1,
        maxLength: 3,
      });
      return check<[Schedule, Reset[]]>(1000 * runs, [schedules(machineFaults), resets], async (schedule, planned) => {
        const world = new VirtualWorld(worldOptions(schedule));
        for (const { atMs, knownWithinMs } of planned) {
          world.time.at(atMs, () => {
            world.store.resetUsage(CUSTOMER);
            for (const index of world.gateways.keys()) {
              world.time.in(world.dice.between(0, knownWithinMs), () => {
                world.gateway(index).settings = { limits: hourly(schedule.limit), usageResetAt: String(atMs) };
              });
            }
          });
        }
        await runSchedule(world, schedule);
        const edges = [-holdMs, ...planned.map(({ atMs }) => atMs).toSorted((a, b) => a - b), HORIZON_MS];
        for (const [index, fromMs] of edges.slice(0, -1).entries()) {
          const toMs = edges[index + 1] ?? HORIZON_MS;
          const between = world.begins.filter(({ atMs }) => atMs > fromMs && atMs <= toMs);
          const settled = between.filter(({ atMs }) => atMs > fromMs + holdMs);
          expect(mostBegun(settled)).toBeLessThanOrEqual(schedule.limit);
          expect(mostBegun(between)).toBeLessThanOrEqual(2 * schedule.limit);
        }
      });
    });

    test('as they pass, when the clock of the store is set back', { timeout: TIMEOUT_MS }, () => {
      const steps = fc.array(
        fc.record({ atMs: fc.nat(HORIZON_MS), byMs: fc.oneof(fc.nat(60_000), fc.nat(2 * WINDOW_MS)) }),
        { minLength: 1, maxLength: 4 },
      );
      return check<[Schedule, Step[]]>(1000 * runs, [schedules(machineFaults), steps], async (schedule, planned) => {
        const world = new VirtualWorld(worldOptions(schedule));
        for (const { atMs, byMs } of planned) world.time.at(atMs, () => world.store.setClockBack(byMs));
        await runSchedule(world, schedule);
        // The clock shows some times twice, so what is counted is 3600 s as they pass, which such a clock cannot shorten.
        expect(mostBegun(world.begins)).toBeLessThanOrEqual(schedule.limit);
      });
    });
  });

  describe('when no lease is open, exactly what is left can be used', () => {
    test('all of the limit that no request has used', { timeout: TIMEOUT_MS }, () =>
      check<[Schedule]>(
        1000 * runs,
        [schedules(machineFaultsWithoutCrash, fc.constant(harmless))],
        async (schedule) => {
          const world = calmAfter(schedule);
          await runSchedule(world, schedule);
          await becomeQuiet(world);
          const used = world.store.used(CUSTOMER);
          expect(used).toBeGreaterThanOrEqual(begunSince(world, world.time.nowMs - WINDOW_MS));
          expect(used).toBeLessThanOrEqual(begunSince(world, world.time.nowMs - WINDOW_MS - resolutionMs));
          expect(await useUp(world, schedule.limit)).toBe(schedule.limit - used);
        },
      ),
    );

    test('less what crashed gateways still had, and nothing else', { timeout: TIMEOUT_MS }, () =>
      check<[Schedule]>(1000 * runs, [schedules(machineFaults)], async (schedule) => {
        const world = calmAfter(schedule);
        await runSchedule(world, schedule);
        await becomeQuiet(world);
        const stranded = expectNothingStranded(world);
        expect(world.store.history(CUSTOMER)).toBe(world.begins.length + stranded);
        const used = world.store.used(CUSTOMER);
        expect(used).toBeLessThanOrEqual(begunSince(world, world.time.nowMs - WINDOW_MS - resolutionMs) + stranded);
        expect(await useUp(world, schedule.limit)).toBe(Math.max(0, schedule.limit - used));
      }),
    );
  });

  describe('15 s after the last connection is back, the usage history is what began, to the unit', () => {
    /** Requests until the end, when all connections are lost, some of them for a while. */
    const storms = fc.record({
      lastRequests: fc.array(fc.nat(8000), { minLength: 1, maxLength: 30 }),
      downMs: fc.array(fc.oneof(fc.nat(3000), fc.nat(600_000)), { minLength: 4, maxLength: 4 }),
    });

    test.each(['deny', 'local'] as const)(
      'after storms of lost connections, with on_error: %s',
      { timeout: TIMEOUT_MS },
      (onError) =>
        check<[Schedule, Storm]>(1000 * runs, [schedules(shortOutages), storms], async (schedule, storm) => {
          const { world } = await runStorm(schedule, storm, onError);
          expect(world.store.history(CUSTOMER)).toBe(world.begins.length);
          expect(expectNothingStranded(world)).toBe(0);
        }),
    );

    test('with crashes too: only units of the crashed gateways are stranded', { timeout: TIMEOUT_MS }, () =>
      check<[Schedule, Storm]>(
        1000 * runs,
        [schedules(fc.tuple(shortOutages, fc.array(crash, { maxLength: 4 })).map((all) => all.flat())), storms],
        async (schedule, storm) => {
          const { world } = await runStorm(schedule, storm, 'deny');
          expect(world.store.history(CUSTOMER)).toBe(world.begins.length + expectNothingStranded(world));
        },
      ),
    );
  });

  test('who waits as long as a refusal says, alone, is admitted', { timeout: TIMEOUT_MS }, () =>
    check<[Schedule, number[]]>(
      1500 * runs,
      [schedules(machineFaultsWithoutCrash), fc.array(fc.nat(45_000), { minLength: 3, maxLength: 8 })],
      async (schedule, pausesMs) => {
        const world = calmAfter(schedule);
        await runSchedule(world, schedule);
        await becomeQuiet(world);
        const gateway = world.gateway(0);
        for (const pauseMs of pausesMs) {
          await useUp(world, schedule.limit);
          // Later refusals come from memory and must promise no less than the first.
          await world.time.run(pauseMs);
          const units = unitsOf(world, schedule);
          const refusal = await ask(world, gateway, units);
          if (refusal.outcome !== 'refused') continue;
          await world.time.run(refusal.resetSeconds(0) * 1000);
          expect((await ask(world, gateway, units)).outcome).toBe('admitted');
        }
      },
    ),
  );

  describe('while the store is away', () => {
    test(
      'no 3600 s see more than the limit and a share for each gateway, and nothing is reported twice',
      {
        timeout: TIMEOUT_MS,
      },
      () =>
        check<[Schedule]>(1500 * runs, [schedules(outages)], async (schedule) => {
          const world = calmAfter(schedule, 'local');
          await runSchedule(world, schedule);
          const { limit, gateways } = schedule;
          expect(mostBegun(world.begins)).toBeLessThanOrEqual(
            limit + gateways * Math.max(1, Math.floor(limit / gateways)),
          );

          await world.time.run(2 * WINDOW_MS);
          const awayMs = schedule.faults.reduce(
            (sum, fault) => sum + (fault.kind === 'outage' ? fault.durationMs : 0),
            0,
          );
          for (const { link, begunLocally, admittedLocally } of world.gateways) {
            expect(link.counts.reported).toBeLessThanOrEqual(admittedLocally);
            // What was given back need not be reported, nor what is older than a window. All else must.
            if (awayMs < 0.8 * WINDOW_MS) expect(link.counts.reported).toBeGreaterThanOrEqual(begunLocally);
          }
        }),
    );

    test.each([30, 300, 1500])(
      'the same holds while it comes back for %i ms every few seconds, for hours',
      {
        timeout: TIMEOUT_MS,
      },
      async (backMs) => {
        const [limit, gateways] = [60, 3];
        const clean = { seed: 1, gateways, limit, units: [1], network: harmless, bursts: [], trickles: [], faults: [] };
        const world = new VirtualWorld({ ...worldOptions(clean), onError: 'local', fate: () => unharmed(1, 1) });
        for (let atMs = 0; atMs < 1.5 * WINDOW_MS; atMs += 4000) {
          for (const gateway of world.gateways) {
            world.time.at(atMs, () => gateway.link.cut(4000 - backMs));
            // Each hears of the store whenever it is back.
            world.time.at(atMs + 4000 - backMs, () => gateway.request());
          }
        }
        for (let atMs = 0; atMs < 1.5 * WINDOW_MS; atMs += 150) {
          world.time.at(atMs, () => world.gateway(Math.floor(atMs / 150)).request());
        }
        await world.time.runUntil(2 * WINDOW_MS);
        expect(mostBegun(world.begins)).toBeLessThanOrEqual(limit + gateways * Math.floor(limit / gateways));
        expect(mostBegun(world.begins)).toBeGreaterThan(limit / 2);
        for (const { link, admittedLocally } of world.gateways) {
          expect(link.counts.reported).toBeLessThanOrEqual(admittedLocally);
        }
      },
    );

    test('deny admits nothing new: leases run out', { timeout: TIMEOUT_MS }, () =>
      check<[Schedule]>(500 * runs, [schedules(fc.array(outage, { minLength: 1, maxLength: 4 }))], async (schedule) => {
        const world = new VirtualWorld(worldOptions(schedule));
        await runSchedule(world, schedule);
        for (const fault of schedule.faults) {
          if (fault.kind !== 'outage') continue;
          const gateway = world.gateway(fault.gateway);
          const during = world.begins.filter(
            ({ atMs, gateway: by }) =>
              by === gateway && atMs > fault.atMs + holdMs && atMs < fault.atMs + fault.durationMs,
          );
          expect(during).toEqual([]);
        }
      }),
    );
  });
});

interface Storm {
  /** How long before the end. */
  readonly lastRequests: readonly number[];
  /** For each gateway, from the end on. */
  readonly downMs: readonly number[];
}
interface Change {
  readonly atMs: number;
  readonly limit: number;
  readonly knownWithinMs: number;
}
interface Reset {
  readonly atMs: number;
  readonly knownWithinMs: number;
}
interface Step {
  readonly atMs: number;
  readonly byMs: number;
}

/** A world whose network does no more harm once the schedule is over, and whose requests then begin at once. */
function calmAfter(schedule: Schedule, onError: 'deny' | 'local' = 'deny'): VirtualWorld {
  const options = worldOptions(schedule);
  const isOver = () => world.time.nowMs > HORIZON_MS;
  const world: VirtualWorld = new VirtualWorld({
    ...options,
    onError,
    fate: (dice) => (isOver() ? unharmed(dice.between(0.1, 3), dice.between(0.1, 3)) : options.fate(dice)),
    dispatch: (dice) => (isOver() ? { kind: 'begins', afterMs: 0 } : options.dispatch(dice)),
  });
  return world;
}

/** Ends 15 s after the last connection has come back. */
async function runStorm(schedule: Schedule, { lastRequests, downMs }: Storm, onError: 'deny' | 'local') {
  const world = calmAfter(schedule, onError);
  for (const [index, beforeMs] of lastRequests.entries()) {
    world.time.at(HORIZON_MS - beforeMs, () => world.gateway(index).request());
  }
  for (const [index, forMs] of downMs.entries()) {
    world.time.at(HORIZON_MS, () => world.gateways[index]?.link.cut(forMs));
  }
  await runSchedule(world, schedule);
  while (world.gateways.some(({ link, machine }) => !link.isUp() || machine.isStopped)) await world.time.run(100);
  await world.time.run(BACK_MS);
  return { world };
}

/** Returns the units that crashed gateways have stranded. The others have none. */
function expectNothingStranded(world: VirtualWorld): number {
  let stranded = 0;
  for (const gateway of world.everyGateway) {
    const { granted, reported, refunded } = gateway.link.counts;
    const unused = granted + reported - refunded - gateway.begunOnLease - gateway.begunLocally;
    if (world.gateways.includes(gateway)) expect(unused).toBe(0);
    expect(unused).toBeGreaterThanOrEqual(0);
    stranded += unused;
  }
  return stranded;
}

function begunSince(world: VirtualWorld, fromMs: number): number {
  return world.begins.filter(({ atMs }) => atMs > fromMs).length;
}

async function ask(world: VirtualWorld, gateway: SimulatedGateway, units = 1): Promise<Answer> {
  const answers: Answer[] = [];
  gateway.request((answer) => answers.push(answer), CUSTOMER, units);
  for (let waitedMs = 0; answers.length === 0 && waitedMs < 1000; waitedMs += 10) await world.time.run(10);
  const [answer] = answers;
  if (answer === undefined) throw new Error('a request was not decided within a second');
  return answer;
}

/** Until a second after a bucket has dropped, so that no other drops while what is left is used up. */
async function becomeQuiet(world: VirtualWorld): Promise<void> {
  const quietMs = world.time.nowMs + QUIET_MS;
  await world.time.runUntil(Math.ceil(quietMs / BUCKET_MS) * BUCKET_MS + 1000);
}

/** How many requests one gateway admits until it refuses one. */
async function useUp(world: VirtualWorld, limit: number): Promise<number> {
  let admitted = 0;
  const gateway = world.gateway(0);
  while (admitted <= limit && (await ask(world, gateway)).outcome === 'admitted') admitted++;
  return admitted;
}
