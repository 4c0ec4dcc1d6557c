/**
 * The whole way of a unit through random schedules in virtual time: the usage history of every hour is the requests that
 * reached the backend plus the units that crashed gateways stranded, to the unit: lost connections strand none. What is
 * learnt late counts in the hour in which it is learnt, and no exported hour ever changes. Gateways run the real quota, the stores the real scripts and SQL.
 * HISTORY_RUNS multiplies the number of schedules.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openEmbeddedStore } from '../../../src/store/embedded/embedded-store.ts';
import { type CustomerDay, type CustomerHour, DAY_MS, HOUR_MS } from '../../../src/store/usage-history.ts';
import { HOURLY } from '../../../src/store/window-arithmetic.ts';
import { hourly } from '../../../src/store/windows.ts';
import { type LinkedStore, unharmed } from '../../../tools/simulator/simulated-store.ts';
import { VirtualTime } from '../../../tools/simulator/virtual-time.ts';
import { CUSTOMER, type SimulatedGateway, VirtualWorld } from '../../../tools/simulator/virtual-world.ts';
import { scriptedHistory, scriptedWindows } from '../../store/window-scripts-with-clock.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { shareOfRuns } from '../../support/share-of-runs.ts';
import { silent } from '../../support/silent.ts';
import { ByHour, GatewayLedger, HistoryModel, watchLeases } from './support/history-ledger.ts';
import {
  crash,
  type Fault,
  HORIZON_MS,
  outage,
  plan,
  type Schedule,
  schedules,
  schedulesOfRareRequests,
  stop,
  wallClock,
  worldOptions,
} from './support/schedules.ts';

const RUNS = Number(process.env.HISTORY_RUNS ?? 1);
/** Redis, whose own clock decides on expiry, deletes nothing of these years. */
const RETENTION = { hoursDays: 1_000_000, days: 1_000_000 };
/**
 * When the horizon and all outages are over, by then every machine goes on, every lease has ended, and what was not used has
 * gone back.
 */
const QUIET_MS = 180_000;
/** Requests of a gateway that is replaced have gone their way by then. */
const DRAIN_MS = 90_000;
/** An hour is exported from this long after its end. */
const EXPORTED_AFTER_MS = 60_000;
/** Ids are known for an hour. */
const LONGEST_OUTAGE_MS = 0.9 * HOUR_MS;

/** A store with the clock of the simulation. */
interface ClockedStore extends LinkedStore {
  /** Sets the clock back. */
  setClockBack(byMs: number): void;
  nowMs(): number;
  reset(): Promise<unknown>;
  hours(): Promise<readonly CustomerHour[]>;
  days(): Promise<readonly CustomerDay[]>;
  close(): Promise<unknown>;
}

type OpenStore = (time: VirtualTime, startMs: number) => Promise<ClockedStore>;

function clockOf(time: VirtualTime, startMs: number) {
  let shiftMs = 0;
  return {
    nowMs: () => Math.floor(startMs + time.nowMs - shiftMs),
    setClockBack: (byMs: number) => {
      shiftMs += byMs;
    },
    range: { fromMs: startMs - 3 * DAY_MS, toMs: startMs + DAY_MS },
  };
}

let redis: RedisServer;
let folder: string;
let opened = 0;
beforeAll(async () => {
  watchLeases();
  redis = await startRedis();
  folder = mkdtempSync(join(tmpdir(), 'tollgate-history-'));
});
afterAll(async () => {
  vi.restoreAllMocks();
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});

const inRedis: OpenStore = async (time, startMs) => {
  const { range, ...clock } = clockOf(time, startMs);
  const prefix = `run-${++opened}`;
  const key = `${prefix}:window:{${CUSTOMER}}`;
  const scripts = scriptedWindows(redis, HOURLY, RETENTION);
  const history = scriptedHistory(redis, prefix, RETENTION);
  let epochs = 0;
  const call = async (request: Parameters<typeof scripts.reserve>[2][number]) => {
    const [reserved] = await scripts.reserve([key], clock.nowMs(), [request], `epoch-${++epochs}`);
    if (reserved === undefined || reserved instanceof Error) throw reserved;
    return reserved;
  };
  const nothing = { grant: '', need: 0, ahead: 0, limits: hourly(0), holdMs: 0 };
  return {
    ...clock,
    reserve: ({ customer: _, ...request }) => call(request),
    refund: async (_, refunds) => (await call({ ...nothing, refunds })).refunded,
    charge: (_, admitted) => scripts.charge(key, clock.nowMs(), admitted, `epoch-${++epochs}`),
    reset: () => scripts.reset(key),
    hours: async () => (await history.hours([CUSTOMER], range))[0] ?? [],
    days: () => history.days(CUSTOMER, range),
    close: () => redis.command('FLUSHALL'),
  };
};

const inSqlite: OpenStore = async (time, startMs) => {
  const { range, ...clock } = clockOf(time, startMs);
  const file = join(folder, `${++opened}.sqlite`);
  const store = await openEmbeddedStore({
    file,
    clock: { nowMs: clock.nowMs, monotonicMs: () => time.nowMs },
    observer: silent.observer,
    usage: RETENTION,
  });
  await store.records.createCustomer({ id: CUSTOMER, plan: 'starter', suspended: false });
  const { windows, usageHistory } = store;
  return {
    ...clock,
    reserve: async (request) => ({ ...(await windows.reserve(request)), refunded: 0 }),
    refund: (customer, refunds) => windows.refund(customer, refunds),
    charge: (customer, admitted) => windows.charge(customer, admitted),
    reset: () => store.records.resetUsage(CUSTOMER, new Date(clock.nowMs()).toISOString()),
    hours: async () => (await usageHistory?.hours([CUSTOMER], range))?.[0] ?? [],
    days: async () => (await usageHistory?.days(CUSTOMER, range)) ?? [],
    close: async () => {
      await store.close();
      rmSync(file);
    },
  };
};

/** What happens beside the faults of {@link Schedule}. */
interface Operations {
  /** Where in an hour of the store's clock the schedule begins: bursts come around whole hours after that. */
  readonly beforeHourMs: number;
  readonly resets: readonly { readonly atMs: number; readonly knownWithinMs: number }[];
  /** Gateways or workers that are replaced in good order. */
  readonly replacements: readonly { readonly atMs: number; readonly gateway: number }[];
  readonly clockSteps: readonly { readonly atMs: number; readonly byMs: number }[];
}

const operations: fc.Arbitrary<Operations> = fc.record({
  beforeHourMs: fc.oneof(fc.nat(25_000), fc.nat(HOUR_MS)),
  resets: fc.array(fc.record({ atMs: fc.nat(HORIZON_MS), knownWithinMs: fc.nat(3000) }), { maxLength: 2 }),
  replacements: fc.array(fc.record({ atMs: fc.nat(HORIZON_MS), gateway: fc.nat(3) }), { maxLength: 3 }),
  clockSteps: fc.array(fc.record({ atMs: fc.nat(HORIZON_MS), byMs: fc.oneof(fc.nat(60_000), fc.nat(HOUR_MS)) }), {
    maxLength: 1,
  }),
});

/** Units that were admitted at its beginning are older than a window when they are reported. */
const longOutage: fc.Arbitrary<Fault> = fc.record({
  kind: fc.constant('outage'),
  atMs: fc.nat(20_000),
  gateway: fc.nat(3),
  durationMs: fc.integer({ min: HOUR_MS, max: 2 * HOUR_MS }),
});
/** Refunds of leases that were open at its beginning come after the end of an hour, and after that was closed. */
const longStop: fc.Arbitrary<Fault> = fc.record({
  kind: fc.constant('stop'),
  atMs: fc.nat(25_000),
  gateway: fc.nat(3),
  durationMs: fc.integer({ min: 45_000, max: 300_000 }),
  clock: fc.constant('none'),
});
const faults = fc
  .tuple(
    fc.array(fc.oneof(crash, stop, wallClock, outage), { maxLength: 8 }),
    fc.array(longOutage, { maxLength: 1 }),
    fc.array(longStop, { maxLength: 2 }),
  )
  .map((faults) => faults.flat());

const midnightMs = Date.UTC(2096, 2, 1);

interface Run {
  readonly world: VirtualWorld;
  readonly store: ClockedStore;
  readonly model: HistoryModel;
  readonly replaced: ReadonlySet<SimulatedGateway>;
  /** Exported hours, each time when another one is. None if the store's clock was set back, which opens hours again. */
  readonly exports: readonly (readonly CustomerHour[])[];
}

async function run(open: OpenStore, schedule: Schedule, operations: Operations): Promise<Run> {
  const options = worldOptions(schedule);
  const time = new VirtualTime();
  const isOver = () => time.nowMs > HORIZON_MS;
  const startMs = midnightMs - operations.beforeHourMs;
  const store = await open(time, startMs);
  const model = new HistoryModel(() => store.nowMs());
  const world = new VirtualWorld({
    ...options,
    time,
    store,
    onError: 'local',
    fate: (dice) => (isOver() ? unharmed(dice.between(0.1, 3), dice.between(0.1, 3)) : options.fate(dice)),
    observe: () => new GatewayLedger(model),
  });
  const replaced = planOperations(world, store, schedule, operations);
  plan(world, schedule);
  const exports: (readonly CustomerHour[])[] = [];
  const read = async () => {
    const closedMs = store.nowMs() - EXPORTED_AFTER_MS - HOUR_MS;
    exports.push((await store.hours()).filter(({ startMs }) => startMs <= closedMs));
  };
  const isSetBack = operations.clockSteps.length > 0;
  for (let atMs = operations.beforeHourMs + EXPORTED_AFTER_MS; atMs < HORIZON_MS && !isSetBack; atMs += HOUR_MS) {
    time.at(atMs, () => time.standStillFor(read()));
  }
  await time.runUntil(HORIZON_MS);
  while (world.everyGateway.some(({ link }) => !link.isUp())) await time.run(QUIET_MS);
  await time.run(QUIET_MS);
  return { world, store, model, replaced, exports };
}

/** Returns the gateways that have been replaced. */
function planOperations(
  world: VirtualWorld,
  store: ClockedStore,
  { limit }: Schedule,
  { resets, replacements, clockSteps }: Operations,
): ReadonlySet<SimulatedGateway> {
  const { time, dice } = world;
  for (const { atMs, knownWithinMs } of resets) {
    time.at(atMs, () => {
      time.standStillFor(store.reset());
      for (const index of world.gateways.keys()) {
        time.in(dice.between(0, knownWithinMs), () => {
          world.gateway(index).settings = { limits: hourly(limit), usageResetAt: String(atMs) };
        });
      }
    });
  }
  for (const { atMs, byMs } of clockSteps) time.at(atMs, () => store.setClockBack(byMs));
  const replaced = new Set<SimulatedGateway>();
  for (const { atMs, gateway } of replacements) {
    time.at(atMs, () => {
      const index = gateway % world.gateways.length;
      const old = world.gateway(index);
      replaced.add(old);
      world.start(index, old.settings);
      time.in(DRAIN_MS, () => old.machine.run(() => void old.quota.close()));
    });
  }
  return replaced;
}

async function expectExactHistory({ world, store, model, replaced, exports }: Run, schedule: Schedule): Promise<void> {
  const expected = new ByHour();
  for (const gateway of world.everyGateway) {
    const ledger = gateway.observer as GatewayLedger;
    const [taken, stranded, reports] = [ledger.taken(), ledger.stranded(), ledger.reports()];
    for (const units of [taken, stranded, reports]) {
      expected.add(units);
      for (const [, count] of units) expect(count).toBeGreaterThanOrEqual(0);
    }
    const inFlight = taken.sum() - gateway.begunOnLease;
    expect(inFlight).toBeGreaterThanOrEqual(0);
    expect(reports.sum()).toBeLessThanOrEqual(gateway.admittedLocally);
    // Only a crash strands what a gateway still had, or an outage of an hour: all else reached the backend or was refunded.
    const isGone = !world.gateways.includes(gateway) && !replaced.has(gateway);
    if (!isGone) expect(inFlight).toBe(0);
    if (isGone || awayMs(schedule) > LONGEST_OUTAGE_MS) continue;
    expect(stranded.inOrder()).toEqual([]);
    expect(reports.sum()).toBe(gateway.begunLocally);
  }
  if (model.isUncertain) return;

  const history = new ByHour();
  const hours = await store.hours();
  for (const { startMs, units } of hours) history.addTo(startMs / HOUR_MS, units);
  expect(history.inOrder()).toEqual(model.hours.inOrder());
  expect(new ByHour().add(history).subtract(expected).inOrder()).toEqual(model.moved.inOrder());
  for (const exported of exports) expect(hours).toEqual(expect.arrayContaining([...exported]));
  expect((await store.days()).map(({ startMs, units }) => [startMs, units])).toEqual(daysOf(history));
}

/** Returns for how long all outages of a schedule last together. */
function awayMs({ faults }: Schedule): number {
  return faults.reduce((sum, fault) => sum + (fault.kind === 'outage' ? fault.durationMs : 0), 0);
}

function daysOf(history: ByHour): [startMs: number, units: number][] {
  const days = new Map<number, number>();
  for (const [hour, units] of history.inOrder()) {
    const dayMs = Math.floor(hour / 24) * DAY_MS;
    days.set(dayMs, (days.get(dayMs) ?? 0) + units);
  }
  return [...days];
}

describe.each([
  { name: 'Redis', open: inRedis, runs: shareOfRuns(20) },
  { name: 'SQLite', open: inSqlite, runs: shareOfRuns(60) },
])(
  'in $name, each hour has the requests that reached the backend and the units that were stranded',
  ({ open, runs }) => {
    test.each([
      { leases: 'short', of: schedules },
      { leases: 'long', of: schedulesOfRareRequests },
    ])('with $leases leases', { timeout: 60_000 * RUNS }, async ({ of }) => {
      await fc.assert(
        fc.asyncProperty(of(faults), operations, async (schedule, planned) => {
          const done = await run(open, schedule, planned);
          await expectExactHistory(done, schedule).finally(() => done.store.close());
        }),
        { numRuns: runs * RUNS },
      );
    });
  },
);
