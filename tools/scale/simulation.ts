/**
 * The lease algorithm as it is (src/customers/quota, src/store/window-arithmetic.ts) on thousands of gateways, in
 * virtual time.
 *
 * Each gateway has clocks, timers and a connection of its own; some crash and are replaced, and some lose a reply of the
 * store with their connection. A request goes to any gateway that its customer reaches. While the store is away nothing
 * is admitted (`deny`), so that what is admitted is covered by the guarantee.
 *
 * Memory is bounded by customers and gateways, not by the length of the run: what has begun is counted, not kept.
 */
import { hourly, type WindowStore } from '../../src/store/windows.ts';
import { Dice } from '../simulator/dice.ts';
import { type Answer, LeasingGateway } from '../simulator/leasing-gateway.ts';
import { Machine } from '../simulator/machine.ts';
import { type Fate, SimulatedStore, StoreLink } from '../simulator/simulated-store.ts';
import { VirtualTime } from '../simulator/virtual-time.ts';
import { HourlyCount, WholeCount } from './hourly-count.ts';
import { type CustomerClass, customerClasses } from './traffic.ts';

export interface ScaleSettings {
  readonly customers: number;
  readonly gateways: number;
  readonly durationMs: number;
  readonly seed: number;
  /** Told of the virtual time that has passed, once a virtual minute. */
  readonly progress?: (elapsedMs: number) => void;
}

/** What one class of customers asked for, got and cost. */
export interface ClassResult {
  readonly name: string;
  readonly customers: number;
  readonly requests: number;
  /** Begun upstream. */
  readonly begun: number;
  readonly refused: number;
  /** Neither: the store was away, or the request could not be sent. */
  readonly failed: number;
  readonly storeCalls: number;
  /** Begun although the hour's limit was used. */
  readonly tooMany: number;
}

export interface ScaleResult {
  readonly classes: readonly ClassResult[];
  readonly crashes: number;
  readonly lostConnections: number;
  /** Units. Those that were granted, and neither begun nor refunded, are stranded for an hour. */
  readonly granted: number;
  readonly refunded: number;
  readonly begun: number;
  readonly stranded: number;
}

/** Customers that a gateway has in mind: as in production, all whom it sees within minutes. */
const ACCOUNTS = 500;
const TIMEOUT_MS = 100;
const MINUTE_MS = 60_000;
const MAX_DRIFT = 0.0005;
/** Of all gateways, so many crash in an hour. */
const CRASHES_PER_HOUR = 0.05;
/** Of all replies of the store. */
const LOST_REPLIES = 1e-5;
/** Of all requests: the backend refuses the connection. */
const UNSENT_SHARE = 0.002;
const HOUR_MS = 3_600_000;
/** By then all leases have ended and what they had left has gone back. */
const QUIET_MS = 12_000;

export async function simulateScale(settings: ScaleSettings): Promise<ScaleResult> {
  const world = new World(settings);
  await world.run();
  return world.result();
}

interface ClassTally {
  readonly traffic: CustomerClass;
  readonly check: HourlyCount | WholeCount;
  requests: number;
  begun: number;
  refused: number;
  failed: number;
  storeCalls: number;
  inTurn: number;
}

class World {
  readonly #settings: ScaleSettings;
  readonly #time = new VirtualTime();
  readonly #store = new SimulatedStore(this.#time);
  readonly #dice: Dice;
  readonly #tallies: readonly ClassTally[];
  readonly #gateways: LeasingGateway[] = [];
  #crashes = 0;
  #lostConnections = 0;
  /** Of gateways that are gone. */
  #pastGranted = 0;
  #pastRefunded = 0;

  constructor(settings: ScaleSettings) {
    this.#settings = settings;
    this.#dice = new Dice(settings.seed);
    this.#tallies = customerClasses(settings).map((traffic) => ({
      traffic,
      check: reachesLimit(traffic) ? new HourlyCount(traffic.limit) : new WholeCount(traffic.limit, traffic.customers),
      requests: 0,
      begun: 0,
      refused: 0,
      failed: 0,
      storeCalls: 0,
      inTurn: 0,
    }));
    for (let index = 0; index < settings.gateways; index++) this.#gateways.push(this.#newGateway());
  }

  async run(): Promise<void> {
    const { durationMs, gateways } = this.#settings;
    for (const [index, tally] of this.#tallies.entries()) this.#arriveLater(index, tally, tally.traffic.fromMs);
    this.#everySoOften(HOUR_MS / (gateways * CRASHES_PER_HOUR), () => this.#crash());
    for (let minute = 1; minute * MINUTE_MS <= durationMs; minute++) {
      await this.#time.runUntil(minute * MINUTE_MS);
      for (const { link } of this.#gateways) forgetHistory(link);
      this.#settings.progress?.(minute * MINUTE_MS);
    }
    await this.#time.runUntil(durationMs + QUIET_MS);
  }

  result(): ScaleResult {
    const counts = this.#gateways.map(({ link }) => link.counts);
    const granted = counts.reduce((sum, each) => sum + each.granted, this.#pastGranted);
    const refunded = counts.reduce((sum, each) => sum + each.refunded, this.#pastRefunded);
    const begun = this.#tallies.reduce((sum, each) => sum + each.begun, 0);
    return {
      classes: this.#tallies.map(({ traffic, check, inTurn: _, ...tally }) => ({
        name: traffic.name,
        customers: traffic.customers,
        ...tally,
        tooMany: check.tooMany,
      })),
      crashes: this.#crashes,
      lostConnections: this.#lostConnections,
      granted,
      refunded,
      begun,
      stranded: granted - refunded - begun,
    };
  }

  #newGateway(): LeasingGateway {
    const dice = this.#dice;
    const machine = new Machine({
      time: this.#time,
      rate: 1 + dice.between(-MAX_DRIFT, MAX_DRIFT),
      monotonicOriginMs: dice.between(0, 1e9),
      wallOriginMs: 1e12 + dice.between(-1e8, 1e8),
      timerLatenessMs: () => dice.between(0, 1.5),
    });
    const link = new StoreLink(this.#store, this.#time, machine, () => this.#nextFate());
    return new LeasingGateway({
      machine,
      link,
      windows: this.#counted(link),
      onError: 'deny',
      instances: this.#settings.gateways,
      timeoutMs: TIMEOUT_MS,
      customers: ACCOUNTS,
    });
  }

  /** Calls about a customer count for its class. */
  #counted(link: StoreLink): WindowStore {
    const note = (customer: string) => {
      const tally = this.#tallies[Number.parseInt(customer, 10)];
      if (tally) tally.storeCalls++;
    };
    return {
      reserve(request) {
        note(request.customer);
        return link.reserve(request);
      },
      refund(customer, refunds) {
        note(customer);
        return link.refund(customer, refunds);
      },
      charge: (customer, admitted) => link.charge(customer, admitted),
    };
  }

  #nextFate(): Fate {
    const dice = this.#dice;
    const isLost = dice.chance(LOST_REPLIES);
    if (isLost) this.#lostConnections++;
    return {
      outMs: dice.between(0.1, 1),
      backMs: dice.between(0.1, 1),
      lost: isLost ? 'reply' : 'nothing',
      noticedAfterMs: dice.between(10, 1000),
      reconnectMs: dice.between(10, 500),
    };
  }

  /** The next of a class, at random instants that keep its rate. */
  #arriveLater(index: number, tally: ClassTally, fromMs: number): void {
    const { perSecond, burst, toMs } = tally.traffic;
    const atMs = fromMs + this.#waitFor((1000 * burst) / perSecond);
    if (atMs >= Math.min(toMs, this.#settings.durationMs)) return;
    this.#time.at(atMs, () => {
      const customer = this.#nextCustomer(tally);
      for (let i = 0; i < burst; i++) this.#request(index, tally, customer);
      this.#arriveLater(index, tally, atMs);
    });
  }

  /** The many in turn, so that all of them come; the few by chance. */
  #nextCustomer(tally: ClassTally): number {
    const { customers } = tally.traffic;
    if (tally.check instanceof WholeCount) return tally.inTurn++ % customers;
    return Math.floor(this.#dice.between(0, customers));
  }

  #request(index: number, tally: ClassTally, customer: number): void {
    const { spread, limit } = tally.traffic;
    const at = Math.floor(customer + this.#dice.between(0, spread)) % this.#gateways.length;
    const gateway = this.#gateways[at];
    if (gateway === undefined) return;
    tally.requests++;
    gateway.admit(`${index}/${customer}`, { limits: hourly(limit), usageResetAt: '' }, (answer) =>
      this.#settle(tally, customer, gateway, answer),
    );
  }

  #settle(tally: ClassTally, customer: number, gateway: LeasingGateway, answer: Answer): void {
    if (answer.outcome === 'refused') {
      tally.refused++;
    } else if (answer.outcome === 'unavailable') {
      tally.failed++;
    } else if (!gateway.mayBegin(answer) || this.#dice.chance(UNSENT_SHARE)) {
      tally.failed++;
      answer.settle(false);
    } else {
      answer.settle(true);
      tally.begun++;
      tally.check.begins(customer, this.#time.nowMs);
    }
  }

  #crash(): void {
    const index = Math.floor(this.#dice.between(0, this.#gateways.length));
    const gateway = this.#gateways[index];
    if (gateway === undefined) return;
    gateway.machine.crash();
    this.#pastGranted += gateway.link.counts.granted;
    this.#pastRefunded += gateway.link.counts.refunded;
    this.#gateways[index] = this.#newGateway();
    this.#crashes++;
  }

  #everySoOften(meanMs: number, action: () => void): void {
    this.#time.in(this.#waitFor(meanMs), () => {
      action();
      this.#everySoOften(meanMs, action);
    });
  }

  /** Exponential: what comes at random instants waits so for the next. */
  #waitFor(meanMs: number): number {
    return -meanMs * Math.log(1 - this.#dice.next());
  }
}

/** Whether the whole of what it asks for may be more than its limit. */
function reachesLimit({ customers, limit, perSecond, fromMs, toMs }: CustomerClass): boolean {
  return (perSecond * (toMs - fromMs)) / 1000 / customers > limit / 4;
}

/** The link keeps what other tests look at. */
function forgetHistory({ reservations, refunds }: StoreLink): void {
  reservations.length = 0;
  refunds.length = 0;
}
