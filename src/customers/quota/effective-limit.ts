import { type Clock, secondsUntil } from '../../base/clock.ts';
import { policyOf } from '../../store/period-counts.ts';
import type { Per } from '../../store/periods.ts';
import type { CustomerRecord } from '../../store/record-fields.ts';
import { hourly, type KeyLimit, type Limits } from '../../store/windows.ts';

/** The limit of a day or a month, beside the hour's. */
interface PeriodPolicy {
  readonly per: Per;
  readonly requests: number | 'custom';
  /** Whether requests beyond it are refused, or served and counted as overage. */
  readonly beyond: 'refuse' | 'allow';
}

/** Limits of one plan in the config. Customer records can set limits, too: see {@link effectiveLimit}. */
export interface PlanPolicy {
  readonly requestsPerHour: number | 'custom';
  readonly period?: PeriodPolicy;
  /** Requests within any second, on each instance. */
  readonly burstPerSecond?: number;
  /** Requests in progress, on each instance. */
  readonly maxConcurrent?: number;
  /** A trial limit: reported, never enforced. */
  readonly shadow?: { readonly requestsPerHour: number };
}

export interface LimitPolicy {
  readonly plans: ReadonlyMap<string, PlanPolicy>;
  /** Former plan names, each with the plan's current name, which is always a key of `plans`. */
  readonly formerPlans: ReadonlyMap<string, string>;
  readonly overrides: ReadonlyMap<string, Override>;
}

interface Override {
  readonly requestsPerHour?: number;
  readonly periodRequests?: number;
}

interface EffectivePeriod extends Pick<PeriodPolicy, 'per' | 'beyond'> {
  readonly requests: number;
  readonly source: 'override' | 'customer' | 'plan';
}

interface NoLimit {
  readonly found: false;
  /** For operators: what is missing and where. */
  readonly reason: string;
  /** The field of the customer's record that can set it right. */
  readonly field: 'plan' | 'requests_per_hour' | 'period_requests';
}

export type EffectiveLimit =
  | {
      readonly found: true;
      readonly requestsPerHour: number;
      readonly source: 'override' | 'temporary' | 'customer' | 'plan';
      /** When the temporary limit ends, and the limit after that; undefined if there is none. */
      readonly until?: { readonly atMs: number; readonly then: number | undefined };
      /** Undefined if the plan has none. */
      readonly period?: EffectivePeriod;
    }
  | NoLimit;

export type FoundLimit = Extract<EffectiveLimit, { found: true }>;

/** By which the clocks of two instances may differ: each is bounded by a reading of the store's clock. */
const CLOCK_MARGIN_MS = 100;

/** Where limits are set, such as `config/gateway.yaml:41`: by plan name (former names included), and by customer id. */
interface LimitOrigins {
  readonly plans: ReadonlyMap<string, string>;
  readonly overrides: ReadonlyMap<string, string>;
}

/**
 * Returns the limit that applies to a customer: the override in the config, else the temporary limit in the customer's
 * record until it ends, else the record's other limit (on any plan), else the plan's. There is none if the config does
 * not know the plan, even with an override or a limit in the record: it is not defined what such a customer may do.
 * There is none either if the plan has a period and the customer no limit of it.
 * `clock`: read only for a customer with a temporary limit.
 */
export function effectiveLimit(
  customer: CustomerRecord,
  policy: LimitPolicy,
  clock: Pick<Clock, 'nowMs'>,
): EffectiveLimit {
  const plan = planOf(customer.plan, policy);
  if (plan === undefined) {
    return { found: false, reason: `the configuration has no plan "${customer.plan}"`, field: 'plan' };
  }
  const override = policy.overrides.get(customer.id);
  const limit = hourlyLimit(customer, plan, override, clock);
  if (plan.period === undefined || !limit.found) return limit;
  const period = effectivePeriod(customer, plan.period, override);
  return 'found' in period ? period : { ...limit, period };
}

function hourlyLimit(
  customer: CustomerRecord,
  plan: PlanPolicy,
  override: Override | undefined,
  clock: Pick<Clock, 'nowMs'>,
): EffectiveLimit {
  const overriding = override?.requestsPerHour;
  if (overriding !== undefined) return { found: true, requestsPerHour: overriding, source: 'override' };
  const lasting = lastingLimit(customer, plan);
  const temporary = customer.temporaryLimit;
  if (temporary === undefined || clock.nowMs() >= temporary.untilMs) return lasting;
  const then = lasting.found ? lasting.requestsPerHour : undefined;
  const until = { atMs: temporary.untilMs, then };
  return { found: true, requestsPerHour: temporary.requestsPerHour, source: 'temporary', until };
}

/**
 * Returns when a customer gets `units`: when the window has dropped enough (`windowSeconds`), or when a temporary limit ends
 * before that and the limit then leaves as many. `used`: undefined if unknown.
 */
export function secondsUntilUnits(
  windowSeconds: number,
  used: number | undefined,
  { until }: FoundLimit,
  clock: Pick<Clock, 'nowMs'>,
  units = 1,
): number {
  if (until?.then === undefined || used === undefined || used + units > until.then) return windowSeconds;
  return Math.min(windowSeconds, secondsUntil(until.atMs + CLOCK_MARGIN_MS, clock.nowMs()));
}

/** Returns the limit that a temporary one covers. */
function lastingLimit(customer: CustomerRecord, plan: PlanPolicy): EffectiveLimit {
  const own = customer.requestsPerHour;
  if (own === 'invalid') return unreadable('requests_per_hour');
  if (own !== undefined) return { found: true, requestsPerHour: own, source: 'customer' };
  if (plan.requestsPerHour === 'custom') {
    const reason = `plan "${customer.plan}" is custom and the customer has no requests_per_hour`;
    return { found: false, reason, field: 'requests_per_hour' };
  }
  return { found: true, requestsPerHour: plan.requestsPerHour, source: 'plan' };
}

function effectivePeriod(
  { plan, periodRequests: own }: CustomerRecord,
  { per, requests, beyond }: PeriodPolicy,
  override: Override | undefined,
): EffectivePeriod | NoLimit {
  const overriding = override?.periodRequests;
  if (overriding !== undefined) return { per, beyond, requests: overriding, source: 'override' };
  if (own === 'invalid') return unreadable('period_requests');
  if (own !== undefined) return { per, beyond, requests: own, source: 'customer' };
  if (requests === 'custom') {
    const reason = `the period of plan "${plan}" is custom and the customer has no period_requests`;
    return { found: false, reason, field: 'period_requests' };
  }
  return { per, beyond, requests, source: 'plan' };
}

/**
 * Returns the limits by which a customer's units are counted. `plan`: the current name of its plan. `key`: that of the key
 * which the requests have.
 */
export function limitsOf(
  { requestsPerHour, period }: FoundLimit,
  customer: CustomerRecord,
  plan: string | undefined = customer.plan,
  key?: KeyLimit,
): Limits {
  const windows: Limits = key === undefined ? hourly(requestsPerHour) : [...hourly(requestsPerHour), key];
  if (period === undefined) return windows;
  const { per, requests, beyond } = period;
  const { periodAnchorMs: anchor = 0 } = customer;
  return [
    ...windows,
    { policy: policyOf(per), amount: requests, beyond, anchorMs: anchor === 'invalid' ? 0 : anchor, plan },
  ];
}

function unreadable(field: NoLimit['field']): NoLimit {
  return { found: false, reason: `the customer record's ${field} is not an integer of at least 1`, field };
}

/** Returns the plan with this current or former name; undefined if the config does not know it. */
export function planOf(name: string, { plans, formerPlans }: LimitPolicy): PlanPolicy | undefined {
  return plans.get(name) ?? plans.get(formerPlans.get(name) ?? '');
}

/** Returns the current name of the plan with this current or former name; undefined if the config does not know it. */
export function planNameOf(name: string, { plans, formerPlans }: Omit<LimitPolicy, 'overrides'>): string | undefined {
  return plans.has(name) ? name : formerPlans.get(name);
}

/** Returns the name and all former names of a plan. */
export function planNamesOf(name: string, { formerPlans }: Pick<LimitPolicy, 'formerPlans'>): string[] {
  return [name, ...[...formerPlans].flatMap(([former, current]) => (current === name ? [former] : []))];
}

/** Returns where a customer's limit is set; without a limit, which setting is missing or invalid. */
export function limitOrigin(customer: CustomerRecord, limit: EffectiveLimit, origins: LimitOrigins): string {
  if (!limit.found) return `customer record: ${limit.field}`;
  const inFile = { override: origins.overrides.get(customer.id), plan: origins.plans.get(customer.plan) };
  switch (limit.source) {
    case 'temporary':
      return 'customer record: temporary_limit';
    case 'customer':
      return 'customer record: requests_per_hour';
    default:
      return inFile[limit.source] ?? 'customer record: plan';
  }
}

/** Returns that of a customer's limit, and of its limit of a day or month. */
export function limitOrigins(
  customer: CustomerRecord,
  limit: EffectiveLimit,
  origins: LimitOrigins & { readonly periods: LimitOrigins },
) {
  const origin = limitOrigin(customer, limit, origins);
  if (!limit.found || limit.period === undefined) return { origin, periodOrigin: undefined };
  const { source } = limit.period;
  const isOwn = source === 'customer';
  const periodOrigin = isOwn
    ? 'customer record: period_requests'
    : limitOrigin(customer, { ...limit, source }, origins.periods);
  return { origin, periodOrigin };
}
