import { type Clock, secondsUntil } from '../base/clock.ts';
import type { CustomerState } from './customer-state.ts';
import type { Admitted, QuotaMode } from './hourly-quota.ts';
import { type Instant, type Lease, readInstant } from './lease.ts';

/** An admission on a unit of a lease. Not an object literal: its two closures would be larger than all the rest. */
export class LeaseAdmission implements Admitted {
  readonly outcome = 'admitted';
  readonly mode: QuotaMode;
  readonly remaining: number;
  readonly beginDeadlineMs: number;
  readonly beginDeadlineWallMs: number;
  readonly #moreAt: number;
  readonly #state: CustomerState;
  readonly #lease: Lease;
  readonly #clock: Clock;

  /** `unitsLeft`: in all leases of the customer. */
  constructor(state: CustomerState, lease: Lease, now: Instant, unitsLeft: number, mode: QuotaMode, clock: Clock) {
    const { lastReply } = state;
    const deadline = lease.beginDeadline(now);
    this.mode = mode;
    this.remaining = (lastReply?.free ?? 0) + unitsLeft;
    this.beginDeadlineMs = deadline.monotonicMs;
    this.beginDeadlineWallMs = deadline.wallMs;
    this.#moreAt = lastReply?.moreAt ?? 0;
    this.#state = state;
    this.#lease = lease;
    this.#clock = clock;
  }

  refund(): void {
    this.#state.admitted--;
    this.#state.leases.return(this.#lease, readInstant(this.#clock));
  }

  resetSeconds(): number {
    return secondsUntil(this.#moreAt, this.#clock.monotonicMs());
  }
}
