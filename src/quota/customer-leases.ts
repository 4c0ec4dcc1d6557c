import type { Clock, Scheduler } from '../base/clock.ts';
import { DueQueue } from '../base/due-queue.ts';
import type { Grant, Refund } from '../store/store.ts';
import { type Instant, type Lease, LONG_LEASE, REFUND_DELAY_MS } from './lease.ts';

/** Unused units are refunded at most this long after the last hold; a remembered refusal may then be wrong. */
export const REFUND_GRACE_MS = 2 * REFUND_DELAY_MS;

interface OpenLease {
  readonly leases: CustomerLeases;
  readonly lease: Lease;
}

/** Ends the leases of all customers in time, and sends their refunds. */
export class LeaseTimers {
  readonly clock: Clock;
  readonly #short: DueQueue<OpenLease>;
  readonly #long: DueQueue<OpenLease>;
  readonly #refunds: DueQueue<CustomerLeases>;
  readonly #lateRefunds: DueQueue<CustomerLeases>;

  constructor(parts: { readonly clock: Clock; readonly scheduler: Scheduler }) {
    this.clock = parts.clock;
    const end = ({ leases, lease }: OpenLease) => leases.leaseIsOver(lease);
    const refund = (leases: CustomerLeases) => leases.refundsAreDue();
    this.#short = new DueQueue(parts, end);
    this.#long = new DueQueue(parts, end);
    this.#refunds = new DueQueue(parts, refund);
    this.#lateRefunds = new DueQueue(parts, refund);
  }

  endLater(leases: CustomerLeases, lease: Lease): void {
    (lease.length === LONG_LEASE ? this.#long : this.#short).add({ leases, lease }, lease.endsAt);
  }

  refundLater(leases: CustomerLeases, delayMs: number, dueMs: number): void {
    (delayMs > REFUND_DELAY_MS ? this.#lateRefunds : this.#refunds).add(leases, dueMs);
  }
}

/**
 * The units of one customer that the store counts and no request uses: in open leases, or waiting to be refunded.
 *
 * A unit belongs to its lease and never moves to a newer one. Units of an ended lease are never handed out again, even
 * if a request returns its unit later.
 */
export class CustomerLeases {
  readonly #timers: LeaseTimers;
  readonly #send: () => void;
  /** Those with units left, in the order in which they got their first unit. */
  readonly #open: Lease[] = [];
  /** Merged by session, epoch and bucket. */
  #refunds: Refund[] = [];
  /** Monotonic ms; undefined while no refund waits. */
  #refundsDueMs: number | undefined;
  /** Monotonic ms. Leases that were requested until then admit no more requests. */
  #endedAtMs = Number.NEGATIVE_INFINITY;

  /** `send`: called when refunds are due, to take and send them. */
  constructor(timers: LeaseTimers, send: () => void) {
    this.#timers = timers;
    this.#send = send;
  }

  /** Open leases with units left, in the order in which {@link take} uses them. */
  get open(): readonly Lease[] {
    return this.#open;
  }

  get unitsLeft(): number {
    let units = 0;
    for (const lease of this.#open) units += lease.units;
    return units;
  }

  get unusedUnits(): number {
    let units = this.unitsLeft;
    for (const refund of this.#refunds) units += refund.units;
    return units;
  }

  add(lease: Lease): void {
    if (lease.units === 0) return;
    this.#open.push(lease);
    this.#timers.endLater(this, lease);
  }

  leaseIsOver(lease: Lease): void {
    if (this.#open.includes(lease)) this.#end(lease);
  }

  /** Sends the refunds, unless they were sent meanwhile and others wait. */
  refundsAreDue(): void {
    if (this.#refundsDueMs !== undefined && this.#refundsDueMs <= this.#timers.clock.monotonicMs()) this.#send();
  }

  /** Takes a unit. Returns its lease; undefined when no lease admits requests now. */
  take(now: Instant): Lease | undefined {
    for (let lease = this.#open[0]; lease !== undefined; lease = this.#open[0]) {
      if (lease.runsAt(now)) {
        lease.units--;
        if (lease.units === 0) this.#remove(lease);
        return lease;
      }
      this.#end(lease);
    }
    return undefined;
  }

  /** Returns a unit: to its lease if that still admits requests, else to the store. */
  return(lease: Lease, now: Instant): void {
    if (lease.sentAt.monotonicMs <= this.#endedAtMs || !lease.runsAt(now)) {
      this.refund(lease.grant, 1);
      return;
    }
    lease.units++;
    if (lease.units === 1) this.#open.push(lease);
  }

  /** Ends all leases, those included that have no units left now and may get some back. */
  end(now: Instant): void {
    this.#endedAtMs = now.monotonicMs;
    for (const lease of [...this.#open]) this.#end(lease);
  }

  /** Refunds units soon, together with others. */
  refund(grant: Grant, units: number, delayMs = REFUND_DELAY_MS): void {
    if (units === 0) return;
    const { epoch, bucket, session } = grant;
    const hour = Math.floor(grant.storeTimeMs / 3_600_000);
    const at = this.#refunds.findIndex(
      (r) => r.bucket === bucket && r.epoch === epoch && r.session === session && r.hour === hour,
    );
    const [merged] = at < 0 ? [] : this.#refunds.splice(at, 1);
    this.#refunds.push({ epoch, bucket, session, hour, units: units + (merged?.units ?? 0) });
    if (this.#refundsDueMs !== undefined) return;
    this.#refundsDueMs = this.#timers.clock.monotonicMs() + delayMs;
    this.#timers.refundLater(this, delayMs, this.#refundsDueMs);
  }

  /** Removes and returns the refunds that wait. They are sent once, even if sending fails. */
  takeRefunds(): readonly Refund[] {
    const taken = this.#refunds;
    if (taken.length > 0) this.#refunds = [];
    this.#refundsDueMs = undefined;
    return taken;
  }

  #remove(lease: Lease): void {
    this.#open.splice(this.#open.indexOf(lease), 1);
  }

  #end(lease: Lease): void {
    this.#remove(lease);
    const { units } = lease;
    lease.units = 0;
    this.refund(lease.grant, units, lease.length.refundDelayMs);
  }
}
