/**
 * A day or a month beside the hour, in virtual time: random schedules across the end of a period, with random anchors, held
 * against what the store granted and what began upstream.  On a failure fast-check prints the seed and the smallest schedule that it found.
 * PERIOD_RUNS multiplies the number of schedules.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { periodOf } from '../../../src/store/period-counts.ts';
import { HOUR_MS } from '../../../src/store/usage-history.ts';
import { hourly, type LimitCount, type PeriodLimit } from '../../../src/store/windows.ts';
import type { Answer } from '../../../tools/simulator/leasing-gateway.ts';
import { type StoreLink, unharmed } from '../../../tools/simulator/simulated-store.ts';
import {
  CUSTOMER,
  type SimulatedGateway,
  VirtualWorld,
  type WorldOptions,
} from '../../../tools/simulator/virtual-world.ts';
import { shareOfRuns } from '../../support/share-of-runs.ts';
import { ByHour, GatewayLedger, HistoryModel, watchLeases } from './support/history-ledger.ts';
import { mostInAnyWindow } from './support/most-in-any-window.ts';
import {
  crash,
  type Fault,
  flapping,
  HORIZON_MS,
  harmless,
  outageOfAtMost,
  plan as planSchedule,
  type Schedule,
  schedules,
  schedulesOfRareRequests,
  stop,
  WINDOW_MS,
  wallClock,
  worldOptions,
} from './support/schedules.ts';
import { type StoredPeriod, storedPeriods, unitsWithin } from './support/stored-periods.ts';

const RUNS = Number(process.env.PERIOD_RUNS ?? 1);
const MAX_REFUSAL_MS = 30_000;
/** Every machine goes on, every lease has ended, what was not used has gone back, and no refusal is remembered. */
const QUIET_MS = 150_000;
const TIMEOUT_MS = 120_000 * RUNS;

beforeAll(watchLeases);
afterAll(() => void vi.restoreAllMocks());

/** A period that ends while a schedule runs. */
interface Plan {
  readonly policy: PeriodLimit['policy'];
  readonly anchorMs: number;
  /** An hour of the period. */
  readonly hour: number;
  /** Of the hour's limit. */
  readonly percent: number;
  readonly endsAfterMs: number;
}

const hours = fc.integer({ min: Date.UTC(2024, 0, 1) / HOUR_MS, max: Date.UTC(2100, 0, 1) / HOUR_MS });

const plans: fc.Arbitrary<Plan> = fc.record({
  policy: fc.constantFrom('daily', 'monthly'),
  anchorMs: fc.oneof(
    fc.constantFrom(0, Date.UTC(2026, 0, 31, 23), Date.UTC(2026, 0, 29)),
    hours.map((hour) => hour * HOUR_MS),
  ),
  hour: hours,
  percent: fc.integer({ min: 10, max: 250 }),
  // Bursts come in the 25 s from whole hours of the schedule on: the period ends there, or somewhere else.
  endsAfterMs: fc.oneof(
    fc.tuple(fc.nat(2), fc.nat(25_000)).map(([window, ms]) => window * WINDOW_MS + ms),
    fc.nat(HORIZON_MS),
  ),
});

/** Returns the limit of the period, and when the schedule begins. */
function planned(schedule: Schedule, { policy, anchorMs, hour, percent, endsAfterMs }: Plan) {
  const amount = Math.max(1, Math.floor((schedule.limit * percent) / 100));
  const limit: PeriodLimit = { policy, anchorMs, amount, beyond: 'refuse', plan: 'starter' };
  return { limit, startMs: periodOf(limit, hour * HOUR_MS).endHour * HOUR_MS - endsAfterMs };
}

/** One run of a schedule, with a model of what the history must have. */
async function run(
  schedule: Schedule,
  { limit, startMs }: ReturnType<typeof planned>,
  options: Partial<WorldOptions> = {},
  prepare: (gateway: SimulatedGateway) => void = () => undefined,
) {
  const base = worldOptions(schedule);
  const isOver = () => world.time.nowMs > HORIZON_MS;
  const model: HistoryModel = new HistoryModel(() => world.store.nowMs());
  const world: VirtualWorld = new VirtualWorld({
    ...base,
    fate: (dice) => (isOver() ? unharmed(dice.between(0.1, 3), dice.between(0.1, 3)) : base.fate(dice)),
    dispatch: (dice) => (isOver() ? { kind: 'begins', afterMs: 0 } : base.dispatch(dice)),
    observe: () => new GatewayLedger(model),
    startMs,
    ...options,
  });
  for (const gateway of world.gateways) {
    gateway.settings = { limits: [...hourly(schedule.limit), limit], usageResetAt: '' };
    prepare(gateway);
  }
  planSchedule(world, schedule);
  await silently(() => world.time.runUntil(HORIZON_MS));
  return { world, model };
}

/** While the store is away every refusal is an error, and their stacks would take a fifth of the time. */
async function silently(run: () => Promise<void>): Promise<void> {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  await run();
  Error.stackTraceLimit = stackTraceLimit;
}

/** Each period has as many units as its hours in the usage history, and no hour with units is outside of all. */
function expectHistoryInPeriods(world: VirtualWorld, customer = CUSTOMER): StoredPeriod[] {
  const history = world.store.hours(customer);
  const periods = storedPeriods(world.store, customer);
  for (const period of periods) expect(unitsWithin(history, period)).toBe(period.counted);
  const counted = periods.reduce((sum, period) => sum + period.counted, 0);
  expect(counted).toBe([...history.values()].reduce((sum, units) => sum + units, 0));
  return periods;
}

/** Returns the units that requests took in leases granted within a period, by any gateway. */
function takenWithin(world: VirtualWorld, period: StoredPeriod): number {
  const taken = new ByHour();
  for (const { observer } of world.everyGateway) taken.add((observer as GatewayLedger).taken());
  return unitsWithin(taken, period);
}

/** Returns the units of closed periods that were refunded to this one: the customer may use them in it, too. */
function refundedTo(model: HistoryModel, { startHour, endHour }: StoredPeriod): number {
  const late = model.late.filter(({ from, to }) => from < startHour && to >= startHour && to < endHour);
  return late.reduce((sum, { units }) => sum + units, 0);
}

async function ask(world: VirtualWorld, units = 1): Promise<Answer> {
  const answers: Answer[] = [];
  world.gateway(0).request((answer) => answers.push(answer), CUSTOMER, units);
  for (let waitedMs = 0; answers.length === 0 && waitedMs < 1000; waitedMs += 10) await world.time.run(10);
  const [answer] = answers;
  if (answer === undefined) throw new Error('a request was not decided within a second');
  return answer;
}

async function useUp(world: VirtualWorld, most: number): Promise<number> {
  let admitted = 0;
  while (admitted <= most && (await ask(world)).outcome === 'admitted') admitted++;
  return admitted;
}

const machineFaults = fc.array(fc.oneof(crash, stop, wallClock), { maxLength: 12 });
const faultsOfAll = fc
  .tuple(
    fc.array(fc.oneof(crash, stop, wallClock, outageOfAtMost(60_000)), { maxLength: 8 }),
    fc.array(flapping, { maxLength: 2 }),
  )
  .map(([single, flaps]): Fault[] => [...single, ...flaps.flat()]);
const faultsWithoutCrash = fc.array(fc.oneof(stop, wallClock), { maxLength: 8 });
/** Of the store alone: the clocks of the gateways are right. */
const storeFaults = fc
  .tuple(
    fc.array(fc.oneof(outageOfAtMost(60_000), outageOfAtMost(0.7 * WINDOW_MS)), { minLength: 1, maxLength: 4 }),
    fc.array(flapping, { maxLength: 3 }),
  )
  .map(([single, flaps]): Fault[] => [...single, ...flaps.flat()]);

/** A schedule that no period refuses proves little, as does one without the end of a period in use. */
let schedulesRun = 0;
let periodsFilled = 0;
let boundariesCrossed = 0;
afterAll(() => {
  expect(periodsFilled).toBeGreaterThanOrEqual(schedulesRun / 4);
  expect(boundariesCrossed).toBeGreaterThanOrEqual(schedulesRun / 4);
});

function note(limit: PeriodLimit, periods: readonly StoredPeriod[]): void {
  schedulesRun++;
  if (periods.some(({ counted }) => counted >= limit.amount)) periodsFilled++;
  if (periods.filter(({ counted }) => counted > 0).length > 1) boundariesCrossed++;
}

describe.each([
  { leases: 'short', of: schedules, runs: 400 },
  { leases: 'long', of: schedulesOfRareRequests, runs: 40 },
])('across the end of a period, with $leases leases', ({ of, runs }) => {
  test.each(['deny', 'local'] as const)(
    'no period grants more than it allows, and the usage history of its hours is its count, with on_error: %s',
    { timeout: TIMEOUT_MS },
    (onError) =>
      fc.assert(
        fc.asyncProperty(of(onError === 'deny' ? machineFaults : faultsOfAll), plans, async (schedule, plan) => {
          const period = planned(schedule, plan);
          const { world, model } = await run(schedule, period, { onError });
          await world.time.run(QUIET_MS);
          const periods = expectHistoryInPeriods(world);
          for (const each of periods) {
            expect(takenWithin(world, each)).toBeLessThanOrEqual(period.limit.amount + refundedTo(model, each));
            if (onError === 'deny') expect(each.counted).toBeLessThanOrEqual(period.limit.amount);
          }
          if (onError === 'deny') {
            const begun = world.begins.map(({ atMs }) => atMs);
            expect(mostInAnyWindow(begun, WINDOW_MS)).toBeLessThanOrEqual(schedule.limit);
          }
          note(period.limit, periods);
        }),
        { numRuns: RUNS * shareOfRuns(runs, runs / 4) },
      ),
  );

  test(
    'a unit is taken from hour and period, or from neither: what both have left can be used',
    {
      timeout: TIMEOUT_MS,
    },
    () =>
      fc.assert(
        fc.asyncProperty(of(faultsWithoutCrash, fc.constant(harmless)), plans, async (schedule, plan) => {
          const { limit, startMs } = planned(schedule, plan);
          const { world } = await run(schedule, { limit, startMs });
          await world.time.run(QUIET_MS);
          // The history is what began, to the unit: so are the periods.
          expect(world.store.history(CUSTOMER)).toBe(world.begins.length);
          const present = periodOf(limit, world.store.nowMs());
          // Nothing may end while what is left is used up.
          fc.pre(present.endHour * HOUR_MS - world.store.nowMs() > 60_000);
          const counted =
            storedPeriods(world.store).find(({ startHour }) => startHour === present.startHour)?.counted ?? 0;
          const before = world.store.used(CUSTOMER);
          const admitted = await useUp(world, schedule.limit);
          const left = Math.min(schedule.limit - before, limit.amount - counted);
          // A bucket may drop meanwhile.
          if (world.store.used(CUSTOMER) === before + admitted) expect(admitted).toBe(Math.max(0, left));
          await world.time.run(QUIET_MS);
          expectHistoryInPeriods(world);
        }),
        { numRuns: RUNS * shareOfRuns(runs / 2) },
      ),
  );

  test(
    'the first request of the next period passes within a second, though refusals are remembered',
    {
      timeout: TIMEOUT_MS,
    },
    () =>
      fc.assert(
        fc.asyncProperty(
          of(machineFaults),
          plans,
          fc.integer({ min: 1000, max: MAX_REFUSAL_MS - 1000 }),
          async (schedule, plan, beforeMs) => {
            const { limit, startMs } = planned(schedule, plan);
            const { world } = await run(schedule, { limit, startMs });
            // The hour, which drops nothing in that minute, must not refuse.
            for (const gateway of world.gateways) {
              gateway.settings = { ...gateway.settings, limits: [...hourly(100_000), limit] };
            }
            const { endHour } = periodOf(limit, world.store.nowMs() + QUIET_MS);
            const boundaryMs = endHour * HOUR_MS - startMs;
            await silently(() => world.time.runUntil(boundaryMs - beforeMs));
            await useUp(world, limit.amount);
            await world.time.runUntil(boundaryMs - 20);
            world.gateway(0).request();
            await world.time.runUntil(boundaryMs + 900);
            expect((await ask(world)).outcome).toBe('admitted');
          },
        ),
        { numRuns: RUNS * shareOfRuns(runs / 2) },
      ),
  );
});

/** A report that the store counted in the day before, whose units the gateway added to what is free of the new day. */
const AT_THE_BOUNDARY: [Schedule, Plan] = [
  {
    seed: 0,
    gateways: 2,
    units: [1, 40],
    network: { slowShare: 0.3, lossShare: 0 },
    faults: [
      { kind: 'outage', atMs: 1, gateway: 1, durationMs: 25261 },
      { kind: 'outage', atMs: 0, gateway: 0, durationMs: 0 },
    ],
    limit: 53,
    bursts: [
      { atMs: 0, gateway: 3, size: 8, echo: false, stop: undefined, spreadMs: 0 },
      { atMs: 0, gateway: 0, size: 50, echo: false, stop: undefined, spreadMs: 0 },
      { atMs: 3600000, gateway: 0, size: 91, echo: false, stop: undefined, spreadMs: 0 },
      { atMs: 3600000, gateway: 0, size: 4, echo: false, stop: undefined, spreadMs: 0 },
      { atMs: 3390, gateway: 0, size: 17, echo: false, stop: undefined, spreadMs: 3174 },
      { atMs: 5254, gateway: 0, size: 42, echo: false, stop: undefined, spreadMs: 0 },
      { atMs: 3600000, gateway: 0, size: 87, echo: false, stop: undefined, spreadMs: 0 },
      { atMs: 18412, gateway: 0, size: 25, echo: false, stop: undefined, spreadMs: 2842 },
      { atMs: 10214, gateway: 3, size: 76, echo: false, stop: undefined, spreadMs: 1603 },
      { atMs: 0, gateway: 1, size: 48, echo: false, stop: undefined, spreadMs: 0 },
      { atMs: 3601280, gateway: 3, size: 110, echo: false, stop: undefined, spreadMs: 2471 },
    ],
    trickles: [],
  },
  { policy: 'daily', anchorMs: 0, hour: 473352, percent: 91, endsAfterMs: 2 },
];

describe('while the store is away', () => {
  /** Requests begin in the instant in which they are admitted: in the same period by the clock of their gateway. */
  const atOnce: Partial<WorldOptions> = {
    onError: 'local',
    clockSkewMs: 500,
    dispatch: (dice) => ({ kind: dice.chance(0.1) ? 'fails' : 'begins', afterMs: 0 }),
  };
  const withoutStops = (schedule: Schedule): Schedule => {
    return { ...schedule, bursts: schedule.bursts.map((burst) => ({ ...burst, stop: undefined })) };
  };

  /** Returns requests that began without the store: when, in which period by their gateway's clock, as which unit of it. */
  function localBegins(world: VirtualWorld, limit: PeriodLimit) {
    const counts = new Map<string, number>();
    const local = world.begins.filter(({ mode }) => mode === 'local');
    return local.map(({ atMs, gateway }) => {
      const { machine } = gateway;
      const { startHour } = periodOf(limit, machine.nowMs() - (world.time.nowMs - atMs) * machine.rate);
      const name = `${world.gateways.indexOf(gateway)} ${startHour}`;
      const number = (counts.get(name) ?? 0) + 1;
      counts.set(name, number);
      return { atMs, gateway, startHour, number };
    });
  }

  test('each gateway admits in one period at most its share of the limit, in all outages', {
    timeout: TIMEOUT_MS,
  }, async () => {
    let sharesUsed = 0;
    await fc.assert(
      fc.asyncProperty(schedules(storeFaults), plans, async (schedule, plan) => {
        const { limit, startMs } = planned(schedule, plan);
        const { world } = await run(withoutStops(schedule), { limit, startMs }, atOnce);
        const share = Math.floor(limit.amount / schedule.gateways);
        const most = Math.max(0, ...localBegins(world, limit).map(({ number }) => number));
        expect(most).toBeLessThanOrEqual(share);
        if (most === share) sharesUsed++;
      }),
      { numRuns: RUNS * shareOfRuns(400, 100), examples: [AT_THE_BOUNDARY] },
    );
    expect(sharesUsed).toBeGreaterThan(0);
  });

  test(
    'of what was free at the last reply, without the units that the gateway itself has reported since',
    {
      timeout: TIMEOUT_MS,
    },
    () =>
      fc.assert(
        fc.asyncProperty(schedules(storeFaults, fc.constant(harmless)), plans, async (schedule, plan) => {
          const { limit, startMs } = planned(schedule, plan);
          const options: Partial<WorldOptions> = { ...atOnce, clocks: 1, fate: () => unharmed(1, 1) };
          const replies = new Map<SimulatedGateway, Reply[]>();
          const { world } = await run(withoutStops(schedule), { limit, startMs }, options, (gateway) => {
            replies.set(
              gateway,
              recordReplies(gateway.link, () => gateway.machine.monotonicMs() - 5000),
            );
          });
          for (const { atMs, gateway, startHour, number } of localBegins(world, limit)) {
            const heard =
              replies.get(gateway)?.filter((reply) => reply.startHour === startHour && reply.atMs <= atMs) ?? [];
            // Of the replies of that instant, the request may have been decided by the one before.
            const last = heard.filter(
              (reply, index) => reply.atMs === atMs || index === heard.length - 1 || heard[index + 1]?.atMs === atMs,
            );
            const free = last.length > 0 ? Math.max(...last.map((reply) => reply.free + reply.reported)) : limit.amount;
            expect(number).toBeLessThanOrEqual(Math.floor(free / schedule.gateways));
          }
        }),
        { numRuns: RUNS * shareOfRuns(300) },
      ),
  );
});

/** What the store says of a period. */
interface Reply {
  readonly atMs: number;
  readonly startHour: number;
  readonly free: number;
  /** Units that this connection has reported in the period. */
  readonly reported: number;
}

/** Returns what comes back on a connection, in the order in which its gateway reads it. */
function recordReplies(link: StoreLink, nowMs: () => number): Reply[] {
  const replies: Reply[] = [];
  const { reserve, charge } = link;
  const heard = (count: LimitCount | undefined, units: number) => {
    if (count?.period === undefined) return;
    const { startHour } = count.period;
    const before = replies.findLast((reply) => reply.startHour === startHour)?.reported ?? 0;
    replies.push({ atMs: nowMs(), startHour, free: count.free, reported: before + units });
  };
  link.reserve = async (request) => {
    const grant = await reserve.call(link, request);
    heard(grant.counts[1], 0);
    return grant;
  };
  link.charge = async (customer, charged, period) => {
    const reply = await charge.call(link, customer, charged, period);
    heard(
      reply.period,
      charged.reduce((sum, { units }) => sum + units, 0),
    );
    return reply;
  };
  return replies;
}
