import { StoreUnavailableError } from '../../src/store/errors.ts';
import { MemoryHash } from '../../src/store/memory-hash.ts';
import {
  charge,
  HOURLY,
  refund,
  reserve,
  reset,
  unitsSettled,
  type WindowGrant,
} from '../../src/store/window-arithmetic.ts';
import {
  type ChargedUnits,
  type Grant,
  hourly,
  type Refund,
  type ReserveRequest,
  type WindowStore,
} from '../../src/store/windows.ts';
import type { Machine } from './machine.ts';
import type { VirtualTime } from './virtual-time.ts';

const START_MS = Date.UTC(2030, 0, 1);
const HOUR_MS = 3_600_000;

type Executed<T> = T | Promise<T>;

/** What a connection runs its calls on. While a call takes real time, virtual time stands still. */
export interface LinkedStore {
  reserve(request: ReserveRequest): Executed<WindowGrant & { readonly refunded: number }>;
  refund(customer: string, refunds: readonly Refund[]): Executed<number>;
  charge(customer: string, admitted: readonly ChargedUnits[]): Executed<{ readonly used: number }>;
}

/** Is told what a connection carries, at the instant at which it happens. */
export interface LinkObserver {
  /** By the store, whether or not the gateway hears of it. */
  granted(grant: Grant): void;
  delivered(grant: Grant): void;
  /** By the gateway, whether or not the store hears of it. */
  handedBack(refund: Refund): void;
  refunded(refund: Refund): void;
  /** By the store. */
  reported(units: number): void;
}

/** The windows as Redis keeps them, and the only clock that counts. */
export class SimulatedStore implements LinkedStore {
  readonly #time: VirtualTime;
  readonly #windows = new Map<string, MemoryHash>();
  #clockMs = START_MS;
  #epochs = 0;
  /** Units granted and not refunded, by customer and hour of the grant: what the usage history has. */
  readonly #history = new Map<string, number>();

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  nowMs(): number {
    return Math.floor(this.#clockMs + this.#time.nowMs);
  }

  setClockBack(byMs: number): void {
    this.#clockMs -= byMs;
  }

  resetUsage(customer: string): void {
    reset(this.#windowOf(customer));
  }

  reserve({ customer, ...request }: ReserveRequest): WindowGrant & { readonly refunded: number } {
    const refunded = this.refund(customer, request.refunds);
    const unrefunded = { ...request, refunds: [] };
    const grant = reserve(() => this.#windowOf(customer), HOURLY, this.nowMs(), unrefunded, this.#newEpoch());
    this.#addToHistory(customer, Math.floor(grant.storeTimeMs / HOUR_MS), grant.granted);
    return { ...grant, refunded };
  }

  refund(customer: string, refunds: readonly Refund[]): number {
    for (const { hour, units } of refunds) this.#addToHistory(customer, hour, -units);
    return refund(this.#windowOf(customer), refunds);
  }

  charge(customer: string, admitted: readonly ChargedUnits[]): { used: number } {
    const { used } = charge(this.#windowOf(customer), HOURLY, this.nowMs(), admitted, this.#newEpoch());
    return { used };
  }

  used(customer: string): number {
    return this.reserve({ customer, need: 0, ahead: 0, limits: hourly(1), holdMs: 0, refunds: [] }).counts[0].used;
  }

  settled(customer: string): number {
    const window = this.#windowOf(customer);
    return unitsSettled(window.buckets(), HOURLY, this.nowMs(), window.head()?.holdEndMs ?? 0);
  }

  /** @throws Error when more units are refunded in an hour than were granted in it. */
  #addToHistory(customer: string, hour: number, units: number): void {
    const name = `${customer} ${hour}`;
    const sum = (this.#history.get(name) ?? 0) + units;
    if (sum < 0) throw new Error(`the history of ${customer} has ${sum} units in one hour`);
    this.#history.set(name, sum);
  }

  #windowOf(customer: string): MemoryHash {
    const known = this.#windows.get(customer) ?? new MemoryHash();
    this.#windows.set(customer, known);
    return known;
  }

  #newEpoch(): string {
    return `epoch-${++this.#epochs}`;
  }
}

/** What becomes of one call. A lost message stalls its connection: nothing passes that way until it is cut. */
export interface Fate {
  readonly outMs: number;
  readonly backMs: number;
  readonly lost: 'nothing' | 'request' | 'reply';
  /** After a loss: until the connection is cut, and then until there is a new one. */
  readonly noticedAfterMs: number;
  readonly reconnectMs: number;
}

export function unharmed(outMs: number, backMs: number): Fate {
  return { outMs, backMs, lost: 'nothing', noticedAfterMs: 0, reconnectMs: 0 };
}

/** What a gateway and the store did to each other, in units. */
export interface LinkCounts {
  reserves: number;
  refunds: number;
  reports: number;
  /** By the store, whether or not the gateway heard of it. */
  granted: number;
  /** Those of them that the gateway was told of. */
  delivered: number;
  /** Handed to the connection by the gateway, whether or not it was sent. */
  handedBack: number;
  /** By the store. */
  refunded: number;
  reported: number;
}

interface OpenCall {
  fail(): void;
}

/** One gateway's connection to the store: ordered in both directions, slow at times, and lossy. */
export class StoreLink implements WindowStore {
  readonly counts: LinkCounts = {
    reserves: 0,
    refunds: 0,
    reports: 0,
    granted: 0,
    delivered: 0,
    handedBack: 0,
    refunded: 0,
    reported: 0,
  };
  readonly reservations: { readonly atMs: number; readonly limit: number; readonly holdMs: number }[] = [];
  readonly refunds: Refund[] = [];
  readonly #store: LinkedStore;
  readonly #time: VirtualTime;
  readonly #machine: Machine;
  readonly #nextFate: () => Fate;
  readonly #observer: LinkObserver | undefined;
  readonly #handedBack = new WeakSet<Refund>();
  readonly #openCalls = new Set<OpenCall>();
  #session = 1;
  #downUntilMs = 0;
  #lastArrivalMs = 0;
  #lastReplyMs = 0;
  #requestsAreLost = false;
  #repliesAreLost = false;

  constructor(store: LinkedStore, time: VirtualTime, machine: Machine, nextFate: () => Fate, observer?: LinkObserver) {
    this.#observer = observer;
    this.#store = store;
    this.#time = time;
    this.#machine = machine;
    this.#nextFate = nextFate;
  }

  isUp(): boolean {
    return this.#time.nowMs >= this.#downUntilMs;
  }

  /** Cuts the connection; whether calls under way were run, nobody learns. */
  cut(downMs: number): void {
    this.#session++;
    this.#downUntilMs = Math.max(this.#downUntilMs, this.#time.nowMs + downMs);
    this.#requestsAreLost = false;
    this.#repliesAreLost = false;
    const calls = [...this.#openCalls];
    this.#openCalls.clear();
    for (const call of calls) call.fail();
  }

  async reserve(request: ReserveRequest): Promise<Grant> {
    this.counts.reserves++;
    this.reservations.push({ atMs: this.#time.nowMs, limit: request.limits[0].amount, holdMs: request.holdMs });
    const refunds = this.#take(request.refunds);
    const session = this.#session;
    // One object for each grant: by it, an observer knows the grant again.
    let grant: Grant | undefined;
    await this.#call(
      () => this.#store.reserve({ ...request, refunds }),
      ({ refunded, ...executed }) => {
        grant = { ...executed, session };
        this.counts.refunded += refunded;
        this.counts.granted += grant.granted;
        this.#noteRefunded(refunds);
        this.#observer?.granted(grant);
      },
      ({ granted }) => {
        this.counts.delivered += granted;
        if (grant) this.#observer?.delivered(grant);
      },
    );
    if (grant === undefined) throw new Error('a reply without a call');
    return grant;
  }

  async refund(customer: string, refunds: readonly Refund[]): Promise<number> {
    this.counts.refunds++;
    const ours = this.#take(refunds);
    if (ours.length === 0) return 0;
    return this.#call(
      () => this.#store.refund(customer, ours),
      (refunded) => {
        this.counts.refunded += refunded;
        this.#noteRefunded(ours);
      },
    );
  }

  async charge(customer: string, admitted: readonly ChargedUnits[]): Promise<{ readonly used: number }> {
    this.counts.reports++;
    for (const { units } of admitted) this.counts.reported += units;
    return this.#call(
      () => this.#store.charge(customer, admitted),
      () => {
        for (const { units } of admitted) this.#observer?.reported(units);
      },
    );
  }

  /** Those of this session. @throws Error when one was handed over before. */
  #take(refunds: readonly Refund[]): readonly Refund[] {
    for (const refund of refunds) {
      if (this.#handedBack.has(refund)) throw new Error('the same units were given back twice');
      this.#handedBack.add(refund);
      this.counts.handedBack += refund.units;
      this.refunds.push(refund);
      this.#observer?.handedBack(refund);
    }
    return refunds.filter(({ session }) => session === this.#session);
  }

  #noteRefunded(refunds: readonly Refund[]): void {
    for (const refund of refunds) this.#observer?.refunded(refund);
  }

  #call<T>(
    execute: () => Executed<T>,
    executed: (answer: T) => void = () => {},
    delivered: (answer: T) => void = () => {},
  ): Promise<T> {
    if (!this.isUp()) return Promise.reject(new StoreUnavailableError('the store is away'));
    const session = this.#session;
    const fate = this.#nextFate();
    return new Promise((resolve, reject) => {
      const openCall: OpenCall = {
        fail: () => this.#machine.run(() => reject(new StoreUnavailableError('the connection was cut'))),
      };
      this.#openCalls.add(openCall);
      if (fate.lost === 'request' && !this.#requestsAreLost) {
        this.#requestsAreLost = true;
        this.#cutLater(session, fate);
      }
      if (this.#requestsAreLost) return;

      this.#lastArrivalMs = Math.max(this.#lastArrivalMs, this.#time.nowMs + fate.outMs);
      this.#time.at(this.#lastArrivalMs, () => {
        // Also when the connection was cut meanwhile: the request had been sent.
        const answer = execute();
        if (answer instanceof Promise) this.#time.standStillFor(answer.then(reply));
        else reply(answer);
      });
      const reply = (answer: T) => {
        executed(answer);
        if (session !== this.#session) return;
        if (fate.lost === 'reply' && !this.#repliesAreLost) {
          this.#repliesAreLost = true;
          this.#cutLater(session, fate);
        }
        if (this.#repliesAreLost) return;
        this.#lastReplyMs = Math.max(this.#lastReplyMs, this.#time.nowMs + fate.backMs);
        this.#time.at(this.#lastReplyMs, () => {
          if (!this.#openCalls.delete(openCall)) return;
          this.#machine.run(() => {
            delivered(answer);
            resolve(answer);
          });
        });
      };
    });
  }

  #cutLater(session: number, { noticedAfterMs, reconnectMs }: Fate): void {
    this.#time.in(noticedAfterMs, () => {
      if (session === this.#session) this.cut(reconnectMs);
    });
  }
}
