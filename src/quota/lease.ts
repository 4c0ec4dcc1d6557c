import type { Clock } from '../base/clock.ts';
import type { Grant } from '../store/store.ts';

/** An admitted request may begin upstream for this long after its lease has ended. */
const DISPATCH_MS = 1000;
/** How long refunds wait for others. */
export const REFUND_DELAY_MS = 250;
/** Only this share of each period is used, so that a clock up to 1 % slower than the store's does no harm. */
const USABLE_SHARE = 0.99;

/** How long a lease lasts. Units are counted at the end of the hold: the last instant at which its requests may begin. */
export interface LeaseLength {
  /** For this long after the reservation was sent, the lease admits requests. */
  readonly usableLeaseMs: number;
  readonly holdMs: number;
  /** For this long after the reservation was sent, a request of the lease may begin. */
  readonly usableHoldMs: number;
  /** How long the units that are unused at the end wait for others, to be refunded in one call. */
  readonly refundDelayMs: number;
}

function lengthOf(leaseMs: number, refundDelayMs: number): LeaseLength {
  const holdMs = leaseMs + DISPATCH_MS;
  return { usableLeaseMs: leaseMs * USABLE_SHARE, holdMs, usableHoldMs: holdMs * USABLE_SHARE, refundDelayMs };
}

export const SHORT_LEASE: LeaseLength = lengthOf(1000, REFUND_DELAY_MS);
/**
 * For a customer with few requests, far from its limit. The hold is the longest one that the store permits. Unused units
 * wait about until its end: the next reservation may take them along.
 */
export const LONG_LEASE: LeaseLength = lengthOf(9000, DISPATCH_MS + REFUND_DELAY_MS);

/** Monotonic and wall time in ms, read together: suspend stops the first, an operator can change the second. */
export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function readInstant(clock: Clock): Instant {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() };
}

/** Units of one grant, handed out to requests until the lease ends. */
export class Lease {
  /** Units left to hand out. */
  units: number;
  readonly grant: Grant;
  readonly length: LeaseLength;
  /** Read before the reservation was sent, so that the lease ends before the store's hold does. */
  readonly sentAt: Instant;

  constructor(grant: Grant, sentAt: Instant, length: LeaseLength) {
    this.units = grant.granted;
    this.grant = grant;
    this.sentAt = sentAt;
    this.length = length;
  }

  /** Monotonic ms. */
  get endsAt(): number {
    return this.sentAt.monotonicMs + this.length.usableLeaseMs;
  }

  /** Returns whether the lease admits requests now, by both clocks. */
  runsAt({ monotonicMs, wallMs }: Instant): boolean {
    const { usableLeaseMs } = this.length;
    return monotonicMs - this.sentAt.monotonicMs < usableLeaseMs && wallMs - this.sentAt.wallMs < usableLeaseMs;
  }

  /**
   * Returns how long a request that is admitted now may take to begin, as deadlines by both clocks. At most as long as
   * with a short lease: the effect of a usage reset or a lower limit must not wait for a request in a queue.
   */
  beginDeadline(now: Instant): Instant {
    const { usableHoldMs } = this.length;
    const { usableHoldMs: longestMs } = SHORT_LEASE;
    return {
      monotonicMs: Math.min(this.sentAt.monotonicMs + usableHoldMs, now.monotonicMs + longestMs),
      wallMs: Math.min(this.sentAt.wallMs + usableHoldMs, now.wallMs + longestMs),
    };
  }
}
