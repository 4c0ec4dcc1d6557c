import type { NonEmpty } from '../base/non-empty.ts';
import type { Period } from './periods.ts';

/** For this long at least, the store knows the id of a grant or report that is not settled. */
export const GRANT_MS = 3_600_000;

/** Names a limit in headers, refusals and metrics. Each has a counter of its own for every customer. */
export type Policy = Limit['policy'];

/** Names a limit of a customer. */
export type CustomerPolicy = Exclude<Policy, 'key'>;

/** One limit of a reservation. All limits of a reservation are counted in one slot of a cluster. */
export type Limit = WindowLimit | PeriodLimit;

/** The limit of a sliding window. */
export type WindowLimit = HourLimit | KeyLimit;

/** The hourly limit of the customer. */
export interface HourLimit {
  readonly policy: 'hourly';
  /** Units that the limit allows. */
  readonly amount: number;
  readonly root?: undefined;
}

/** The hourly limit of one API key, under that of its customer. */
export interface KeyLimit {
  readonly policy: 'key';
  readonly amount: number;
  /** Names the window, which all keys of a line of rotations share: the id of the first of them. */
  readonly root: string;
}

/** The windows of one customer: its hour (undefined), and those of its keys by root. */
export type WindowRoot = WindowLimit['root'];

/** The limit of a day or month. */
export interface PeriodLimit {
  readonly policy: 'daily' | 'monthly';
  /** Units that the limit includes. */
  readonly amount: number;
  /** Whether requests beyond it are refused, or counted as overage. */
  readonly beyond: 'refuse' | 'allow';
  /** A time on a whole hour, of which the day of the month and the hour count; 0: the periods of the calendar. */
  readonly anchorMs: number;
  /** The customer's plan, for the records of the period. */
  readonly plan: string;
}

/** By which a customer's periods are found. */
export type PeriodAnchor = Pick<PeriodLimit, 'policy' | 'anchorMs'>;

/** In this order: the customer's hour, then at most one key and at most one period. */
export type Limits = readonly [HourLimit, ...Limit[]];

/** Returns the limits of a customer that has the hourly one alone. */
export function hourly(amount: number): readonly [HourLimit] {
  return [{ policy: 'hourly', amount }];
}

export function isPeriod(limit: Limit): limit is PeriodLimit {
  return limit.policy === 'daily' || limit.policy === 'monthly';
}

/** Returns the limit of a period, which is the last one. */
export function periodIn(limits: Limits): PeriodLimit | undefined {
  const last = limits.at(-1);
  return last !== undefined && isPeriod(last) ? last : undefined;
}

/** Returns whether two limits bound the same units, though perhaps by different amounts. */
export function isSameCounter(a: Limit, b: Limit): boolean {
  if (isPeriod(a)) return a.policy === b.policy && isPeriod(b) && a.anchorMs === b.anchorMs;
  return a.policy === b.policy && !isPeriod(b) && a.root === b.root;
}

/** Returns the limits that have windows. */
export function windowsIn(limits: Limits): NonEmpty<WindowLimit> {
  const [hour, ...others] = limits;
  return [hour, ...others.filter((limit) => !isPeriod(limit))];
}

/** Returns the limit of the key. */
export function keyIn(limits: Limits): KeyLimit | undefined {
  for (const limit of limits) if (limit.policy === 'key') return limit;
  return undefined;
}

/** Returns the roots of the windows in which units of a key are counted; of requests of other keys, that of the hour alone. */
export function rootsWith(root: WindowRoot): NonEmpty<WindowRoot> {
  return root === undefined ? [undefined] : [undefined, root];
}

/**
 * What returns of one grant or report. It may be sent again, in any order and on any connection: the store gives back what
 * it has not given back yet. One that comes before its grant makes that grant 0.
 */
export interface Refund {
  /** The id of the grant. */
  readonly grant: string;
  /** Of all refunds of this grant so far, this one included. */
  readonly units: number;
  /** No unit can return after this one: the store forgets the id. */
  readonly isFinal: boolean;
}

export interface ReserveRequest {
  readonly customer: string;
  /** An id that no other grant or report has, without white space. Unused if neither `need` nor `ahead` asks for units. */
  readonly grant: string;
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
  /** The same units are taken from every limit, or none. */
  readonly limits: Limits;
  /** How far in the future the last request on this grant may reach the upstream. At most 10,000. */
  readonly holdMs: number;
  readonly refunds: readonly Refund[];
}

/** What a limit of a reservation has left, and when it has more. */
export interface LimitCount {
  readonly policy: Policy;
  /** Units that are still free after this grant. Below 0: units beyond a period that allows them. */
  readonly free: number;
  /** Units counted, this grant included: of the policy `hourly`, those of the last hour; of a period, not those forgiven. */
  readonly used: number;
  /**
   * Milliseconds from the grant's `storeTimeMs` until more than `free` units are free; if less than `need` was granted, or
   * nothing was needed, until `heaviest` are. -1: never, because too few units are counted or the limit is too low. Of a
   * period: until its end.
   */
  readonly waitMs: number;
  readonly epoch: string;
  /** Store time at which the last open hold of this counter ends, across all gateways. */
  readonly holdEndMs: number;
  /** Undefined for a window. */
  readonly period?: Period & Pick<PeriodLimit, 'beyond'>;
}

/** Returns whether a limit refuses what exceeds it. */
export function refusesBeyond({ period }: Pick<LimitCount, 'period'>): boolean {
  return period?.beyond !== 'allow';
}

export interface Grant {
  readonly granted: number;
  /** In the order of the request's limits. */
  readonly counts: NonEmpty<LimitCount>;
  readonly bucket: number;
  readonly storeTimeMs: number;
}

export interface WindowStore {
  /**
   * Checks the limits and counts units, atomically. Has no deadline of its own. Rejects with NotRunError if nothing was
   * granted; after any other error the outcome is unknown, and a refund of the grant must tell.
   */
  reserve(request: ReserveRequest): Promise<Grant>;
  /**
   * Resolves to the number of units that returned to the customer's window; 0 when it was replaced. `root`: of the key
   * whose window counted these grants, too.
   */
  refund(customer: string, refunds: readonly Refund[], root?: WindowRoot): Promise<number>;
  /**
   * Counts units that were admitted while the store was unavailable, regardless of the limit. Units whose id the store
   * knows are not counted again, so a report may be repeated for as long as the store keeps ids: {@link GRANT_MS}. They
   * count in the present period, too, if there is one. Rejects with NotRunError if nothing was counted.
   */
  charge(customer: string, charged: readonly ChargedUnits[], period?: PeriodLimit): Promise<ChargedCounts>;
}

/** What is counted after a charge. */
export interface ChargedCounts {
  /** Units of the last hour. */
  readonly used: number;
  /** The same of each key that was charged, by root. Without those whose window is damaged: it counts nothing. */
  readonly usedOfKeys: ReadonlyMap<string, number>;
  readonly period?: LimitCount | undefined;
}

/** Reads the usage of many windows for reports, in small steps. Changes nothing. */
export interface UsageReader {
  /**
   * Resolves to the units counted in the last hour, in the order given. A usage below `from` may be inexact, but is
   * never reported as `from` or more.
   */
  usedOf(
    windows: readonly { readonly customer: string; readonly root?: WindowRoot; readonly from: number }[],
  ): Promise<readonly number[]>;
  /** Resolves to the units counted in the last hour, without those of leases that may still be refunded. */
  settledOf(customer: string, root?: WindowRoot): Promise<number>;
}

/** Reads the present periods of many customers for reports. Changes nothing. */
export interface PresentPeriodReader {
  /** Resolves to what is counted now of each period, in the order given. A damaged count is read as 0. */
  presentPeriodsOf(
    periods: readonly { readonly customer: string; readonly period: PeriodLimit }[],
  ): Promise<readonly LimitCount[]>;
}

/**
 * Units that may have reached the upstream until `ageMs` before the call. A negative age is a time after it.
 */
export interface ChargedUnits {
  /** As that of a grant. */
  readonly grant: string;
  readonly ageMs: number;
  readonly units: number;
  /** Of the key in whose window they count, too. */
  readonly root?: WindowRoot;
}
