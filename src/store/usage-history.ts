/**
 * The usage history: units, requests and refusals per customer, and totals per plan, by UTC hour of the store's time.
 *
 * Units are exact: whatever grants or refunds them counts them in the same step (redis/window/window.lua,
 * embedded/windows.ts). Requests are not counted while each takes one unit. Everything else is approximate: each instance collects it in memory and writes it every few seconds.
 */
import { dictionary } from '../base/dictionary.ts';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/**
 * An hour is closed this long after its end: no customer's counts in it change any more. Unused units of its leases are
 * refunded by then, unless a gateway stood still.
 */
const HOUR_CLOSES_MS = 30_000;

/** Returns the first hour that is not closed, as the number of hours since 1970. `nowMs`: store time. */
export function firstOpenHour(nowMs: number): number {
  return Math.floor((nowMs - HOUR_CLOSES_MS) / HOUR_MS);
}

/** Returns this hour, as the number of hours since 1970, or the current one if it is closed. `nowMs`: store time. */
export function unlessClosed(hour: number, nowMs: number): number {
  return hour >= firstOpenHour(nowMs) ? hour : Math.floor(nowMs / HOUR_MS);
}

/** How long the history is kept. */
export interface UsageRetention {
  /** Days for which hours are kept. */
  readonly hoursDays: number;
  /** Days for which daily sums are kept. */
  readonly days: number;
}

/** Wall times in ms: `fromMs` inclusive, `toMs` exclusive. */
export interface HistoryRange {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface CustomerHour {
  /** Start of the hour, wall time in ms. */
  readonly startMs: number;
  /** Counted against the quota. */
  readonly units: number;
  /** As many as units, where requests are not counted. */
  readonly requests: number;
  /** Number of refused requests by problem code. */
  readonly refused: Readonly<Record<string, number>>;
}

export interface CustomerDay {
  /** Start of the UTC day, wall time in ms. */
  readonly startMs: number;
  readonly units: number;
  /** 0 if they were not counted. */
  readonly requests: number;
}

/** In place of a problem code: requests that were sent, whatever they took from the quota. */
export const REQUESTS = 'n';

/** What is counted per plan. */
export const TOTALS = ['requests', 'refused', 'upstream_errors'] as const;
export type Total = (typeof TOTALS)[number];

export interface PlanHour {
  readonly startMs: number;
  readonly plan: string;
  readonly counts: Readonly<Record<Total, number>>;
}

export function noTotals(): Record<Total, number> {
  return { requests: 0, refused: 0, upstream_errors: 0 };
}

/** One count of a customer's hour: of refusals with a problem code, of units, or of {@link REQUESTS}. */
export interface CustomerCount {
  /** Start of the hour, wall time in ms. */
  readonly hourMs: number;
  /** Empty for units. */
  readonly code: string;
  readonly count: number;
}

export interface PlanCount {
  readonly plan: string;
  /** Start of the hour, wall time in ms. */
  readonly hourMs: number;
  readonly what: Total;
  readonly count: number;
}

/** Returns the hours of one customer, oldest first. Counts of 0 are left out. */
export function customerHours(counts: readonly CustomerCount[]): CustomerHour[] {
  const hours = new Map<number, { units: number; requests?: number; refused: Record<string, number> }>();
  for (const { hourMs, code, count } of counts) {
    if (count <= 0) continue;
    const hour = hours.get(hourMs) ?? { units: 0, refused: dictionary<number>() };
    if (code === '') hour.units = count;
    else if (code === REQUESTS) hour.requests = count;
    else hour.refused[code] = count;
    hours.set(hourMs, hour);
  }
  return [...hours]
    .map(([startMs, hour]) => ({ startMs, requests: hour.units, ...hour }))
    .toSorted((a, b) => a.startMs - b.startMs);
}

/** Returns the hours of plans, oldest first and then by plan. */
export function planHours(totals: readonly PlanCount[]): PlanHour[] {
  const hours = new Map<string, PlanHour & { counts: Record<Total, number> }>();
  for (const { plan, hourMs, what, count } of totals) {
    const hour = hours.get(`${hourMs} ${plan}`) ?? { startMs: hourMs, plan, counts: noTotals() };
    hour.counts[what] = count;
    hours.set(`${hourMs} ${plan}`, hour);
  }
  return [...hours.values()].toSorted((a, b) => a.startMs - b.startMs || (a.plan < b.plan ? -1 : 1));
}

/** Counts that an instance collected. Each is added to what is stored. */
export interface CollectedUsage {
  /** Of refusals and requests. */
  readonly counts: readonly (CustomerCount & { readonly customer: string })[];
  readonly totals: readonly PlanCount[];
  /** When these were collected: wall time of the store in ms. */
  readonly atMs?: number;
  /** The last seen usage of customers near their limits, in percent of the limit. */
  readonly near: readonly NearCustomer[];
  readonly deprecated?: readonly DeprecatedCalls[];
}

export interface NearCustomer {
  readonly customer: string;
  readonly percent: number;
}

/** Calls of a customer to a route that has a deprecation or a sunset. */
export interface DeprecatedCalls {
  readonly customer: string;
  /** The template. */
  readonly route: string;
  /** Those that were forwarded. */
  readonly count: number;
  /** Those that were refused after the sunset. */
  readonly gone: number;
  /** Wall time of the store in ms. */
  readonly lastAtMs: number;
}

/** Calls of deprecated routes are kept for so many UTC days. */
export const DEPRECATED_DAYS = 35;

/** The number of customers and routes of each day whose calls of deprecated routes are kept. */
export const DEPRECATED_CALLS = 10_000;

/** Returns the calls of several days as one for each customer and route, the latest first. */
export function mergedCalls(calls: readonly DeprecatedCalls[]): DeprecatedCalls[] {
  const merged = new Map<string, DeprecatedCalls>();
  for (const { count, gone, lastAtMs, ...of } of calls) {
    const id = `${of.customer} ${of.route}`;
    const former = merged.get(id) ?? { count: 0, gone: 0, lastAtMs: 0 };
    const latest = Math.max(lastAtMs, former.lastAtMs);
    merged.set(id, { ...of, count: count + former.count, gone: gone + former.gone, lastAtMs: latest });
  }
  return [...merged.values()].toSorted((a, b) => b.lastAtMs - a.lastAtMs);
}

interface RefusedCustomer {
  readonly customer: string;
  /** The problem code. */
  readonly code: string;
  /** When the last of these refusals was written: wall time in ms. */
  readonly lastAtMs: number;
}

/** The number of customers and codes that are remembered: those refused last. */
export const REFUSED_CUSTOMERS = 10_000;

/** The number of customers that the index of customers near their limits holds: those with the highest usage. */
export const NEAR_CUSTOMERS = 10_000;

/** All methods reject with StoreUnavailableError. */
export interface UsageHistory {
  /** Resolves to the stored hours of each customer, oldest first, in the order given. Hours without data are left out. */
  hours(customers: readonly string[], range: HistoryRange): Promise<readonly (readonly CustomerHour[])[]>;
  /** Resolves to the stored days, oldest first. Days without data are left out. */
  days(customer: string, range: HistoryRange): Promise<readonly CustomerDay[]>;
  /** Resolves to the stored totals, oldest first. */
  totals(range: HistoryRange): Promise<readonly PlanHour[]>;
  /**
   * Adds the counts, except those of customers that do not exist. They may be added only in part when the outcome is
   * unknown: do not repeat.
   */
  add(collected: CollectedUsage): Promise<void>;
  /** Resolves to the customers with the highest last seen usage, highest first. */
  near(limit: number): Promise<readonly NearCustomer[]>;
  /**
   * Resolves to the customers that any instance refused since then, the latest first. The embedded store gives none: there
   * is one process, which remembers them.
   */
  refused(sinceMs: number, limit: number): Promise<readonly RefusedCustomer[]>;
  /**
   * Resolves to the calls of deprecated routes in the last {@link DEPRECATED_DAYS} days, the latest first; with `of`, to those
   * of one customer to these routes.
   */
  deprecated(of?: {
    readonly customer: string;
    readonly routes: readonly string[];
  }): Promise<readonly DeprecatedCalls[]>;
  /** Removes customers from the index of those near their limits. */
  noLongerNear(customers: readonly string[]): Promise<void>;
  /** Resolves to the store's time, wall time in ms. */
  nowMs(): Promise<number>;
}

/**
 * Returns the starts of the UTC days that overlap the range, except those that ended more than `keptDays` before its end:
 * a range may begin in 1970, and each day costs a read.
 */
export function daysIn({ fromMs, toMs }: HistoryRange, keptDays: number): number[] {
  const first = Math.floor(Math.max(fromMs, toMs - (1 + keptDays) * DAY_MS) / DAY_MS);
  return Array.from({ length: Math.max(0, Math.ceil(toMs / DAY_MS) - first) }, (_, at) => (first + at) * DAY_MS);
}

/** The largest time of ECMAScript. */
const MAX_TIME_MS = 8.64e15;

/** Returns whether a stored value is a time, as wall time in ms: other programs may write anything. */
export function isTimeMs(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= MAX_TIME_MS;
}

/** Returns `yyyymmdd` of the UTC day that contains `ms`. */
export function dayName(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10).replaceAll('-', '');
}

/** Returns `hh` of the UTC hour that contains `ms`. */
export function hourName(ms: number): string {
  return String(Math.floor(ms / HOUR_MS) % 24).padStart(2, '0');
}

export function isWithin(ms: number, { fromMs, toMs }: HistoryRange): boolean {
  return ms >= fromMs && ms < toMs;
}
