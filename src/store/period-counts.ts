/**
 * What periods count.
 *
 * A period is a counter that nothing leaves but refunds. It counts a unit in the same step as the window and the usage
 * history, and gives it back in the period of the hour in which the history gives it back. So its count is the sum of its
 * hours in the history, while the anchor stays.
 *
 * redis/window/period.lua is the same inside Redis. A test feeds both the same histories.
 */
import { type Anchor, anchorAt, type Per, type Period, periodAt } from './periods.ts';
import { HOUR_MS } from './usage-history.ts';
import type { LimitCount, PeriodAnchor, PeriodLimit } from './windows.ts';

/** What is counted of one customer's periods, by the fields that Redis has, too. The caller makes each operation atomic. */
export interface PeriodHash {
  get(field: string): string | undefined;
  set(field: string, value: string): unknown;
  delete(field: string): unknown;
  entries(): Iterable<readonly [field: string, value: string]>;
}

/** Hours for which a period is kept after its end. */
const KEPT_HOURS = 40 * 24;

const PER: Readonly<Record<PeriodLimit['policy'], Per>> = { daily: 'day', monthly: 'month' };
const ANCHOR = /^(day|month)\/(\d+)\/(\d+)$/;

/** Returns how long the periods of a policy are. */
export function perOf(policy: PeriodLimit['policy']): Per {
  return PER[policy];
}

export function policyOf(per: Per): PeriodLimit['policy'] {
  return per === 'day' ? 'daily' : 'monthly';
}

/** Returns the text by which a grant notes in which periods it is counted. */
export function anchorText({ policy, anchorMs }: PeriodAnchor): string {
  const { day, hour } = anchorAt(anchorMs);
  return `${perOf(policy)}/${day}/${hour}`;
}

/** Returns the period of a limit at a time. */
export function periodOf({ policy, anchorMs }: PeriodAnchor, nowMs: number): Period {
  return periodAt(nowMs, perOf(policy), anchorAt(anchorMs));
}

function openPeriod(hash: PeriodHash, per: Per, anchor: Anchor, nowMs: number) {
  const period = periodAt(nowMs, per, anchor);
  const counter = `${per === 'day' ? 'd' : ''}${period.startHour}`;
  const numberIn = (field: string) => Number(hash.get(field) ?? 0);
  return { ...period, counter, counted: numberIn(counter), forgiven: numberIn(`${counter}:forgiven`) };
}

/** Returns the names of the fields by which {@link countInPeriod} counts the present period. */
export function counterFields(limit: PeriodAnchor, nowMs: number): readonly string[] {
  const { counter } = openPeriod(new Map(), perOf(limit.policy), anchorAt(limit.anchorMs), nowMs);
  return [counter, `${counter}:forgiven`];
}

/** Counts units in the present period regardless of the limit, and drops the periods that are no longer kept. */
export function countInPeriod(hash: PeriodHash, limit: PeriodLimit, nowMs: number, units: number): LimitCount {
  const open = openPeriod(hash, perOf(limit.policy), anchorAt(limit.anchorMs), nowMs);
  const counted = open.counted + units;
  if (units > 0) {
    hash.set(open.counter, `${counted}`);
    const terms = `${open.endHour} ${termsOf(limit)}`;
    if (hash.get(`${open.counter}:at`) !== terms) {
      hash.set(`${open.counter}:at`, terms);
      dropOld(hash, Math.floor(nowMs / HOUR_MS));
    }
  }
  return limitCountOf(limit, { ...open, counted }, nowMs);
}

/** What a period counts. A reset forgives units: they count, and may be used again. */
export interface PeriodCount extends Period {
  readonly counted: number;
  readonly forgiven: number;
}

/** Returns what is stored after the end of a period: by which its last grant went. */
export function termsOf({ amount, beyond, plan }: PeriodLimit): string {
  return `${amount} ${beyond} ${plan}`;
}

/** Returns the count in the form that all limits share. `holdEndMs`: that of the customer's hour. */
export function limitCountOf(
  { policy, amount, beyond }: PeriodLimit,
  { counted, forgiven, startHour, endHour }: PeriodCount,
  nowMs: number,
  holdEndMs = 0,
): LimitCount {
  const used = Math.max(0, counted - forgiven);
  const free = beyond === 'allow' ? amount - used : Math.max(0, amount - used);
  const waitMs = endHour * HOUR_MS - nowMs;
  return { policy, free, used, waitMs, epoch: '', holdEndMs, period: { startHour, endHour, beyond } };
}

/** Gives units back to the period in which an hour is. `anchor`: as {@link anchorText} returns it. */
export function refundInPeriod(hash: PeriodHash, anchor: string, hour: number, units: number): void {
  const [, per, day, hourOfDay] = ANCHOR.exec(anchor) ?? [];
  if (per !== 'day' && per !== 'month') return;
  const at = { day: Number(day), hour: Number(hourOfDay) };
  const { counter, counted, forgiven } = openPeriod(hash, per, at, hour * HOUR_MS);
  if (counted === 0) return;
  const left = Math.max(0, counted - units);
  if (left > 0) hash.set(counter, `${left}`);
  else hash.delete(counter);
  if (left < forgiven) hash.set(`${counter}:forgiven`, `${left}`);
}

/** Lets the units that this period has counted be used again. */
export function forgivePeriod(hash: PeriodHash, limit: PeriodAnchor, nowMs: number): void {
  const { counter, counted } = openPeriod(hash, perOf(limit.policy), anchorAt(limit.anchorMs), nowMs);
  if (counted > 0) hash.set(`${counter}:forgiven`, `${counted}`);
}

function dropOld(hash: PeriodHash, hour: number): void {
  for (const [field, terms] of [...hash.entries()]) {
    const [, counter] = /^(d?\d+):at$/.exec(field) ?? [];
    if (counter === undefined || Number(terms.split(' ')[0]) + KEPT_HOURS > hour) continue;
    for (const old of [counter, field, `${counter}:forgiven`]) hash.delete(old);
  }
}
