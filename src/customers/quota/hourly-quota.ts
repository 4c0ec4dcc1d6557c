/** What the hourly quota tells the rest of the gateway: admissions, usage and the state of a customer's leases. */
import type { NonEmpty } from '../../base/non-empty.ts';
import { perOf } from '../../store/period-counts.ts';
import type { Per } from '../../store/periods.ts';
import { HOUR_MS } from '../../store/usage-history.ts';
import type { Limit, LimitCount, Limits, PeriodLimit } from '../../store/windows.ts';
import type { KeyCeiling } from './key-ceiling.ts';

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
  /** A request takes its units from all of them. */
  readonly limits: Limits;
  /** Changes with each reset of the customer's usage, and when the customer is deleted and created again. */
  readonly usageResetAt: string;
  /** Changes with each reset of the present period. */
  readonly periodResetAt?: string | undefined;
  /** Tells a customer from a deleted one with the same id. */
  readonly createdAt?: string | undefined;
  /** The limit of the request's key, which is among `limits`; undefined if it has none. */
  readonly ceiling?: KeyCeiling | undefined;
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
   * meanwhile. Below 0: beyond a period that allows it.
   */
  remaining(limit: number): number;
  /** Returns the seconds until more than {@link remaining} units of a limit are available, or its period ends; at least 1. */
  resetSeconds(limit: number): number;
}

/** A limit that refuses a request. */
export type Violation = Limit & {
  /** The units that it counted; undefined if the store did not say. */
  readonly used?: number;
  /** Units that are left for lighter requests, as in {@link Admitted.remaining}; undefined: none. */
  readonly remaining?: number;
  /** Wall time in ms at which its period ends; undefined for a window, or if the store did not say. */
  readonly endsAtMs?: number | undefined;
  /** Of the limit of a key: the units that are left to its customer; undefined if the store did not say. */
  readonly ofCustomer?: number | undefined;
};

interface Refused {
  readonly outcome: 'refused';
  readonly mode: QuotaMode;
  /** The limits that refuse, as they were asked: a reload may have changed them while the request waited for the store. */
  readonly violated: NonEmpty<Violation>;
  /**
   * Returns the seconds to wait for one of them (its index). A request sent after the longest of these is admitted, if the
   * customer sends no others meanwhile.
   */
  resetSeconds(violated: number): number;
}

export type Admission = Admitted | Refused;

/** A customer's usage of the last hour, for display. `resetSeconds` is 0 when nothing is counted. */
export interface Usage {
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  readonly windowSeconds: number;
  readonly period?: PeriodUsage | undefined;
  /** Of the key that was asked for. */
  readonly key?: KeyUsage | undefined;
}

/** The same of the last hour of a key. */
export type KeyUsage = Pick<Usage, 'limit' | 'used' | 'remaining' | 'resetSeconds'>;

/** The same of the present day or month. Times: ISO 8601. */
export interface PeriodUsage {
  readonly per: Per;
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** Units beyond the limit. */
  readonly overage: number;
  readonly startsAt: string;
  readonly endsAt: string;
  readonly beyond: PeriodLimit['beyond'];
}

/** Returns the usage after so many more units, and as many of them with the key. */
export function usageAfter(usage: Usage, units: number, unitsOfKey = 0): Usage {
  const { period, key } = usage;
  const ofPeriod = period && { ...period, ...amountsOf(period.limit, period.used + units) };
  return { ...hourAfter(usage, units), period: ofPeriod, key: key && hourAfter(key, unitsOfKey) };
}

function hourAfter<Hour extends KeyUsage>(usage: Hour, units: number): Hour {
  const used = usage.used + units;
  return { ...usage, used, remaining: Math.max(0, usage.limit - used) };
}

/** Returns the usage of a period by the store's count, without so many unused units. */
export function periodUsage(limit: PeriodLimit, { used, period }: LimitCount, unused: number): PeriodUsage | undefined {
  if (period === undefined) return undefined;
  const { policy, amount, beyond } = limit;
  const [startsAt = '', endsAt = ''] = [period.startHour, period.endHour].map((hour) =>
    new Date(hour * HOUR_MS).toISOString(),
  );
  return { per: perOf(policy), ...amountsOf(amount, Math.max(0, used - unused)), startsAt, endsAt, beyond };
}

function amountsOf(limit: number, used: number) {
  return { limit, used, remaining: Math.max(0, limit - used), overage: Math.max(0, used - limit) };
}

/** Returns the usage of a key in the form of the public API. */
export function keyUsageDocument({ limit, used, remaining, resetSeconds }: KeyUsage) {
  return { limit, used, remaining, reset_seconds: resetSeconds };
}

/** Returns usage in the form of the public API. */
export function usageDocument({ limit, used, remaining, resetSeconds, windowSeconds, period }: Usage) {
  const { startsAt, endsAt, beyond, ...amounts } = period ?? {};
  return {
    ...{ limit, used, remaining, reset_seconds: resetSeconds, window_seconds: windowSeconds },
    period: period ? { ...amounts, starts_at: startsAt, ends_at: endsAt, beyond } : null,
  };
}
