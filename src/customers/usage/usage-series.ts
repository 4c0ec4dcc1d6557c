/** The usage history as evenly spaced points, for people and charts. */
import { dictionary } from '../../base/dictionary.ts';
import {
  DAY_MS,
  type HistoryRange,
  HOUR_MS,
  noTotals,
  type Total,
  type UsageHistory,
} from '../../store/usage-history.ts';

export type Step = 'hour' | 'day';

const STEP_MS: Readonly<Record<Step, number>> = { hour: HOUR_MS, day: DAY_MS };
/** Without `from`, a series begins this long before its end. */
const DEFAULT_STEPS: Readonly<Record<Step, number>> = { hour: 24, day: 35 };
/** The most points of a series. */
const MAX_POINTS = 1000;

export interface UsagePoint {
  /** ISO 8601 UTC. */
  readonly start: string;
  readonly requests: number;
  readonly units: number;
  readonly refused: number;
  readonly refusedByCode?: Readonly<Record<string, number>>;
  /** The hour or day is not over, so its counts still grow. */
  readonly open?: true;
}

interface TotalsPoint {
  readonly start: string;
  readonly plans: Readonly<Record<string, Readonly<Record<Total, number>>>>;
  readonly open?: true;
}

/** Thrown for a range that has no points or too many. The message is for the client. */
export class HistoryRangeError extends Error {
  override readonly name = 'HistoryRangeError';
}

/** Returns whole hours or days around the wanted range. @throws HistoryRangeError */
export function seriesRange(step: Step, nowMs: number, wanted: Partial<HistoryRange>): HistoryRange {
  const stepMs = STEP_MS[step];
  const toMs = Math.ceil((wanted.toMs ?? nowMs + 1) / stepMs) * stepMs;
  const fromMs = Math.floor((wanted.fromMs ?? toMs - DEFAULT_STEPS[step] * stepMs) / stepMs) * stepMs;
  if (toMs <= fromMs) throw new HistoryRangeError('"from" must be before "to".');
  if ((toMs - fromMs) / stepMs > MAX_POINTS) {
    throw new HistoryRangeError(`The range has more than ${MAX_POINTS} points: ask for a shorter one, or for days.`);
  }
  return { fromMs, toMs };
}

/** Resolves to one point for each hour or day of the range. Rejects with StoreUnavailableError. */
export async function usageSeries(
  history: UsageHistory,
  customer: string,
  step: Step,
  range: HistoryRange,
  nowMs: number,
): Promise<UsagePoint[]> {
  const past = upTo(nowMs, range);
  const [hours = []] = await history.hours([customer], past);
  const requests = new Map<number, number>();
  const units = new Map<number, number>();
  const refused = new Map<number, Record<string, number>>();
  for (const hour of hours) {
    const startMs = Math.floor(hour.startMs / STEP_MS[step]) * STEP_MS[step];
    requests.set(startMs, (requests.get(startMs) ?? 0) + hour.requests);
    units.set(startMs, (units.get(startMs) ?? 0) + hour.units);
    const codes = refused.get(startMs) ?? dictionary<number>();
    for (const [code, count] of Object.entries(hour.refused)) codes[code] = (codes[code] ?? 0) + count;
    refused.set(startMs, codes);
  }
  // Days are kept longer than hours.
  for (const day of step === 'day' ? await history.days(customer, past) : []) {
    units.set(day.startMs, day.units);
    // The hours also have those of hours in which requests were not counted.
    const inHours = requests.get(day.startMs) ?? 0;
    requests.set(day.startMs, day.requests === 0 ? day.units : Math.max(inHours, day.requests));
  }
  return startsOf(step, range).map((startMs) => {
    const codes = refused.get(startMs) ?? {};
    const total = Object.values(codes).reduce((sum, count) => sum + count, 0);
    return {
      ...pointHead(step, startMs, nowMs),
      requests: requests.get(startMs) ?? 0,
      units: units.get(startMs) ?? 0,
      refused: total,
      ...(total > 0 && { refusedByCode: codes }),
    };
  });
}

/** Resolves to one point for each hour or day of the range, with the totals of all plans that had any. */
export async function totalsSeries(
  history: UsageHistory,
  step: Step,
  range: HistoryRange,
  nowMs: number,
): Promise<TotalsPoint[]> {
  const points = new Map<number, Record<string, Record<Total, number>>>();
  for (const { startMs, plan, counts } of await history.totals(upTo(nowMs, range))) {
    const start = Math.floor(startMs / STEP_MS[step]) * STEP_MS[step];
    const plans = points.get(start) ?? dictionary<Record<Total, number>>();
    plans[plan] ??= noTotals();
    const sum = plans[plan];
    sum.requests += counts.requests;
    sum.refused += counts.refused;
    sum.upstream_errors += counts.upstream_errors;
    points.set(start, plans);
  }
  return startsOf(step, range).map((startMs) => ({
    ...pointHead(step, startMs, nowMs),
    plans: points.get(startMs) ?? {},
  }));
}

/** The store reads only as far back from the end of a range as it keeps data. So the end must not be in the future. */
function upTo(nowMs: number, range: HistoryRange): HistoryRange {
  return { ...range, toMs: Math.min(range.toMs, nowMs + 1) };
}

function startsOf(step: Step, { fromMs, toMs }: HistoryRange): number[] {
  return Array.from({ length: (toMs - fromMs) / STEP_MS[step] }, (_, at) => fromMs + at * STEP_MS[step]);
}

function pointHead(step: Step, startMs: number, nowMs: number): { start: string; open?: true } {
  const isOpen = startMs + STEP_MS[step] > nowMs;
  return { start: isoTime(startMs), ...(isOpen && { open: true as const }) };
}

/** Returns a whole second as ISO 8601 UTC, without a fraction. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z');
}
