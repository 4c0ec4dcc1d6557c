import type { Scheduled } from '../base/clock.ts';
import type { Grant, Refund } from '../store/store.ts';
import type { Admission, QuotaSettings } from './hourly-quota.ts';
import type { Instant, Lease } from './lease.ts';
import { RateMeter } from './rate-meter.ts';

/** A request that waits for a store reply. */
export interface Waiter {
  /** Monotonic ms at which the request arrived. */
  readonly since: number;
  /** Monotonic ms at which the request stops waiting. */
  until: number;
  resolve(admission: Admission): void;
  reject(error: unknown): void;
}

/** A reservation that was sent to the store and has no reply yet. */
export interface Call {
  readonly asked: Instant;
  readonly need: number;
  readonly settings: QuotaSettings;
  /** Resolves once the reply or failure was handled. */
  answered: Promise<void> | undefined;
  /** Fires at the next deadline of the call or of a waiting request. */
  timer: Scheduled | undefined;
  /** The call timed out. Until it settles, the store counts as unavailable; a late grant is refunded whole. */
  overdue: boolean;
}

/** The store's last reply. Times: monotonic ms. */
export interface LastReply {
  free: number;
  readonly used: number;
  readonly receivedAt: number;
  /** When more than `free` units become available. */
  readonly moreAt: number;
}

/** A refusal by the store, remembered because asking again before `until` would not help. Times: monotonic ms. */
export interface RememberedRefusal {
  readonly until: number;
  /** When units become available again. */
  readonly moreAt: number;
}

/** All quota state that one instance keeps in memory for a customer. */
export class CustomerState {
  readonly customer: string;
  readonly rate = new RateMeter();
  settings: QuotaSettings;
  /** Open leases with units left, oldest first. */
  readonly leases: Lease[] = [];
  readonly waiters: Waiter[] = [];
  call: Call | undefined;
  lastReply: LastReply | undefined;
  refusal: RememberedRefusal | undefined;
  /** Units that wait to be refunded, merged by session, epoch and bucket. */
  #refunds: Refund[] = [];
  refundTimer: Scheduled | undefined;
  /** Request the next lease when at most `refillAtUnits` units are left, or from `refillAfter` (monotonic ms) on. */
  refillAtUnits = -1;
  refillAfter = Number.POSITIVE_INFINITY;
  /** Requests admitted on units of the store, minus those that returned their unit. */
  admitted = 0;

  constructor(customer: string, settings: QuotaSettings) {
    this.customer = customer;
    this.settings = settings;
  }

  get unitsInLeases(): number {
    let units = 0;
    for (const lease of this.leases) units += lease.units;
    return units;
  }

  /** Units that the store counts and no request uses: in leases, or waiting to be refunded. */
  get unitsInHand(): number {
    let units = this.unitsInLeases;
    for (const refund of this.#refunds) units += refund.units;
    return units;
  }

  /** True if no lease, waiting request, call or refund is pending: evicting the state then loses no unit. */
  get isIdle(): boolean {
    return (
      this.leases.length === 0 && this.waiters.length === 0 && this.call === undefined && this.#refunds.length === 0
    );
  }

  addRefund({ epoch, bucket, session }: Grant, units: number): void {
    const at = this.#refunds.findIndex((g) => g.bucket === bucket && g.epoch === epoch && g.session === session);
    const before = this.#refunds[at]?.units ?? 0;
    if (at >= 0) this.#refunds.splice(at, 1);
    this.#refunds.push({ epoch, bucket, session, units: before + units });
  }

  /** Removes and returns the units to refund. They are sent once, even if sending fails. */
  takeRefunds(): readonly Refund[] {
    const taken = this.#refunds;
    if (taken.length > 0) this.#refunds = [];
    this.refundTimer?.cancel();
    this.refundTimer = undefined;
    return taken;
  }
}
