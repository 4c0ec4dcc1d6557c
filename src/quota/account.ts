import type { Scheduled } from '../clock.ts';
import type { GiveBack, Grant } from '../store/store.ts';
import type { Admission } from './admission.ts';
import type { Instant, Lease } from './lease.ts';
import { RateMeter } from './rate-meter.ts';

/** A request that waits for the reply of the store. */
export interface Waiter {
  /** Monotonic ms: when it arrived. */
  readonly since: number;
  /** Monotonic ms: it is not to wait any longer. */
  until: number;
  resolve(admission: Admission): void;
  reject(error: unknown): void;
}

/** A reservation that was sent and is not answered. */
export interface Call {
  readonly asked: Instant;
  readonly need: number;
  readonly terms: Terms;
  /** Settles, without a value, once the reply or the failure was dealt with. */
  answered: Promise<void> | undefined;
  /** At the next deadline of the call or of somebody who waits. */
  timer: Scheduled | undefined;
  /** It took too long: the store is taken for absent, and what it grants goes back whole. */
  overdue: boolean;
}

/** What a decision depends on besides the window. A change ends what was remembered under other terms. */
export interface Terms {
  readonly limit: number;
  /** Changes whenever the customer's usage is reset. */
  readonly usageResetAt: string;
}

export function areSameTerms(a: Terms, b: Terms): boolean {
  return a.limit === b.limit && a.usageResetAt === b.usageResetAt;
}

/** What the store said last. Times: monotonic ms. */
export interface LastReply {
  free: number;
  readonly used: number;
  readonly receivedAt: number;
  /** When more than `free` become available. */
  readonly moreAt: number;
}

/** The store had nothing left, and asking again before `until` would not change that. */
export interface RememberedRefusal {
  readonly terms: Terms;
  readonly until: number;
  /** When units become available again. */
  readonly moreAt: number;
}

/** Everything that one gateway holds in memory for one customer. */
export class Account {
  readonly customer: string;
  readonly rate = new RateMeter();
  terms: Terms;
  /** With units left, the oldest first. */
  readonly leases: Lease[] = [];
  readonly waiters: Waiter[] = [];
  call: Call | undefined;
  lastReply: LastReply | undefined;
  refusal: RememberedRefusal | undefined;
  /** Units that wait to be refunded, merged by the bucket they belong to. */
  #giveBacks: GiveBack[] = [];
  refundTimer: Scheduled | undefined;
  /** Ask for the next lease when no more units than this are left, or from this monotonic time on. */
  refillAtUnits = -1;
  refillAfter = Number.POSITIVE_INFINITY;
  /** Requests admitted on units of the store, less those whose unit came back. */
  admitted = 0;

  constructor(customer: string, terms: Terms) {
    this.customer = customer;
    this.terms = terms;
  }

  get unitsInLeases(): number {
    let units = 0;
    for (const lease of this.leases) units += lease.units;
    return units;
  }

  /** Counted by the store, and used by no request: in leases, or about to be given back. */
  get unitsInHand(): number {
    let units = this.unitsInLeases;
    for (const giveBack of this.#giveBacks) units += giveBack.units;
    return units;
  }

  /** Nothing is open or under way: forgetting the account loses no unit. */
  get isIdle(): boolean {
    return (
      this.leases.length === 0 && this.waiters.length === 0 && this.call === undefined && this.#giveBacks.length === 0
    );
  }

  addGiveBack({ epoch, bucket, session }: Grant, units: number): void {
    const at = this.#giveBacks.findIndex((g) => g.bucket === bucket && g.epoch === epoch && g.session === session);
    const before = this.#giveBacks[at]?.units ?? 0;
    if (at >= 0) this.#giveBacks.splice(at, 1);
    this.#giveBacks.push({ epoch, bucket, session, units: before + units });
  }

  /** What is taken is sent once, whatever becomes of it. */
  takeGiveBacks(): readonly GiveBack[] {
    const taken = this.#giveBacks;
    if (taken.length > 0) this.#giveBacks = [];
    this.refundTimer?.cancel();
    this.refundTimer = undefined;
    return taken;
  }
}
