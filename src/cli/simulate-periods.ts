/**
 * Tries limits of days and months on each whole day or month that the usage history still has. The history of old months has
 * whole days only. If a month begins at another hour than 0:00, its first and last day are partly those of other months:
 * `surely` means that the days between have more units than the limit, `perhaps` that they have them with these two days.
 */
import { InvalidArgumentError } from '@commander-js/extra-typings';
import type { ConfigDocument, UsageHistoryDocument } from '../api/admin/responses.ts';
import type { AdminClient } from '../api/client/admin-client.ts';
import { type Anchor, anchorAt, CALENDAR, type Per, periodAt } from '../store/periods.ts';
import { DAY_MS, HOUR_MS } from '../store/usage-history.ts';
import type { Columns } from './table.ts';

interface TriedPeriod {
  readonly requests: number;
  /** Undefined: that of the plan, else a month. */
  readonly per: Per | undefined;
}

/** By plan. */
export type TriedPeriods = ReadonlyMap<string, TriedPeriod>;

type History = Pick<UsageHistoryDocument, 'step' | 'points'>;
type PeriodVerdict = ReturnType<typeof tryPeriod> & { readonly customer: string; readonly plan: string };

/** The most hours in one response. */
const MAX_HOURS_DAYS = 41;
/** Unknown: the history has no whole period. */
const VERDICTS = ['surely', 'perhaps', 'unknown', 'surely_not'] as const;

export const PERIOD_PLAN_COLUMNS: Columns<ReturnType<typeof planVerdicts>> = {
  PLAN: 'plan',
  REQUESTS: 'requests',
  PER: 'per',
  CUSTOMERS: 'customers',
  'SURELY REFUSED': 'surely',
  PERHAPS: 'perhaps',
  'SURELY NOT': 'surely_not',
  UNKNOWN: 'unknown',
};

export const PERIOD_CUSTOMER_COLUMNS: Columns<PeriodVerdict> = {
  CUSTOMER: 'customer',
  PLAN: 'plan',
  REQUESTS: 'requests',
  PER: 'per',
  REFUSED: 'verdict',
  PERIODS: 'periods',
  EXCEEDED: 'exceeded_at_least',
  OVERAGE: 'overage_at_least',
  MOST: 'most_in_one_period',
};

/** Adds `plan=limit`, `plan=limit/day` or `plan=limit/month` to those given so far. @throws InvalidArgumentError */
export function parseTriedPeriod(text: string, before: TriedPeriods = new Map()): TriedPeriods {
  const [, plan, limit, per] = /^(.+)=([1-9]\d{0,14})(?:\/(day|month))?$/.exec(text) ?? [];
  if (plan === undefined) {
    throw new InvalidArgumentError('It must be a plan, "=" and an integer of at least 1, such as starter=50000/month.');
  }
  return new Map([...before, [plan, { requests: Number(limit), per: per as Per | undefined }]]);
}

/** Returns what a history proves of a limit. */
export function tryPeriod(history: History, requests: number, per: Per, anchor: Anchor) {
  let [periods, exceeded, overage, most, isPossible] = [0, 0, 0, 0, false];
  for (const { atLeast, atMost } of wholePeriods(history, per, anchor)) {
    periods++;
    if (atLeast > requests) exceeded++;
    overage += Math.max(0, atLeast - requests);
    most = Math.max(most, atMost);
    isPossible ||= atMost > requests;
  }
  const verdict: (typeof VERDICTS)[number] =
    periods === 0 ? 'unknown' : exceeded > 0 ? 'surely' : isPossible ? 'perhaps' : 'surely_not';
  const counts = { periods, exceeded_at_least: exceeded, overage_at_least: overage, most_in_one_period: most };
  return { requests, per, verdict, ...counts };
}

/** Yields the fewest and the most units of each period that is wholly in the history, and over. */
function* wholePeriods({ step, points }: History, per: Per, anchor: Anchor) {
  const stepMs = step === 'hour' ? HOUR_MS : DAY_MS;
  const spans = points
    .filter(({ open }) => !open)
    .map(({ start, units }) => ({ startMs: Date.parse(start), endMs: Date.parse(start) + stepMs, units }));
  const [first, last] = [spans[0], spans.at(-1)];
  if (first === undefined || last === undefined) return;
  for (let period = periodAt(first.startMs, per, anchor); ; period = periodAt(period.endHour * HOUR_MS, per, anchor)) {
    const [startMs, endMs] = [period.startHour * HOUR_MS, period.endHour * HOUR_MS];
    if (endMs > last.endMs) return;
    if (startMs < first.startMs) continue;
    const touching = spans.filter((span) => span.startMs < endMs && span.endMs > startMs);
    const within = touching.filter((span) => span.startMs >= startMs && span.endMs <= endMs);
    yield { startMs, atLeast: unitsOf(within), atMost: unitsOf(touching) };
  }
}

function unitsOf(spans: readonly { readonly units: number }[]): number {
  return spans.reduce((sum, { units }) => sum + units, 0);
}

/**
 * Tries the limits on the customers that they would apply to: those without a number of their own. Reads the history of one
 * customer after the other. `from`: ISO 8601; undefined: all that is kept.
 */
export async function simulatePeriods(tried: TriedPeriods, from: string | undefined, client: AdminClient) {
  const config = await client.call('GET /admin/v1/config');
  const customers: PeriodVerdict[] = [];
  for await (const page of client.pages('GET /admin/v1/customers')) {
    for (const { id, current_plan: plan, period_requests: own, period_anchor: at } of page) {
      const limit = plan === null ? undefined : tried.get(plan);
      const override = Object.hasOwn(config.overrides ?? {}, id) ? config.overrides?.[id] : undefined;
      if (plan === null || limit === undefined || own !== null || override?.period_requests != null) continue;
      const per = perOf(plan, limit, config);
      const anchor = at === null ? CALENDAR : anchorAt(Date.parse(at));
      const step = per === 'day' && anchor.hour !== 0 ? 'hour' : 'day';
      const query = { step, from: start(from, step, config) } as const;
      const history = await client.call('GET /admin/v1/customers/:id/usage/history', { id, query });
      customers.push({ customer: id, plan, ...tryPeriod(history, limit.requests, per, anchor) });
    }
  }
  const plans = [...tried].map(([plan, limit]) => planVerdicts(plan, limit, config, customers));
  return { plans, customers: customers.toSorted(byVerdict) };
}

function perOf(plan: string, { per }: TriedPeriod, { plans }: ConfigDocument): Per {
  return per ?? (Object.hasOwn(plans, plan) ? plans[plan]?.period?.per : undefined) ?? 'month';
}

/** Returns the start of the history to read: not of days that may be dropped already. */
function start(from: string | undefined, step: 'hour' | 'day', { usage }: ConfigDocument): string {
  const { hours_days = 0, days = 0 } = usage ?? {};
  const keptDays = step === 'hour' ? Math.min(hours_days, MAX_HOURS_DAYS) : days;
  const keptMs = Math.ceil((Date.now() - (keptDays - 1) * DAY_MS) / DAY_MS) * DAY_MS;
  return new Date(Math.max(keptMs, from === undefined ? 0 : Date.parse(from))).toISOString();
}

function byVerdict(a: PeriodVerdict, b: PeriodVerdict): number {
  return VERDICTS.indexOf(a.verdict) - VERDICTS.indexOf(b.verdict) || b.most_in_one_period - a.most_in_one_period;
}

function planVerdicts(plan: string, limit: TriedPeriod, config: ConfigDocument, all: readonly PeriodVerdict[]) {
  const ofPlan = all.filter((each) => each.plan === plan);
  const counts = { surely: 0, perhaps: 0, surely_not: 0, unknown: 0 };
  for (const { verdict } of ofPlan) counts[verdict] += 1;
  return { plan, requests: limit.requests, per: perOf(plan, limit, config), customers: ofPlan.length, ...counts };
}
