import { MemoryHash } from '../../../src/store/memory-hash.ts';
import {
  type AdmittedUnits,
  type Grant,
  type Refund,
  type ReserveRequest,
  StoreUnavailableError,
  type WindowStore,
} from '../../../src/store/store.ts';
import { charge, HOURLY, refund, reserve, type WindowGrant } from '../../../src/store/window-arithmetic.ts';
import type { Machine } from './machine.ts';
import type { VirtualTime } from './virtual-time.ts';

const START_MS = Date.UTC(2030, 0, 1);
const HOUR_MS = 3_600_000;

/** The windows as Redis keeps them, and the only clock that counts. */
export class SimulatedStore {
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
    this.#windows.delete(customer);
  }

  reserve({ customer, ...request }: ReserveRequest): WindowGrant {
    const grant = reserve(this.#windowOf(customer), HOURLY, this.nowMs(), request, this.#newEpoch());
    this.#addToHistory(customer, Math.floor(grant.storeTimeMs / HOUR_MS), grant.granted);
    return grant;
  }

  refund(customer: string, refunds: readonly Refund[]): number {
    for (const { hour, units } of refunds) this.#addToHistory(customer, hour, -units);
    return refund(this.#windowOf(customer), refunds);
  }

  report(customer: string, admitted: readonly AdmittedUnits[]): { used: number } {
    const { used } = charge(this.#windowOf(customer), HOURLY, this.nowMs(), admitted, this.#newEpoch());
    return { used };
  }

  used(customer: string): number {
    return this.reserve({ customer, need: 0, ahead: 0, limit: 1, holdMs: 0, refunds: [] }).used;
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
  readonly #store: SimulatedStore;
  readonly #time: VirtualTime;
  readonly #machine: Machine;
  readonly #nextFate: () => Fate;
  readonly #handedBack = new WeakSet<Refund>();
  readonly #openCalls = new Set<OpenCall>();
  #session = 1;
  #downUntilMs = 0;
  #lastArrivalMs = 0;
  #lastReplyMs = 0;
  #requestsAreLost = false;
  #repliesAreLost = false;

  constructor(store: SimulatedStore, time: VirtualTime, machine: Machine, nextFate: () => Fate) {
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
    this.reservations.push({ atMs: this.#time.nowMs, limit: request.limit, holdMs: request.holdMs });
    const refunds = this.#take(request.refunds);
    const session = this.#session;
    const grant = await this.#call(
      () => {
        const refunded = this.#store.refund(request.customer, refunds);
        const executed = this.#store.reserve({ ...request, refunds: [] });
        this.counts.refunded += refunded;
        this.counts.granted += executed.granted;
        return { ...executed, session };
      },
      ({ granted }) => {
        this.counts.delivered += granted;
      },
    );
    return grant;
  }

  async refund(customer: string, refunds: readonly Refund[]): Promise<number> {
    this.counts.refunds++;
    const ours = this.#take(refunds);
    if (ours.length === 0) return 0;
    return this.#call(() => {
      const refunded = this.#store.refund(customer, ours);
      this.counts.refunded += refunded;
      return refunded;
    });
  }

  async report(customer: string, admitted: readonly AdmittedUnits[]): Promise<{ readonly used: number }> {
    this.counts.reports++;
    for (const { units } of admitted) this.counts.reported += units;
    return this.#call(() => this.#store.report(customer, admitted));
  }

  /** Those of this session. @throws Error when one was handed over before. */
  #take(refunds: readonly Refund[]): readonly Refund[] {
    for (const refund of refunds) {
      if (this.#handedBack.has(refund)) throw new Error('the same units were given back twice');
      this.#handedBack.add(refund);
      this.counts.handedBack += refund.units;
      this.refunds.push(refund);
    }
    return refunds.filter(({ session }) => session === this.#session);
  }

  #call<T>(execute: () => T, delivered: (answer: T) => void = () => {}): Promise<T> {
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
      });
    });
  }

  #cutLater(session: number, { noticedAfterMs, reconnectMs }: Fate): void {
    this.#time.in(noticedAfterMs, () => {
      if (session === this.#session) this.cut(reconnectMs);
    });
  }
}
