/**
 * Gateways, their machines and the store they share, in virtual time.
 *
 * A request that is admitted begins upstream after a while if its gateway's own clocks say that it still may, else it
 * gives its unit back. What is recorded is when it began in true time, which no gateway knows.
 */
import type { Admitted, QuotaMode, QuotaSettings } from '../../src/customers/quota/hourly-quota.ts';
import type { KeyCeiling } from '../../src/customers/quota/key-ceiling.ts';
import type { UsageLevels } from '../../src/customers/quota/leased-quota.ts';
import type { OnStoreError } from '../../src/customers/quota/without-store.ts';
import { hourly, type WindowRoot } from '../../src/store/windows.ts';
import { Dice } from './dice.ts';
import { type Answer, LeasingGateway } from './leasing-gateway.ts';
import { Machine } from './machine.ts';
import {
  type Fate,
  type LinkedStore,
  type LinkObserver,
  SimulatedStore,
  START_MS,
  StoreLink,
} from './simulated-store.ts';
import { VirtualTime } from './virtual-time.ts';

export const CUSTOMER = 'acme';

/** What happens to a request between its admission and the upstream. */
export type Dispatch =
  | { readonly kind: 'begins'; readonly afterMs: number }
  /** So long before its deadline, by the gateway's own clocks. */
  | { readonly kind: 'begins late'; readonly beforeMs: number }
  | { readonly kind: 'fails'; readonly afterMs: number };

export interface WorldOptions {
  readonly seed: number;
  readonly gateways: number;
  readonly limit: number;
  readonly onError: OnStoreError;
  readonly timeoutMs: number;
  readonly customers?: number;
  readonly fate: (dice: Dice) => Fate;
  readonly dispatch: (dice: Dice) => Dispatch;
  /** `random`: each machine has clocks and timers of its own; else the rate of all clocks, and timers are punctual. */
  readonly clocks: 'random' | number;
  /** The error of a machine's `random` clocks. Left out: as of real machines, far below what the deadlines allow. */
  readonly clockError?: (dice: Dice) => number;
  /** Of keys, one of which each request has; undefined: without a limit. Left out: no key has one. */
  readonly ceilings?: readonly (KeyCeiling | undefined)[];
  /** What each gateway tells of high usage. */
  readonly levels?: (machine: Machine) => UsageLevels;
  /** Left out: the world's own, a simulated one. Goes by `time`. */
  readonly store?: LinkedStore;
  /** Left out: the world's own. */
  readonly time?: VirtualTime;
  /** Where the clock of the world's own store begins. */
  readonly startMs?: number;
  /** How far a machine's `random` wall clock is from the store's. Left out: up to a day. */
  readonly clockSkewMs?: number;
  /** Returns what observes the connection of a new gateway. */
  readonly observe?: () => LinkObserver;
}

/** One unit: a request that takes several is as many. */
export interface Begin {
  readonly atMs: number;
  /** Of the key, if it has a limit. */
  readonly root: WindowRoot;
  readonly mode: QuotaMode;
  readonly gateway: SimulatedGateway;
}

const LARGEST_DRIFT = 0.0005;

export class VirtualWorld {
  readonly time: VirtualTime;
  /** Unused where the options give another one. */
  readonly store: SimulatedStore;
  readonly gateways: SimulatedGateway[] = [];
  /** Also those that are gone. */
  readonly everyGateway: SimulatedGateway[] = [];
  readonly begins: Begin[] = [];
  readonly dice: Dice;
  readonly options: WorldOptions;

  constructor(options: WorldOptions) {
    this.options = options;
    this.dice = new Dice(options.seed);
    this.time = options.time ?? new VirtualTime();
    this.store = new SimulatedStore(this.time, options.startMs);
    for (let index = 0; index < options.gateways; index++)
      this.start(index, { limits: hourly(options.limit), usageResetAt: '' });
  }

  /** A new gateway in the place of an old one. */
  start(index: number, settings: QuotaSettings): SimulatedGateway {
    const gateway = new SimulatedGateway(this, settings);
    this.gateways[index] = gateway;
    this.everyGateway.push(gateway);
    return gateway;
  }

  gateway(index: number): SimulatedGateway {
    const gateway = this.gateways[index % this.gateways.length];
    if (gateway === undefined) throw new RangeError(`there is no gateway ${index}`);
    return gateway;
  }

  crash(index: number): void {
    const { machine, settings } = this.gateway(index);
    machine.crash();
    this.start(index % this.gateways.length, settings);
  }

  newMachine(): Machine {
    const { time, dice } = this;
    const { clocks, startMs = START_MS, clockSkewMs = 1e8 } = this.options;
    const { clockError = (dice: Dice) => dice.between(-LARGEST_DRIFT, LARGEST_DRIFT) } = this.options;
    if (clocks !== 'random') {
      const punctual = () => 0;
      return new Machine({
        time,
        rate: clocks,
        monotonicOriginMs: 5000,
        wallOriginMs: startMs,
        timerLatenessMs: punctual,
      });
    }
    return new Machine({
      time,
      rate: 1 + clockError(dice),
      monotonicOriginMs: dice.between(0, 1e9),
      wallOriginMs: startMs + dice.between(-clockSkewMs, clockSkewMs),
      timerLatenessMs: () => (dice.chance(0.1) ? dice.between(0, 40) : dice.between(0, 1.5)),
    });
  }
}

export class SimulatedGateway extends LeasingGateway {
  readonly observer: LinkObserver | undefined;
  settings: QuotaSettings;
  /** All counts are of units. Begun upstream on units of the store. */
  begunOnLease = 0;
  begunLocally = 0;
  admittedLocally = 0;
  refused = 0;
  unavailable = 0;
  readonly #world: VirtualWorld;

  constructor(world: VirtualWorld, settings: QuotaSettings) {
    const { options, time, dice } = world;
    const machine = world.newMachine();
    const observer = options.observe?.();
    super({
      machine,
      link: new StoreLink(options.store ?? world.store, time, machine, () => options.fate(dice), observer),
      onError: options.onError,
      instances: options.gateways,
      timeoutMs: options.timeoutMs,
      customers: options.customers ?? 1000,
      levels: options.levels?.(machine),
    });
    this.#world = world;
    this.observer = observer;
    this.settings = settings;
  }

  /** A request that arrives; once it is decided, `decided` is told and an admitted one goes its way. */
  request(
    decided: (answer: Answer) => void = () => {},
    customer = CUSTOMER,
    units = 1,
    ceiling = this.#anyCeiling(units),
  ): void {
    const settle = (answer: Answer) => {
      this.#count(answer, units);
      if (answer.outcome === 'admitted') this.#dispatch(answer, units, ceiling?.limit.root);
      decided(answer);
    };
    this.admit(customer, ceiling ? settingsUnder(ceiling, this.settings) : this.settings, settle, units);
  }

  #anyCeiling(units: number): KeyCeiling | undefined {
    const { options, dice } = this.#world;
    const { ceilings } = options;
    const ceiling = ceilings?.[Math.floor(dice.between(0, ceilings.length))];
    return ceiling && ceiling.limit.amount >= units ? ceiling : undefined;
  }

  #count(answer: Answer, units: number): void {
    if (answer.outcome === 'refused') this.refused += units;
    else if (answer.outcome === 'unavailable') this.unavailable += units;
    else if (answer.mode === 'local') this.admittedLocally += units;
  }

  #dispatch(admitted: Admitted, units: number, root: WindowRoot): void {
    const { options, dice } = this.#world;
    const dispatch = options.dispatch(dice);
    const act = () => {
      const begins = dispatch.kind !== 'fails' && this.mayBegin(admitted);
      if (begins) this.#begin(admitted.mode, units, root);
      admitted.settle(begins);
    };
    const afterMs = dispatch.kind === 'begins late' ? this.msLeft(admitted) - dispatch.beforeMs : dispatch.afterMs;
    if (afterMs <= 0) act();
    else this.#world.time.in(afterMs, () => this.machine.run(act));
  }

  #begin(mode: QuotaMode, units: number, root: WindowRoot): void {
    const { begins, time } = this.#world;
    for (let unit = 0; unit < units; unit++) begins.push({ atMs: time.nowMs, root, mode, gateway: this });
    if (mode === 'local') this.begunLocally += units;
    else this.begunOnLease += units;
  }
}

/** Returns the settings of requests with a key that has a limit. */
function settingsUnder(ceiling: KeyCeiling, settings: QuotaSettings): QuotaSettings {
  const [hour, ...others] = settings.limits;
  return { ...settings, limits: [hour, ceiling.limit, ...others], ceiling };
}
