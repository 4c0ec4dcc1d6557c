import type { Scheduled } from '../clock.ts';
import type { Grant } from '../store/store.ts';

/** A request may be admitted on a lease for so long after the reservation was asked for. */
export const LEASE_MS = 1000;
/** And has so long to begin upstream after that. */
export const DISPATCH_MS = 1000;
/** Units are counted at the last instant at which the backend may see the request. */
export const HOLD_MS = LEASE_MS + DISPATCH_MS;
/** Only so much of a span is used, so that a clock which runs slower than the store's by up to 1 % does no harm. */
const USABLE_SHARE = 0.99;
const USABLE_LEASE_MS = LEASE_MS * USABLE_SHARE;
export const USABLE_HOLD_MS = HOLD_MS * USABLE_SHARE;

/** Two clocks at one instant, in ms: a machine may stop the one, and its owner may set the other. */
export interface Instant {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** Units of one grant, to be handed out to requests while the lease runs. */
export class Lease {
  /** Left to hand out. */
  units: number;
  readonly grant: Grant;
  /** Ends the lease; set while it has units. */
  timer: Scheduled | undefined;
  readonly #asked: Instant;

  /** `asked`: before the reservation was sent, so that the lease ends before the store's hold does. */
  constructor(grant: Grant, asked: Instant) {
    this.units = grant.granted;
    this.grant = grant;
    this.#asked = asked;
  }

  /** Monotonic ms. */
  get endsAt(): number {
    return this.#asked.monotonicMs + USABLE_LEASE_MS;
  }

  /** Monotonic ms. */
  get beginBefore(): number {
    return this.#asked.monotonicMs + USABLE_HOLD_MS;
  }

  get beginBeforeWallMs(): number {
    return this.#asked.wallMs + USABLE_HOLD_MS;
  }

  /** Whether a request may be admitted on it now, by both clocks. */
  runsAt({ monotonicMs, wallMs }: Instant): boolean {
    return monotonicMs - this.#asked.monotonicMs < USABLE_LEASE_MS && wallMs - this.#asked.wallMs < USABLE_LEASE_MS;
  }
}
