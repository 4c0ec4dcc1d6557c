import type { NonEmpty } from '../base/non-empty.ts';

/** Names a limit in headers, refusals and metrics. Each has a counter of its own for every customer. */
export type Policy = 'hourly';

/** One limit of a reservation. All limits of a reservation are counted in one slot of a cluster. */
export interface Limit {
  readonly policy: Policy;
  /** Units that the limit allows. */
  readonly amount: number;
}

/** Returns the limits of a customer that has the hourly one alone. */
export function hourly(amount: number): NonEmpty<Limit> {
  return [{ policy: 'hourly', amount }];
}

/** A refund: units of one lease that return to the bucket of one counter. */
export interface Refund {
  readonly policy: Policy;
  readonly epoch: string;
  /** The hour of the grant in the store's time, as the number of hours since 1970: the history refunds it there. */
  readonly hour: number;
  readonly bucket: number;
  readonly units: number;
  /** The store session of the grant. A refund is sent only on that session, so that none can run twice. */
  readonly session: number;
}

export interface ReserveRequest {
  readonly customer: string;
  /**
   * Units for which requests wait now. With both `need` and `ahead` 0, the call reads the counters without taking
   * units.
   */
  readonly need: number;
  /**
   * Units of the heaviest request that waits; omitted: 1. When fewer than `need` are free, a multiple of it is granted: the
   * rest would be of no use to that request, and stays free for lighter ones.
   */
  readonly heaviest?: number;
  /** Units wanted beyond `need`, granted from a fraction of the free units. */
  readonly ahead: number;
  /** The same units are taken from every limit, or none. The first one is the customer's hour. */
  readonly limits: NonEmpty<Limit>;
  /** How far in the future the last request on this grant may reach the upstream. At most 10,000. */
  readonly holdMs: number;
  /** Of the policies of `limits`. */
  readonly refunds: readonly Refund[];
}

/** What a limit of a reservation has left, and when it has more. */
export interface LimitCount {
  readonly policy: Policy;
  /** Units that are still free after this grant. */
  readonly free: number;
  /** Units counted, this grant included: of the policy `hourly`, those of the last hour. */
  readonly used: number;
  /**
   * Milliseconds from the grant's `storeTimeMs` until more than `free` units are free; if less than `need` was granted, or
   * nothing was needed, until `heaviest` are. -1: never, because too few units are counted or the limit is too low.
   */
  readonly waitMs: number;
  readonly epoch: string;
  /** Store time at which the last open hold of this counter ends, across all gateways. */
  readonly holdEndMs: number;
}

export interface Grant {
  readonly granted: number;
  /** In the order of the request's limits. */
  readonly counts: NonEmpty<LimitCount>;
  readonly bucket: number;
  readonly session: number;
  readonly storeTimeMs: number;
}

export interface WindowStore {
  /** Checks the limits and counts units, atomically. Has no deadline of its own. */
  reserve(request: ReserveRequest): Promise<Grant>;
  /** Resolves to the number of refunded units; 0 when the window was replaced or the granting session has ended. */
  refund(customer: string, refunds: readonly Refund[]): Promise<number>;
  /**
   * Counts units that were admitted while the store was unavailable, regardless of the limit. Rejects with
   * NotChargedError if they may be sent again; after any other error the outcome is unknown, and they must not.
   */
  charge(customer: string, charged: readonly ChargedUnits[]): Promise<{ readonly used: number }>;
}

/** Reads the usage of many windows for reports, in small steps. Changes nothing. */
export interface UsageReader {
  /**
   * Resolves to the units counted in the last hour, in the order given. A usage below `from` may be inexact, but is
   * never reported as `from` or more.
   */
  usedOf(windows: readonly { readonly customer: string; readonly from: number }[]): Promise<readonly number[]>;
  /** Resolves to the units counted in the last hour, without those of leases that may still be refunded. */
  settledOf(customer: string): Promise<number>;
}

/**
 * Units that may have reached the upstream until `ageMs` before the call. A negative age is a time after it.
 */
export interface ChargedUnits {
  readonly ageMs: number;
  readonly units: number;
}
