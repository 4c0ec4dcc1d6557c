import type { Scheduled, Scheduler } from '../base/clock.ts';
import type { Grant, Refund } from '../store/store.ts';
import { type Instant, type Lease, REFUND_DELAY_MS } from './lease.ts';

/** Unused units are refunded at most this long after the last hold; a remembered refusal may then be wrong. */
export const REFUND_GRACE_MS = 2 * REFUND_DELAY_MS;

/**
 * The units of one customer that the store counts and no request uses: in open leases, or waiting to be refunded.
 *
 * A unit belongs to its lease and never moves to a newer one. Units of an ended lease are never handed out again, even
 * if a request returns its unit later.
 */
export class CustomerLeases {
  readonly #scheduler: Scheduler;
  readonly #send: () => void;
  /** Those with units left, oldest first. */
  readonly #open: Lease[] = [];
  /** Merged by session, epoch and bucket. */
  #refunds: Refund[] = [];
  #refundTimer: Scheduled | undefined;
  /** Monotonic ms. Leases that were requested until then admit no more requests. */
  #endedAtMs = Number.NEGATIVE_INFINITY;

  /** `send`: called when refunds are due, to take and send them. */
  constructor(scheduler: Scheduler, send: () => void) {
    this.#scheduler = scheduler;
    this.#send = send;
  }

  /** Open leases with units left, oldest first. */
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

  add(lease: Lease, now: Instant): void {
    if (lease.units === 0) return;
    this.#open.push(lease);
    lease.timer = this.#scheduler.after(lease.endsAt - now.monotonicMs, () => this.#end(lease));
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
    if (lease.units === 1) this.add(lease, now);
  }

  /** Ends all leases, those included that have no units left now and may get some back. */
  end(now: Instant): void {
    this.#endedAtMs = now.monotonicMs;
    for (const lease of [...this.#open]) this.#end(lease);
  }

  /** Refunds units soon, together with others. */
  refund({ epoch, bucket, session }: Grant, units: number, delayMs = REFUND_DELAY_MS): void {
    if (units === 0) return;
    const at = this.#refunds.findIndex((r) => r.bucket === bucket && r.epoch === epoch && r.session === session);
    const [merged] = at < 0 ? [] : this.#refunds.splice(at, 1);
    this.#refunds.push({ epoch, bucket, session, units: units + (merged?.units ?? 0) });
    this.#refundTimer ??= this.#scheduler.after(delayMs, this.#send);
  }

  /** Removes and returns the refunds that wait. They are sent once, even if sending fails. */
  takeRefunds(): readonly Refund[] {
    const taken = this.#refunds;
    if (taken.length > 0) this.#refunds = [];
    this.#refundTimer?.cancel();
    this.#refundTimer = undefined;
    return taken;
  }

  #remove(lease: Lease): void {
    lease.timer?.cancel();
    this.#open.splice(this.#open.indexOf(lease), 1);
  }

  #end(lease: Lease): void {
    this.#remove(lease);
    const { units } = lease;
    lease.units = 0;
    this.refund(lease.grant, units, lease.length.refundDelayMs);
  }
}
