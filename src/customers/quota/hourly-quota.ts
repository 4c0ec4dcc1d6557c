/** What the hourly quota tells the rest of the gateway: admissions, usage and the state of a customer's leases. */
import type { NonEmpty } from '../../base/non-empty.ts';
import type { Limit } from '../../store/windows.ts';

/** How much of its hourly limit a customer has used. */
export interface UsageRatio {
  readonly customer: string;
  /** Used units divided by the limit. Exceeds 1 after the limit was lowered. */
  readonly ratio: number;
}

/** A customer's leases and remembered refusal, in the memory of one instance. */
export interface LeaseState {
  /** Open leases with units left to hand out. */
  readonly leases: readonly { readonly units: number; readonly endsInMs: number }[];
  /** How long requests are refused without asking the store; undefined if they are not. */
  readonly refusedForMs: number | undefined;
}

/**
 * What a decision depends on besides the window. A change discards remembered refusals; a usage reset or a lower limit
 * also ends open leases.
 */
export interface QuotaSettings {
  /** The first one is the customer's hour. A request takes its units from all of them. */
  readonly limits: NonEmpty<Limit>;
  /** Changes with each reset of the customer's usage, and when the customer is deleted and created again. */
  readonly usageResetAt: string;
  /** Tells a customer from a deleted one with the same id. */
  readonly createdAt?: string | undefined;
}

/** How a request was decided: by a lease or remembered refusal in memory, by a store call, or without the store. */
export type QuotaMode = 'lease' | 'store' | 'local';

export interface Admitted {
  readonly outcome: 'admitted';
  readonly mode: QuotaMode;
  /** Monotonic ms: the request must begin upstream before this time. */
  readonly beginDeadlineMs: number;
  /** The same deadline in wall time, in case a suspend stopped the monotonic clock. */
  readonly beginDeadlineWallMs: number;
  /** Call it exactly once: when the request has ended, or without its having begun upstream. Then its units return. */
  settle(isUsed: boolean): void;
  /**
   * Returns the units that a limit (its index in {@link QuotaSettings.limits}) had left at the store's last reply to this
   * instance, at most one lease ago, minus those this instance used since. Other instances may have used or refunded units
   * meanwhile.
   */
  remaining(limit: number): number;
  /** Returns the seconds until more than {@link remaining} units of a limit are available, at least 1. */
  resetSeconds(limit: number): number;
}

/** A limit that refuses a request. */
export interface Violation extends Limit {
  /** The units that it counted; undefined if the store did not say. */
  readonly used?: number;
  /** Units that are left for lighter requests, as in {@link Admitted.remaining}; undefined: none. */
  readonly remaining?: number;
}

interface Refused {
  readonly outcome: 'refused';
  readonly mode: QuotaMode;
  /** The limits that refuse, as they were asked: a reload may have changed them while the request waited for the store. */
  readonly violated: NonEmpty<Violation>;
  /** Returns the seconds to wait. A request sent after them is admitted, if the customer sends no others meanwhile. */
  resetSeconds(): number;
}

export type Admission = Admitted | Refused;

/** A customer's usage of the last hour, for display. `resetSeconds` is 0 when nothing is counted. */
export interface Usage {
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  readonly windowSeconds: number;
}

/** Returns usage in the form of the public and admin APIs. */
export function usageDocument({ limit, used, remaining, resetSeconds, windowSeconds }: Usage) {
  return { limit, used, remaining, reset_seconds: resetSeconds, window_seconds: windowSeconds };
}
