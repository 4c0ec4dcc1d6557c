import { CLOCK_DRIFT } from '../base/clock.ts';
import type { Grant } from '../store/store.ts';

/** How a request was decided: by a lease or remembered refusal in memory, by a store call, or without the store. */
export type QuotaMode = 'lease' | 'store' | 'local';

export interface Admitted {
  readonly outcome: 'admitted';
  readonly mode: QuotaMode;
  /**
   * Units left at the store's last reply to this instance, at most one lease ago, minus those this instance used since.
   * Other instances may have used or refunded units meanwhile.
   */
  readonly remaining: number;
  /** Monotonic ms: the request must begin upstream before this time. */
  readonly beginDeadlineMs: number;
  /** The same deadline in wall time, in case a suspend stopped the monotonic clock. */
  readonly beginDeadlineWallMs: number;
  /** Gives the unit back. Call it at most once, and only if the request did not begin upstream. */
  refund(): void;
  /** Returns the seconds until more than `remaining` units are available, at least 1. */
  resetSeconds(): number;
}

export interface Refused {
  readonly outcome: 'refused';
  readonly mode: QuotaMode;
  /** Returns the seconds to wait. A request sent after them is admitted, if the customer sends no others meanwhile. */
  resetSeconds(): number;
}

export type Admission = Admitted | Refused;

/** Returns the monotonic ms at which the store's wait is over, even if this clock runs faster than the store's. */
export function moreAt({ waitMs }: Pick<Grant, 'waitMs'>, receivedAt: number): number {
  return receivedAt + waitMs * CLOCK_DRIFT;
}
