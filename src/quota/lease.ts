import type { Scheduled } from '../base/clock.ts';
import type { Grant } from '../store/store.ts';

/** A lease admits requests for this long after its reservation was sent. */
export const LEASE_MS = 1000;
/** An admitted request may begin upstream for this long after LEASE_MS. */
export const DISPATCH_MS = 1000;
/** Units are counted at the end of this hold: the last instant at which the upstream may receive their requests. */
export const HOLD_MS = LEASE_MS + DISPATCH_MS;
/** Only this share of each period is used, so that a clock up to 1 % slower than the store's does no harm. */
const USABLE_SHARE = 0.99;
const USABLE_LEASE_MS = LEASE_MS * USABLE_SHARE;
export const USABLE_HOLD_MS = HOLD_MS * USABLE_SHARE;

/** Monotonic and wall time in ms, read together: suspend stops the first, an operator can change the second. */
export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** Units of one grant, handed out to requests until the lease ends. */
export class Lease {
  /** Units left to hand out. */
  units: number;
  readonly grant: Grant;
  /** Ends the lease. Set while units are left. */
  timer: Scheduled | undefined;
  /** Read before the reservation was sent, so that the lease ends before the store's hold does. */
  readonly sentAt: Instant;

  constructor(grant: Grant, sentAt: Instant) {
    this.units = grant.granted;
    this.grant = grant;
    this.sentAt = sentAt;
  }

  /** Monotonic ms. */
  get endsAt(): number {
    return this.sentAt.monotonicMs + USABLE_LEASE_MS;
  }

  /** Monotonic ms. */
  get beginDeadlineMs(): number {
    return this.sentAt.monotonicMs + USABLE_HOLD_MS;
  }

  get beginDeadlineWallMs(): number {
    return this.sentAt.wallMs + USABLE_HOLD_MS;
  }

  /** Returns whether the lease admits requests now, by both clocks. */
  runsAt({ monotonicMs, wallMs }: Instant): boolean {
    return monotonicMs - this.sentAt.monotonicMs < USABLE_LEASE_MS && wallMs - this.sentAt.wallMs < USABLE_LEASE_MS;
  }
}
