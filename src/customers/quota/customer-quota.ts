/** Applies all limits of a customer to a request in one decision: burst, requests in progress, then the hourly limit. */
import type { Clock } from '../../base/clock.ts';
import { mapAll, type NonEmpty } from '../../base/non-empty.ts';
import { type CustomerRecord, type EnforcedCustomer, isSuspendedAt } from '../../store/record-fields.ts';
import { isPeriod, type Limit, type Limits } from '../../store/windows.ts';
import type { BurstLimiter, BurstTaken } from './burst.ts';
import type { ConcurrencyLimiter } from './concurrency.ts';
import {
  type EffectiveLimit,
  effectiveLimit,
  type FoundLimit,
  type LimitPolicy,
  limitsOf,
  type PlanPolicy,
  planNameOf,
  planOf,
  secondsUntilUnits,
} from './effective-limit.ts';
import type { Admission, Admitted, QuotaMode, QuotaSettings, Usage, Violation } from './hourly-quota.ts';
import type { CeilingOfKey, KeyCeiling } from './key-ceiling.ts';
import type { LeasedQuota } from './leased-quota.ts';
import type { RecentUsage } from './recent-usage.ts';

/** The plan's burst limit, and how many more requests it allows now. */
export interface BurstState {
  readonly limit: number;
  readonly remaining: number;
}

export type QuotaDecision =
  | {
      readonly outcome: 'admitted';
      /** Undefined: the request takes no units, so no limit was asked. */
      readonly limits: Limits | undefined;
      readonly burst: BurstState | undefined;
      readonly admission: Admitted;
      /** Whether the plan's shadow limit would admit the request; undefined without one. */
      readonly shadow: 'allowed' | 'denied' | undefined;
      /** The plan's shadow limit, if it applies to this customer. */
      readonly shadowLimit: number | undefined;
      /** Call it exactly once, when the request has ended. Undefined if the plan does not limit requests in progress. */
      readonly release: (() => void) | undefined;
    }
  | {
      readonly outcome: 'quota_exceeded';
      /** The limits that refuse. */
      readonly violated: NonEmpty<RefusingLimit>;
      /** That the request takes. */
      readonly units: number;
      readonly burst: BurstState | undefined;
      readonly mode: QuotaMode;
    }
  | {
      readonly outcome: 'burst_exceeded';
      readonly limits: Limits;
      readonly burstLimit: number;
      readonly resetSeconds: number;
    }
  /** The request takes more units than the limit ever has. */
  | { readonly outcome: 'cost_exceeds_limit'; readonly units: number; readonly limit: Limit }
  | { readonly outcome: 'too_many_concurrent'; readonly maxConcurrent: number }
  /** For operators: what is missing and where. */
  | { readonly outcome: 'not_configured'; readonly reason: string };

/** `resetSeconds`: until the limit has the units of the request. */
type RefusingLimit = Violation & { readonly resetSeconds: number };

interface CustomerQuotaParts {
  /** The initial limits, until {@link CustomerQuota.applyLimits} replaces them. */
  readonly limits: LimitPolicy;
  readonly bursts: BurstLimiter;
  readonly concurrency: ConcurrencyLimiter;
  readonly hourly: LeasedQuota;
  readonly recentUsage: RecentUsage;
  /** Wall time by which temporary limits and suspensions end. */
  readonly clock: Pick<Clock, 'nowMs'>;
}

const UNREADABLE_CEILING: QuotaDecision = {
  outcome: 'not_configured',
  reason: 'the requests_per_hour or root of the key record is unreadable',
};

const NOTHING_TAKEN = {
  outcome: 'admitted',
  burst: undefined,
  shadow: undefined,
  shadowLimit: undefined,
  release: undefined,
} as const;

/** May begin at any time: it uses nothing that comes back. */
const UNMETERED: Admitted = {
  outcome: 'admitted',
  mode: 'lease',
  remaining: () => 0,
  resetSeconds: () => 1,
  beginDeadlineMs: Number.POSITIVE_INFINITY,
  beginDeadlineWallMs: Number.POSITIVE_INFINITY,
  settle() {},
};

export class CustomerQuota {
  readonly hourly: LeasedQuota;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly #parts: CustomerQuotaParts;
  #limits: LimitPolicy;

  constructor(parts: CustomerQuotaParts) {
    this.hourly = parts.hourly;
    this.clock = parts.clock;
    this.#parts = parts;
    this.#limits = parts.limits;
  }

  /** Applies new limits from the next decision on, even within a window and despite earlier grants and refusals. */
  applyLimits(limits: LimitPolicy): void {
    this.#limits = limits;
  }

  limitOf(customer: CustomerRecord): EffectiveLimit {
    return effectiveLimit(customer, this.#limits, this.clock);
  }

  isSuspended(customer: EnforcedCustomer): boolean {
    return customer.suspended && isSuspendedAt(customer, this.clock.nowMs());
  }

  /** Returns the current name of the customer's plan; undefined if the config does not know it. */
  planNameOf({ plan }: CustomerRecord): string | undefined {
    return planNameOf(plan, this.#limits);
  }

  /**
   * Tells how the hourly quota would decide, by usage at most 250 ms old, and takes nothing. The burst limit is not
   * considered. Rejects with StoreUnavailableError.
   */
  async preview(customer: CustomerRecord, units: number, ceiling: CeilingOfKey = undefined): Promise<QuotaDecision> {
    const found = this.limitOf(customer);
    if (!found.found) return { outcome: 'not_configured', reason: found.reason };
    if (ceiling === 'unreadable') return UNREADABLE_CEILING;
    const settings = this.#settingsOf(customer, found, ceiling);
    const { limits } = settings;
    const exceeded = exceededBy(units, limits);
    if (exceeded) return exceeded;
    if (units === 0) return { ...NOTHING_TAKEN, limits: undefined, admission: UNMETERED };
    const usage = await this.#parts.recentUsage.of(customer.id, settings, units);
    const mode = 'store';
    const states = mapAll(limits, (limit) => stateOf(limit, usage, this.clock.nowMs()));
    const [first, ...others] = states.filter((state) => state.remaining < units && !isOverage(state));
    if (first) return { outcome: 'quota_exceeded', violated: [first, ...others], units, burst: undefined, mode };
    const remaining = (index: number) => states[index]?.remaining ?? 0;
    const resetSeconds = (index: number) => states[index]?.resetSeconds ?? 1;
    return { ...NOTHING_TAKEN, limits, admission: { ...UNMETERED, mode, remaining, resetSeconds } };
  }

  /**
   * Decides one request; without a promise if memory suffices. Fails as {@link LeasedQuota.admit} does.
   * `units`: those of its route. `ceiling`: the limit of its key. `countsConcurrent`: whether the limit of requests in
   * progress applies.
   */
  decide(
    customer: CustomerRecord,
    units = 1,
    ceiling: CeilingOfKey = undefined,
    countsConcurrent = true,
  ): QuotaDecision | Promise<QuotaDecision> {
    const found = this.limitOf(customer);
    if (!found.found) return { outcome: 'not_configured', reason: found.reason };
    if (ceiling === 'unreadable') return UNREADABLE_CEILING;
    const settings = this.#settingsOf(customer, found, ceiling);
    const exceeded = exceededBy(units, settings.limits);
    if (exceeded) return exceeded;
    const plan = planOf(customer.plan, this.#limits);
    const burstLimit = plan?.burstPerSecond;
    const maxConcurrent = countsConcurrent ? plan?.maxConcurrent : undefined;
    if (burstLimit === undefined && maxConcurrent === undefined)
      return this.#decideQuota(customer, units, found, settings, plan);

    const { bursts, concurrency } = this.#parts;
    let burst: BurstState | undefined;
    let taken: BurstTaken | undefined;
    if (burstLimit !== undefined) {
      const decision = bursts.take(customer.id, burstLimit);
      if (!decision.allowed) {
        const hourSeconds = this.hourly.secondsWithoutUnits(customer.id, settings, units);
        const resetSeconds = Math.max(decision.resetSeconds, hourSeconds);
        return { outcome: 'burst_exceeded', limits: settings.limits, burstLimit, resetSeconds };
      }
      taken = decision;
      burst = { limit: burstLimit, remaining: decision.remaining };
    }
    let release: (() => void) | undefined;
    if (maxConcurrent !== undefined) {
      release = concurrency.take(customer.id, maxConcurrent);
      if (release === undefined) {
        if (taken) bursts.uncount(taken);
        return { outcome: 'too_many_concurrent', maxConcurrent };
      }
    }
    // A request that is not admitted does not reach the upstream, so neither limit counts it.
    const settle = (decision: QuotaDecision | undefined) => {
      if (decision?.outcome === 'admitted') return;
      if (taken) bursts.uncount(taken);
      release?.();
    };
    let deciding: QuotaDecision | Promise<QuotaDecision> | undefined;
    try {
      deciding = this.#decideQuota(customer, units, found, settings, plan, burst, release);
    } finally {
      if (deciding instanceof Promise) deciding.then(settle, () => settle(undefined));
      else settle(deciding);
    }
    return deciding;
  }

  /** Returns usage at most 250 ms old, for customers that query their own. Rejects with StoreUnavailableError. */
  recentUsage(customer: CustomerRecord, found: FoundLimit, ceiling: CeilingOfKey): Promise<Usage> {
    const readable = ceiling === 'unreadable' ? undefined : ceiling;
    return this.#parts.recentUsage.of(customer.id, this.#settingsOf(customer, found, readable));
  }

  #settingsOf(customer: CustomerRecord, found: FoundLimit, ceiling: KeyCeiling | undefined): QuotaSettings {
    const { createdAt, usageResetAt = createdAt ?? '', periodResetAt } = customer;
    const plan = found.period && this.planNameOf(customer);
    return { limits: limitsOf(found, customer, plan, ceiling?.limit), usageResetAt, periodResetAt, createdAt, ceiling };
  }

  #decideQuota(
    customer: CustomerRecord,
    units: number,
    found: FoundLimit,
    settings: QuotaSettings,
    plan: PlanPolicy | undefined,
    burst?: BurstState,
    release?: () => void,
  ): QuotaDecision | Promise<QuotaDecision> {
    if (units === 0) return { ...NOTHING_TAKEN, limits: undefined, admission: UNMETERED, burst, release };
    // The shadow limit tries out another number for the plan, so customers with their own limit are exempt.
    const shadowLimit = found.source === 'plan' ? plan?.shadow?.requestsPerHour : undefined;
    const admission = this.hourly.admit(customer.id, settings, units);
    const { limits } = settings;
    return admission instanceof Promise
      ? admission.then(decisionOf.bind(undefined, this.clock, units, found, limits, shadowLimit, burst, release))
      : decisionOf(this.clock, units, found, limits, shadowLimit, burst, release, admission);
  }
}

function decisionOf(
  clock: Pick<Clock, 'nowMs'>,
  units: number,
  found: FoundLimit,
  limits: Limits,
  shadowLimit: number | undefined,
  burst: BurstState | undefined,
  release: (() => void) | undefined,
  admission: Admission,
): QuotaDecision {
  if (admission.outcome === 'refused') {
    const { mode } = admission;
    const violated = mapAll(admission.violated, (limit, index) => {
      const seconds = admission.resetSeconds(index);
      const isHour = limit.policy === 'hourly';
      return { ...limit, resetSeconds: isHour ? secondsUntilUnits(seconds, limit.used, found, clock, units) : seconds };
    });
    return { outcome: 'quota_exceeded', violated, units, burst, mode };
  }
  // Includes this request, and units leased to other instances: the shadow decision errs towards denied.
  const used = limits[0].amount - admission.remaining(0);
  const shadow = shadowLimit === undefined ? undefined : used > shadowLimit ? 'denied' : 'allowed';
  return { outcome: 'admitted', limits, burst, admission, shadow, shadowLimit, release };
}

/** Returns the refusal of a request that takes more units than a limit ever has; undefined if none is so low. */
function exceededBy(units: number, limits: Limits): QuotaDecision | undefined {
  for (const limit of limits) {
    if (limit.amount < units && !isOverage(limit)) return { outcome: 'cost_exceeds_limit', units, limit };
  }
  return undefined;
}

/** Returns whether requests beyond the limit are served. */
function isOverage(limit: Limit): boolean {
  return isPeriod(limit) && limit.beyond === 'allow';
}

/** Returns what a usage says of a limit. */
function stateOf(limit: Limit, usage: Usage, nowMs: number) {
  const { period } = usage;
  if (!isPeriod(limit) || period === undefined) {
    const { remaining, resetSeconds } = limit.policy === 'key' && usage.key ? usage.key : usage;
    const ofCustomer = limit.policy === 'key' ? usage.remaining : undefined;
    return { ...limit, remaining, ofCustomer, resetSeconds: Math.max(1, resetSeconds) };
  }
  const endsAtMs = Date.parse(period.endsAt);
  const seconds = Math.max(1, Math.ceil((endsAtMs - nowMs) / 1000));
  return { ...limit, remaining: period.remaining, endsAtMs, resetSeconds: seconds + (period.remaining > 0 ? 0 : 1) };
}
