import type { CustomerRecord } from '../store/store.ts';

/** What the configuration says about limits; the record of the customer says the rest. */
export interface PlanPolicy {
  readonly requestsPerHour: number | 'custom';
  /** Within any second, on each instance. */
  readonly burstPerSecond?: number;
  /** A limit that is reported and never enforced. */
  readonly shadow?: { readonly requestsPerHour: number };
}

export interface LimitPolicy {
  readonly plans: ReadonlyMap<string, PlanPolicy>;
  /** Names that plans had before, each with the name of the plan that took its place: always one of `plans`. */
  readonly formerPlans: ReadonlyMap<string, string>;
  readonly overrides: ReadonlyMap<string, { readonly requestsPerHour: number }>;
}

export type EffectiveLimit =
  | { readonly found: true; readonly requestsPerHour: number; readonly source: 'override' | 'customer' | 'plan' }
  | { readonly found: false /** For operators: what is missing and where. */; readonly reason: string };

/** Where the limits of a policy stand, by plan (former names too) and by customer, such as `config/gateway.yaml:41`. */
export interface LimitOrigins {
  readonly plans: ReadonlyMap<string, string>;
  readonly overrides: ReadonlyMap<string, string>;
}

/**
 * The limit that holds for a customer: the configuration's override, else the customer's own number (on any plan),
 * else the plan's. A plan that the configuration doesn't know gives none, whatever else is set: nobody has said what
 * such a customer may do.
 */
export function effectiveLimit(customer: CustomerRecord, policy: LimitPolicy): EffectiveLimit {
  const plan = planOf(customer.plan, policy);
  if (plan === undefined) return { found: false, reason: `the configuration has no plan "${customer.plan}"` };
  const override = policy.overrides.get(customer.id);
  if (override) return { found: true, requestsPerHour: override.requestsPerHour, source: 'override' };
  const own = customer.requestsPerHour;
  if (own === 'invalid') {
    return { found: false, reason: "the customer record's requests_per_hour is not an integer of at least 1" };
  }
  if (own !== undefined) return { found: true, requestsPerHour: own, source: 'customer' };
  if (plan.requestsPerHour === 'custom') {
    return { found: false, reason: `plan "${customer.plan}" is custom and the customer has no requests_per_hour` };
  }
  return { found: true, requestsPerHour: plan.requestsPerHour, source: 'plan' };
}

/** The plan that a record names, by its present name or a former one; undefined when the configuration knows neither. */
export function planOf(name: string, { plans, formerPlans }: LimitPolicy): PlanPolicy | undefined {
  return plans.get(name) ?? plans.get(formerPlans.get(name) ?? '');
}

/** The present name of the plan that a record names; undefined as {@link planOf}. */
export function planNameOf(name: string, { plans, formerPlans }: Omit<LimitPolicy, 'overrides'>): string | undefined {
  return plans.has(name) ? name : formerPlans.get(name);
}

/** Where the limit that holds for a customer was set; where there is none, what would have to say it. */
export function limitOrigin(customer: CustomerRecord, limit: EffectiveLimit, origins: LimitOrigins): string {
  const plan = origins.plans.get(customer.plan);
  if (plan === undefined) return 'customer record: plan';
  if (limit.found && limit.source === 'override') return origins.overrides.get(customer.id) ?? plan;
  return limit.found && limit.source === 'plan' ? plan : 'customer record: requests_per_hour';
}
