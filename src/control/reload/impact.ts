/**
 * Shows which customers new limits affect: compares each customer's limits before and after with its usage in the last
 * hour and in the present day or month. A period that allows overage is no limit here, because it refuses nothing. Reads in
 * pages, so that other store calls are not delayed for long. The result is bounded, however many customers there are.
 */
import type { Clock } from '../../base/clock.ts';
import {
  type EffectiveLimit,
  effectiveLimit,
  type LimitPolicy,
  limitsOf,
  type PlanPolicy,
  planNameOf,
} from '../../customers/quota/effective-limit.ts';
import { policyOf } from '../../store/period-counts.ts';
import type { CustomerRecord } from '../../store/record-fields.ts';
import type { Store } from '../../store/store.ts';
import { type CustomerPolicy, type PeriodLimit, periodIn } from '../../store/windows.ts';
import { type CustomerLists, everyCustomer } from './customers.ts';

/** From this fraction of its limit on, a customer counts as near it. */
const NEAR_RATIO = 0.8;
/** Maximum number of customers in each list. */
const MAX_LISTED = 100;

export interface LimitChange {
  /** The current name; undefined in a group of customers on different plans. */
  readonly plan: string | undefined;
  readonly window: CustomerPolicy;
  /** Undefined without a limit: of the hour, every request is refused, of a period, none. */
  readonly before: number | undefined;
  readonly after: number | undefined;
}

interface CustomerImpact extends LimitChange {
  readonly customer: string;
  readonly customerName: string | undefined;
  /** As named in the customer's record. */
  readonly plan: string;
  readonly used: number;
  readonly state: 'refused' | 'near';
}

/** A limit of a customer that changes, and is set by an override before or after the change. */
interface OverrideChange extends LimitChange {
  readonly customer: string;
  readonly used: number;
}

/** Customers of whom a limit changes in the same way, or all of whom it is set by an override before or after. */
interface ImpactGroup extends LimitChange {
  /** `starter 1000 → 800 per month`, or `overrides per month`, which has neither plan nor limits; without a unit: per hour. */
  readonly label: string;
  readonly customers: number;
  /** Customers of the group that have used up the new limit, or have none. */
  readonly refused: number;
}

const NO_CUSTOMERS = {
  total: 0,
  /** At least one limit is higher or gone, and none lower or new. */
  raised: 0,
  lowered: 0,
  /** Without a limit before, and with one after. */
  gained: 0,
  /** With a limit before, and without one after. */
  lost: 0,
  /** The limits after would refuse them now. */
  refused: 0,
  /** The limits after would refuse them now, and the limits before would not. */
  newlyRefused: 0,
  /** They have used at least 80 % of the limit after, but not all of it. */
  near: 0,
};

export interface Impact {
  /** Numbers of customers. */
  readonly customers: Readonly<typeof NO_CUSTOMERS>;
  readonly groups: readonly ImpactGroup[];
  /** The first 100. */
  readonly overrides: readonly OverrideChange[];
  /**
   * At most 100 refused and near customers: first those whose limit changes, each part by falling share of the limit used,
   * those without a limit first.
   */
  readonly closest: readonly CustomerImpact[];
}

export interface ImpactParts {
  readonly records: CustomerLists;
  readonly usages: Pick<Store['usages'], 'usedOf' | 'presentPeriodsOf'>;
  /** Wall time by which temporary limits end. */
  readonly limitClock: Pick<Clock, 'nowMs'>;
}

interface ImpactOptions {
  /** Assesses only customers whose limits change; `total` still counts all. */
  readonly changedOnly?: boolean;
  readonly signal?: AbortSignal;
}

interface WindowLimits extends Pick<LimitChange, 'window' | 'before' | 'after'> {
  /** Whether one of the limits is set by an override. */
  readonly byOverride: boolean;
  /** To read what a period counts; undefined for the hour. */
  readonly period: PeriodLimit | undefined;
}

interface CustomerLimits {
  readonly record: CustomerRecord;
  /** First the hour. */
  readonly windows: readonly WindowLimits[];
}

/** A limit of a customer, with what it used. */
interface WindowImpact extends WindowLimits {
  readonly used: number;
}

/** Compares two sets of limits. Rejects with StoreUnavailableError, or when `signal` aborts. */
export async function assessImpact(
  before: LimitPolicy,
  after: LimitPolicy,
  { records, usages, limitClock }: ImpactParts,
  { changedOnly = false, signal }: ImpactOptions = {},
): Promise<Impact> {
  const tally = new Tally(before, after);
  for await (const page of everyCustomer(records, signal)) {
    tally.counts.total += page.length;
    const all = page.map((record) => customerLimits(record, before, after, limitClock));
    const assessed = changedOnly ? all.filter(({ windows }) => windows.some(isChanged)) : all;
    const used = await usages.usedOf(
      assessed.map(({ record, windows: [hour] }) => ({
        customer: record.id,
        from: Math.floor(NEAR_RATIO * Math.min(hour?.before ?? 0, hour?.after ?? 0)),
      })),
    );
    const periods = assessed.flatMap(({ record, windows }) =>
      windows.flatMap(({ period }) => (period ? [{ customer: record.id, period }] : [])),
    );
    const counts = (await usages.presentPeriodsOf(periods)).values();
    for (const [index, { record, windows }] of assessed.entries()) {
      const usedIn = ({ period }: WindowLimits) => (period ? counts.next().value?.used : used[index]) ?? 0;
      tally.add(
        record,
        windows.map((limits) => ({ ...limits, used: usedIn(limits) })),
      );
    }
  }
  return tally.result();
}

function customerLimits(
  record: CustomerRecord,
  before: LimitPolicy,
  after: LimitPolicy,
  clock: Pick<Clock, 'nowMs'>,
): CustomerLimits {
  const limits = [effectiveLimit(record, before, clock), effectiveLimit(record, after, clock)] as const;
  const periods = limits.map((limit) => (limit.found ? periodIn(limitsOf(limit, record)) : undefined));
  const windows = WINDOWS.flatMap((window): WindowLimits[] => {
    const period = periods.find((each) => each?.policy === window);
    const [old, next] = [limitIn(limits[0], window), limitIn(limits[1], window)];
    if (window !== 'hourly' && (period === undefined || (old ?? next) === undefined)) return [];
    const byOverride = [old, next].some((limit) => limit?.source === 'override');
    return [{ window, before: old?.amount, after: next?.amount, byOverride, period }];
  });
  return { record, windows };
}

const WINDOWS: readonly CustomerPolicy[] = ['hourly', 'daily', 'monthly'];

/** Returns the limit above which requests are refused; undefined if there is none. */
function limitIn(limit: EffectiveLimit, window: CustomerPolicy) {
  if (!limit.found) return undefined;
  const { requestsPerHour: amount, source, period } = limit;
  if (window === 'hourly') return { amount, source };
  if (period === undefined || policyOf(period.per) !== window || period.beyond === 'allow') return undefined;
  return { amount: period.requests, source: period.source };
}

class Tally {
  readonly #after: LimitPolicy;
  readonly counts = { ...NO_CUSTOMERS };
  readonly #groups = new Map<string, LimitChange & { customers: number; refused: number }>();
  readonly #overrides: OverrideChange[] = [];
  #closest: CustomerImpact[] = [];

  constructor(before: LimitPolicy, after: LimitPolicy) {
    this.#after = after;
    // Plans whose limits change are reported even if they have no customers.
    for (const [name, plan] of before.plans) {
      const current = planNameOf(name, after);
      const next = current === undefined ? undefined : after.plans.get(current);
      if (next === undefined) continue;
      for (const window of WINDOWS) {
        const [old, limit] = [planLimit(plan, window), planLimit(next, window)];
        if (old === limit || old === 'custom' || limit === 'custom') continue;
        const change = { plan: current, window, before: old, after: limit };
        this.#groups.set(labelOf(change), { ...change, customers: 0, refused: 0 });
      }
    }
  }

  /** `windows`: first the hour. */
  add(record: CustomerRecord, windows: readonly WindowImpact[]): void {
    const { counts } = this;
    const change = changeOf(windows);
    if (change) counts[change]++;
    for (const each of windows) if (isChanged(each)) this.#group(record, each);
    const [worst] = windows.toSorted((a, b) => ratioOf(b) - ratioOf(a));
    if (worst === undefined) return;
    if (ratioOf(worst) < NEAR_RATIO) return;
    const state = isRefused(worst) ? 'refused' : 'near';
    counts[state]++;
    const wasRefused = windows.some((each) => isRefused({ ...each, after: each.before }));
    if (state === 'refused' && !wasRefused) counts.newlyRefused++;
    const { id: customer, name: customerName, plan } = record;
    const { window, before, after, used } = worst;
    this.#closest.push({ customer, customerName, plan, window, before, after, used, state });
    if (this.#closest.length >= 4 * MAX_LISTED) this.#trimClosest();
  }

  result(): Impact {
    this.#trimClosest();
    const groups = [...this.#groups].map(([label, group]) => ({ label, ...group }));
    return { customers: this.counts, groups, overrides: this.#overrides, closest: this.#closest };
  }

  #group(record: CustomerRecord, { window, before, after, byOverride, used }: WindowImpact): void {
    const plan = planNameOf(record.plan, this.#after) ?? record.plan;
    const change = { plan, window, before, after };
    if (byOverride && this.#overrides.length < MAX_LISTED) {
      this.#overrides.push({ customer: record.id, ...change, used });
    }
    const shared = byOverride ? { plan: undefined, window, before: undefined, after: undefined } : change;
    const label = labelOf(shared);
    const group = this.#groups.get(label) ?? { ...shared, customers: 0, refused: 0 };
    group.customers++;
    if (isRefused({ ...change, used })) group.refused++;
    this.#groups.set(label, group);
  }

  #trimClosest(): void {
    this.#closest = this.#closest
      .toSorted((a, b) => Number(isChanged(b)) - Number(isChanged(a)) || ratioOf(b) - ratioOf(a))
      .slice(0, MAX_LISTED);
  }
}
/** Returns how a customer's limits change as a whole; undefined if they do not. */
function changeOf(windows: readonly WindowLimits[]) {
  const changes = windows.filter(isChanged);
  const hour = changes.find(({ window }) => window === 'hourly');
  if (hour && hour.after === undefined) return 'lost';
  if (hour && hour.before === undefined) return 'gained';
  const { POSITIVE_INFINITY: none } = Number;
  if (changes.some(({ before = none, after = none }) => after < before)) return 'lowered';
  return changes.length > 0 ? 'raised' : undefined;
}

/** Returns text such as `1000 → 800`. */
export function limitChange({ window, before, after }: Omit<LimitChange, 'plan'>): string {
  return `${before ?? 'none'} → ${after ?? 'none'}${UNITS[window]}`;
}

const UNITS: Readonly<Record<CustomerPolicy, string>> = { hourly: '', daily: ' per day', monthly: ' per month' };

function labelOf(change: LimitChange): string {
  return change.plan === undefined ? `overrides${UNITS[change.window]}` : `${change.plan} ${limitChange(change)}`;
}

function planLimit({ requestsPerHour, period }: PlanPolicy, window: CustomerPolicy): number | 'custom' | undefined {
  if (window === 'hourly') return requestsPerHour;
  return period && policyOf(period.per) === window && period.beyond === 'refuse' ? period.requests : undefined;
}

const isChanged = ({ before, after }: Pick<LimitChange, 'before' | 'after'>) => before !== after;

type UsedLimit = Pick<WindowImpact, 'window' | 'after' | 'used'>;

const isRefused = (limit: UsedLimit) => ratioOf(limit) >= 1;

/** Returns the used share of the limit after the change. Without one, of the hour more than any, and of a period 0. */
function ratioOf({ window, after, used }: UsedLimit): number {
  if (after === undefined) return window === 'hourly' ? Number.MAX_VALUE : 0;
  return used / after;
}
