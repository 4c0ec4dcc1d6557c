/** Random schedules: what is asked of the gateways, and what happens to them meanwhile. */
import fc from 'fast-check';
import type { Dice } from '../../../../tools/simulator/dice.ts';
import type { StoppedClock } from '../../../../tools/simulator/machine.ts';
import { type Fate, unharmed } from '../../../../tools/simulator/simulated-store.ts';
import {
  CUSTOMER,
  type Dispatch,
  type VirtualWorld,
  type WorldOptions,
} from '../../../../tools/simulator/virtual-world.ts';

export const WINDOW_MS = 3_600_000;
export const HORIZON_MS = 2.4 * WINDOW_MS;
/** A machine shows at most one false clock within the life of a lease. */
const CLOCK_FAULT_GAP_MS = 12_000;
const ECHO_MS = 14_000;
/** Requests that lost time arrive within this. */
const LATEST_MS = 20_000;
const ECHO_INTERVAL_MS = 250;

interface Burst {
  readonly atMs: number;
  readonly gateway: number;
  /** In hundredths of the limit. */
  readonly size: number;
  readonly spreadMs: number;
  /** One window later requests try for every unit that drops. */
  readonly echo: boolean;
  /** The gateway is stopped while the requests are on their way. */
  readonly stop: { readonly afterMs: number; readonly durationMs: number; readonly clock: StoppedClock } | undefined;
}

export type Fault =
  | { readonly kind: 'crash'; readonly atMs: number; readonly gateway: number }
  | {
      readonly kind: 'stop';
      readonly atMs: number;
      readonly gateway: number;
      readonly durationMs: number;
      readonly clock: StoppedClock;
    }
  | { readonly kind: 'set wall clock'; readonly atMs: number; readonly gateway: number; readonly byMs: number }
  | { readonly kind: 'outage'; readonly atMs: number; readonly gateway: number; readonly durationMs: number };

/** Requests at random instants, few enough for long leases. */
interface Trickle {
  readonly fromMs: number;
  readonly durationMs: number;
  readonly gateway: number;
  readonly perSecond: number;
}

export interface Network {
  /** Of all calls. */
  readonly slowShare: number;
  readonly lossShare: number;
}

export interface Schedule {
  readonly seed: number;
  readonly gateways: number;
  readonly limit: number;
  /** Of a request: any of these, as far as the limit allows it. */
  readonly units: readonly number[];
  readonly network: Network;
  readonly bursts: readonly Burst[];
  readonly trickles: readonly Trickle[];
  readonly faults: readonly Fault[];
}

/** Around whole windows after the beginning, where counts are most easily wrong, and anywhere else. */
const instants: fc.Arbitrary<number> = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(fc.nat(2), fc.nat(25_000)).map(([window, ms]) => window * WINDOW_MS + ms) },
  { weight: 1, arbitrary: fc.nat(HORIZON_MS) },
);
const gatewayIndex = fc.nat(3);
const stoppedClock = fc.constantFrom<StoppedClock>('none', 'monotonic', 'wall');

const burst: fc.Arbitrary<Burst> = fc.record({
  atMs: instants,
  gateway: gatewayIndex,
  size: fc.integer({ min: 1, max: 120 }),
  echo: fc.boolean(),
  stop: fc.option(fc.record({ afterMs: fc.nat(3000), durationMs: fc.nat(20_000), clock: stoppedClock }), {
    nil: undefined,
  }),
  spreadMs: fc.oneof(fc.constant(0), fc.nat(3000), fc.nat(20_000)),
});

export const crash: fc.Arbitrary<Fault> = fc.record({
  kind: fc.constant('crash'),
  atMs: instants,
  gateway: gatewayIndex,
});

export const stop: fc.Arbitrary<Fault> = fc.record({
  kind: fc.constant('stop'),
  atMs: instants,
  gateway: gatewayIndex,
  durationMs: fc.oneof(fc.nat(300), fc.nat(4000), fc.nat(60_000)),
  clock: stoppedClock,
});

export const wallClock: fc.Arbitrary<Fault> = fc.record({
  kind: fc.constant('set wall clock'),
  atMs: instants,
  gateway: gatewayIndex,
  byMs: fc.oneof(fc.integer({ min: -3000, max: 3000 }), fc.integer({ min: -1e7, max: 1e7 })),
});

export function outageOfAtMost(maxMs: number): fc.Arbitrary<Fault> {
  return fc.record({
    kind: fc.constant('outage'),
    atMs: instants,
    gateway: gatewayIndex,
    durationMs: fc.nat(maxMs),
  });
}

export const outage: fc.Arbitrary<Fault> = fc.oneof(
  outageOfAtMost(3000),
  outageOfAtMost(60_000),
  outageOfAtMost(1.2 * WINDOW_MS),
);

/** The store comes and goes every few seconds, for one gateway after the other. */
export const flapping: fc.Arbitrary<Fault[]> = fc
  .record({ atMs: instants, gateway: gatewayIndex, flaps: fc.integer({ min: 2, max: 25 }), periodMs: fc.nat(8000) })
  .map(({ atMs, gateway, flaps, periodMs }) =>
    Array.from({ length: flaps }, (_, flap) => ({
      kind: 'outage' as const,
      atMs: atMs + flap * (500 + periodMs),
      gateway,
      durationMs: 250 + periodMs / 2,
    })),
  );

export const harmless: Network = { slowShare: 0.03, lossShare: 0 };
const anyNetwork: fc.Arbitrary<Network> = fc.record({
  slowShare: fc.constantFrom(0, 0.03, 0.3),
  lossShare: fc.constantFrom(0, 0, 0.02, 0.15),
});

const trickle: fc.Arbitrary<Trickle> = fc.record({
  fromMs: instants,
  durationMs: fc.integer({ min: 20_000, max: 120_000 }),
  gateway: gatewayIndex,
  perSecond: fc.constantFrom(0.1, 0.5, 1, 3, 9),
});

export function schedules(
  faults: fc.Arbitrary<readonly Fault[]>,
  network: fc.Arbitrary<Network> = anyNetwork,
): fc.Arbitrary<Schedule> {
  return fc.record({
    ...gatewaysWith(faults, network),
    limit: fc.integer({ min: 1, max: 60 }),
    bursts: fc.array(burst, { minLength: 2, maxLength: 12 }),
    trickles: fc.constant([]),
  });
}

/** Schedules with long leases: of customers whose limit is higher, with few requests and a burst now and then. */
export function schedulesOfRareRequests(
  faults: fc.Arbitrary<readonly Fault[]>,
  network: fc.Arbitrary<Network> = anyNetwork,
): fc.Arbitrary<Schedule> {
  return fc.record({
    ...gatewaysWith(faults, network),
    limit: fc.integer({ min: 130, max: 500 }),
    bursts: fc.array(burst, { minLength: 1, maxLength: 5 }),
    trickles: fc.array(trickle, { minLength: 1, maxLength: 5 }),
  });
}

const units = fc.oneof(fc.constant([1]), fc.constantFrom([1, 1, 5], [2, 3], [1, 1, 1, 20], [1, 40]));

function gatewaysWith(faults: fc.Arbitrary<readonly Fault[]>, network: fc.Arbitrary<Network>) {
  return { seed: fc.integer(), gateways: fc.integer({ min: 1, max: 4 }), units, network, faults };
}

export function worldOptions({ seed, gateways, limit, network }: Schedule): WorldOptions {
  return {
    seed,
    gateways,
    limit,
    onError: 'deny',
    timeoutMs: 100,
    fate: (dice) => fate(dice, network),
    dispatch: anyDispatch,
    clocks: 'random',
  };
}

export function unitsOf(world: VirtualWorld, { units, limit }: Schedule): number {
  const possible = units.filter((each) => each <= limit);
  return possible[Math.floor(world.dice.between(0, possible.length))] ?? 1;
}

export function plan(world: VirtualWorld, schedule: Schedule): void {
  const { bursts, trickles, faults, limit } = schedule;
  const ask = (atMs: number, gateway: number) => {
    if (atMs >= HORIZON_MS) return;
    world.time.at(atMs, () => world.gateway(gateway).request(() => {}, CUSTOMER, unitsOf(world, schedule)));
  };
  for (const { fromMs, durationMs, gateway, perSecond } of trickles) {
    for (let left = Math.ceil((perSecond * durationMs) / 1000); left > 0; left--) {
      ask(fromMs + world.dice.between(0, durationMs), gateway);
    }
  }
  for (const burst of bursts) {
    const { atMs, gateway, size, spreadMs } = burst;
    if (burst.echo) echo(world, burst);
    for (let left = Math.ceil((size * limit) / 100); left > 0; left--) {
      ask(atMs + world.dice.between(0, spreadMs), gateway);
    }
  }
  const lastClockFault = new Map<number, number>();
  const stops = bursts.flatMap(({ atMs, gateway, stop }) =>
    stop ? [{ ...stop, kind: 'stop' as const, gateway, atMs: atMs + stop.afterMs }] : [],
  );
  for (const fault of [...faults, ...stops].toSorted((a, b) => a.atMs - b.atMs)) {
    if (showsFalseClock(fault)) {
      const index = fault.gateway % world.gateways.length;
      if (fault.atMs < (lastClockFault.get(index) ?? 0) + CLOCK_FAULT_GAP_MS) continue;
      lastClockFault.set(index, fault.atMs + (fault.kind === 'stop' ? fault.durationMs : 0));
    }
    if (fault.atMs < HORIZON_MS) world.time.at(fault.atMs, () => happen(world, fault));
  }
}

/** Asks again and again while the units of the burst may drop. */
function echo(world: VirtualWorld, { atMs, gateway, spreadMs }: Burst): void {
  const fromMs = atMs + WINDOW_MS;
  const untilMs = Math.min(fromMs + spreadMs + ECHO_MS, HORIZON_MS);
  for (let askMs = fromMs; askMs < untilMs; askMs += ECHO_INTERVAL_MS) {
    world.time.at(askMs, () => world.gateway(gateway).request());
  }
}

function showsFalseClock(fault: Fault): boolean {
  return fault.kind === 'set wall clock' || (fault.kind === 'stop' && fault.clock !== 'none');
}

function happen(world: VirtualWorld, fault: Fault): void {
  const { machine, link } = world.gateway(fault.gateway);
  if (fault.kind === 'crash') world.crash(fault.gateway);
  else if (fault.kind === 'stop') machine.stop(fault.durationMs, fault.clock);
  else if (fault.kind === 'set wall clock') machine.setWallClock(fault.byMs);
  else link.cut(fault.durationMs);
}

function fate(dice: Dice, { slowShare, lossShare }: Network): Fate {
  const latencyMs = () => (dice.chance(slowShare) ? dice.between(20, 2500) : dice.between(0.1, 4));
  const [outMs, backMs] = [latencyMs(), latencyMs()];
  if (!dice.chance(lossShare)) return unharmed(outMs, backMs);
  const losses = ['request', 'reply', 'time'] as const;
  const lost = losses[Math.floor(dice.between(0, losses.length))] ?? 'request';
  return {
    outMs: lost === 'time' ? dice.between(0, LATEST_MS) : outMs,
    backMs,
    lost,
    noticedAfterMs: dice.between(1, 3000),
    reconnectMs: dice.between(0, 500),
  };
}

/** Most begin at once, some so late that they must not, some never. */
function anyDispatch(dice: Dice): Dispatch {
  const afterMs = dice.chance(0.6) ? dice.between(0, 5) : dice.between(0, dice.chance(0.9) ? 3000 : 15_000);
  return { kind: dice.chance(0.1) ? 'fails' : 'begins', afterMs };
}
