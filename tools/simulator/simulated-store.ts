import { NotRunError, StoreUnavailableError } from '../../src/store/errors.ts';
import {
  type CustomerCounters,
  chargeOnce,
  type GrantNotes,
  refundOnce,
  reserveOnce,
  type StoredGrant,
} from '../../src/store/grants.ts';
import { MemoryHash } from '../../src/store/memory-hash.ts';
import { HOURLY, reset, unitsSettled } from '../../src/store/window-arithmetic.ts';
import {
  type ChargedUnits,
  GRANT_MS,
  type Grant,
  hourly,
  type PeriodLimit,
  type Refund,
  type ReserveRequest,
  rootsWith,
  type WindowRoot,
  type WindowStore,
} from '../../src/store/windows.ts';
import type { Machine } from './machine.ts';
import type { VirtualTime } from './virtual-time.ts';

/** When the store's clock begins, unless a world says otherwise. */
export const START_MS: number = Date.UTC(2030, 0, 1);

type Executed<T> = T | Promise<T>;

/** What a connection runs its calls on. While a call takes real time, virtual time stands still. */
export interface LinkedStore {
  reserve(request: ReserveRequest): Executed<Grant & { readonly refunded: number }>;
  refund(customer: string, refunds: readonly Refund[], root?: WindowRoot): Executed<number>;
  charge(
    customer: string,
    admitted: readonly ChargedUnits[],
    period?: PeriodLimit,
  ): Executed<Awaited<ReturnType<WindowStore['charge']>>>;
}

/** Observes what the store runs, whether or not the gateway gets the reply. */
export interface LinkObserver {
  granted(id: string, grant: Grant): void;
  refunded(refund: Refund): void;
  reported(units: ChargedUnits): void;
}

/** The ids of one customer. They are forgotten as early as the contract permits. */
class ForgetfulNotes implements GrantNotes {
  readonly #nowMs: () => number;
  readonly #notes = new Map<string, StoredGrant & { readonly forgetAtMs: number }>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get(id: string): StoredGrant | undefined {
    this.#forget();
    return this.#notes.get(id);
  }

  set(id: string, grant: StoredGrant): void {
    const forgetAtMs = this.#notes.get(id)?.forgetAtMs ?? this.#nowMs() + GRANT_MS;
    this.#notes.set(id, { ...grant, forgetAtMs });
  }

  delete(id: string): void {
    this.#notes.delete(id);
  }

  #forget(): void {
    const nowMs = this.#nowMs();
    for (const [id, { forgetAtMs }] of this.#notes) {
      if (forgetAtMs > nowMs) return;
      this.#notes.delete(id);
    }
  }
}

class SimulatedCustomer implements CustomerCounters {
  readonly hash = new MemoryHash();
  readonly #hashesOfKeys = new Map<string, MemoryHash>();
  readonly periods = new Map<string, string>();
  readonly notes: GrantNotes;
  /** Units in the usage history, by hour since 1970. */
  readonly hours = new Map<number, number>();
  /** Units granted and reported, less those refunded: also those that the history no longer had. */
  history = 0;

  constructor(nowMs: () => number) {
    this.notes = new ForgetfulNotes(nowMs);
  }

  readonly windowOf = (root: WindowRoot): MemoryHash => {
    if (root === undefined) return this.hash;
    const hash = this.#hashesOfKeys.get(root) ?? new MemoryHash();
    this.#hashesOfKeys.set(root, hash);
    return hash;
  };

  /** @throws Error when more units are refunded than were granted and reported. */
  readonly addToHistory = (hour: number, units: number): number => {
    this.history += units;
    if (this.history < 0) throw new Error(`the usage history has ${this.history} units`);
    const before = this.hours.get(hour) ?? 0;
    const after = Math.max(0, before + units);
    this.hours.set(hour, after);
    return after - before;
  };
}

/** The windows and ids of grants as Redis keeps them, and the only clock that counts. */
export class SimulatedStore implements LinkedStore {
  readonly #time: VirtualTime;
  readonly #customers = new Map<string, SimulatedCustomer>();
  #clockMs: number;
  #epochs = 0;

  constructor(time: VirtualTime, startMs = START_MS) {
    this.#time = time;
    this.#clockMs = startMs;
  }

  nowMs(): number {
    return Math.floor(this.#clockMs + this.#time.nowMs);
  }

  setClockBack(byMs: number): void {
    this.#clockMs -= byMs;
  }

  /** With a root, only that of its key. */
  resetUsage(customer: string, root?: WindowRoot): void {
    reset(this.#of(customer).windowOf(root));
  }

  reserve({ customer, ...request }: ReserveRequest): Grant & { readonly refunded: number } {
    return reserveOnce(this.#of(customer), HOURLY, this.nowMs(), request, this.#newEpoch());
  }

  refund(customer: string, refunds: readonly Refund[], root?: WindowRoot): number {
    return refundOnce(this.#of(customer), rootsWith(root), this.nowMs(), refunds);
  }

  charge(customer: string, admitted: readonly ChargedUnits[], period?: PeriodLimit) {
    return chargeOnce(this.#of(customer), HOURLY, this.nowMs(), admitted, this.#newEpoch(), period);
  }

  used(customer: string): number {
    const nothing = { grant: '', need: 0, ahead: 0, holdMs: 0, refunds: [] };
    return this.reserve({ ...nothing, customer, limits: hourly(1) }).counts[0].used;
  }

  settled(customer: string): number {
    const { hash } = this.#of(customer);
    return unitsSettled(hash.buckets(), HOURLY, this.nowMs(), hash.head()?.holdEndMs ?? 0);
  }

  /** Returns the units in the usage history of a customer. */
  history(customer: string): number {
    return this.#of(customer).history;
  }

  /** Returns the usage history of a customer: units by hour since 1970. */
  hours(customer: string): ReadonlyMap<number, number> {
    return this.#of(customer).hours;
  }

  /** Returns the fields of a customer's periods, as Redis has them. */
  periods(customer: string): ReadonlyMap<string, string> {
    return this.#of(customer).periods;
  }

  #of(customer: string): SimulatedCustomer {
    const known = this.#customers.get(customer);
    if (known) return known;
    const added = new SimulatedCustomer(() => this.nowMs());
    this.#customers.set(customer, added);
    return added;
  }

  #newEpoch(): string {
    return `epoch-${++this.#epochs}`;
  }
}

/**
 * What becomes of one call. A lost message stalls its connection: nothing passes that way until it is closed. A request
 * that lost time stalls it too, but arrives, as do those behind it, even if the gateway has another connection by then.
 */
export interface Fate {
  readonly outMs: number;
  readonly backMs: number;
  readonly lost: 'nothing' | 'request' | 'reply' | 'time';
  /** After a loss: until the connection is closed, and then until there is a new one. */
  readonly noticedAfterMs: number;
  readonly reconnectMs: number;
}

export function unharmed(outMs: number, backMs: number): Fate {
  return { outMs, backMs, lost: 'nothing', noticedAfterMs: 0, reconnectMs: 0 };
}

/** Calls of a gateway, and what the store did in them, in units. */
export interface LinkCounts {
  reserves: number;
  refunds: number;
  reports: number;
  granted: number;
  /** To the window. */
  refunded: number;
  /** Each id once. */
  reported: number;
}

interface OpenCall {
  fail(): void;
}

/** One gateway's connections to the store, one after the other: each is ordered in both directions, slow at times, and lossy. */
export class StoreLink implements WindowStore {
  readonly counts: LinkCounts = {
    reserves: 0,
    refunds: 0,
    reports: 0,
    granted: 0,
    refunded: 0,
    reported: 0,
  };
  readonly reservations: { readonly atMs: number; readonly limit: number; readonly holdMs: number }[] = [];
  /** As often as the gateway sent them. */
  readonly refunds: Refund[] = [];
  readonly #store: LinkedStore;
  readonly #time: VirtualTime;
  readonly #machine: Machine;
  readonly #nextFate: () => Fate;
  readonly #observer: LinkObserver | undefined;
  readonly #reportedIds = new Set<string>();
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

  /** Closes the connection. The gateway does not learn whether the store ran the calls in flight. */
  cut(downMs: number): void {
    this.#session++;
    this.#downUntilMs = Math.max(this.#downUntilMs, this.#time.nowMs + downMs);
    this.#requestsAreLost = false;
    this.#repliesAreLost = false;
    // Calls on the next connection may overtake those in flight.
    this.#lastArrivalMs = 0;
    this.#lastReplyMs = 0;
    const calls = [...this.#openCalls];
    this.#openCalls.clear();
    for (const call of calls) call.fail();
  }

  reserve(request: ReserveRequest): Promise<Grant> {
    const { grant: id, limits, holdMs, refunds } = request;
    this.counts.reserves++;
    this.reservations.push({ atMs: this.#time.nowMs, limit: limits[0].amount, holdMs });
    this.refunds.push(...refunds);
    return this.#call(
      () => this.#store.reserve(request),
      (grant) => {
        this.#noteRefunded(refunds, grant.refunded);
        this.counts.granted += grant.granted;
        this.#observer?.granted(id, grant);
      },
    );
  }

  refund(customer: string, refunds: readonly Refund[], root?: WindowRoot): Promise<number> {
    this.counts.refunds++;
    this.refunds.push(...refunds);
    return this.#call(
      () => this.#store.refund(customer, refunds, root),
      (refunded) => this.#noteRefunded(refunds, refunded),
    );
  }

  charge(customer: string, admitted: readonly ChargedUnits[], period?: PeriodLimit): ReturnType<WindowStore['charge']> {
    this.counts.reports++;
    return this.#call(
      () => this.#store.charge(customer, admitted, period),
      () => {
        for (const units of admitted) this.#noteReported(units);
      },
    );
  }

  #noteRefunded(refunds: readonly Refund[], refunded: number): void {
    this.counts.refunded += refunded;
    for (const refund of refunds) this.#observer?.refunded(refund);
  }

  #noteReported(charged: ChargedUnits): void {
    this.#observer?.reported(charged);
    if (this.#reportedIds.has(charged.grant)) return;
    this.#reportedIds.add(charged.grant);
    this.counts.reported += charged.units;
  }

  #call<T>(execute: () => Executed<T>, executed: (answer: T) => void): Promise<T> {
    if (!this.isUp()) return Promise.reject(new NotRunError('the store is away'));
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
      if (fate.lost === 'time') this.#cutLater(session, fate);

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
          this.#machine.run(() => resolve(answer));
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
