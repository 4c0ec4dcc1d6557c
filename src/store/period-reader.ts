/**
 * The units that customers used in each day or month, for billing. Plan, limit and end are those that the last grant of the
 * day or month stored. So later changes of plans, limits and anchors do not change it.
 */
import { HOUR_MS } from './usage-history.ts';

/** A day or month in which units were counted. */
export interface StoredPeriod {
  /** The customer's plan at the last grant. */
  readonly plan: string;
  /** Wall time in ms. */
  readonly startMs: number;
  /** Wall time in ms, exclusive. */
  readonly endMs: number;
  /** Units that the limit included at the last grant. */
  readonly included: number;
  /** Units counted, those that a reset forgave included. */
  readonly used: number;
  /** Units that a reset lets be used again. */
  readonly forgiven: number;
  /** Units beyond those included, without those that a reset forgave. */
  readonly overage: number;
}

export interface CustomerPeriods {
  /** By their ends, oldest first. */
  readonly periods: readonly StoredPeriod[];
  /** Whether there is something else, which another program wrote. */
  readonly isDamaged: boolean;
}

/** All methods reject with StoreUnavailableError. */
export interface PeriodReader {
  /** Resolves to a wall time in ms: periods that ended until then do not change any more, those that end later may. */
  openFromMs(): Promise<number>;
  /** Resolves to the kept periods of each customer, in the order given. Those of the present are among them. */
  periodsOf(customers: readonly string[]): Promise<readonly CustomerPeriods[]>;
}

const FIELD = /^d?(\d{1,7})(:at|:forgiven)?$/;
const TERMS = /^(\d{1,7}) (\d+) (?:refuse|allow) ([A-Za-z0-9][A-Za-z0-9._-]{0,63})$/;
const COUNT = /^\d{1,16}$/;

/** Returns the periods in the fields of a customer, as period-counts.ts has them. */
export function periodsFrom(entries: Iterable<readonly [field: string, value: string]>): CustomerPeriods {
  const fields = new Map(entries);
  const periods: StoredPeriod[] = [];
  let isDamaged = false;
  for (const [field, value] of fields) {
    const [, startHour, suffix] = FIELD.exec(field) ?? [];
    // They are read with their counter, which is not there if all units were refunded.
    if (suffix !== undefined) continue;
    const [, endHour, amount = '', plan] = TERMS.exec(fields.get(`${field}:at`) ?? '') ?? [];
    const [startMs, endMs] = [Number(startHour) * HOUR_MS, Number(endHour) * HOUR_MS];
    const [used, included, forgiven] = [value, amount, fields.get(`${field}:forgiven`) ?? '0'].map(countFrom);
    const isReadable = startMs < endMs && used !== undefined && included !== undefined && forgiven !== undefined;
    if (!isReadable || plan === undefined) isDamaged = true;
    else if (used > 0) {
      const overage = Math.max(0, used - forgiven - included);
      periods.push({ plan, startMs, endMs, included, used, forgiven, overage });
    }
  }
  return { periods: periods.toSorted(byEnd), isDamaged };
}

/** Compares periods by their ends, then by their starts: one of a day and one of a month can have the same end. */
export function byEnd(a: Pick<StoredPeriod, 'startMs' | 'endMs'>, b: typeof a): number {
  return a.endMs - b.endMs || a.startMs - b.startMs;
}

function countFrom(text: string): number | undefined {
  const count = Number(text);
  return COUNT.test(text) && Number.isSafeInteger(count) ? count : undefined;
}
