/** Applies all limits of a customer to a request in one decision: first the burst limit, then the hourly limit. */
import type { CustomerRecord } from '../store/record-fields.ts';
import type { BurstLimiter } from './burst.ts';
import {
  type EffectiveLimit,
  effectiveLimit,
  type LimitPolicy,
  type PlanPolicy,
  planNameOf,
  planOf,
} from './effective-limit.ts';
import type { Admission, Admitted, HourlyQuota, QuotaMode, QuotaSettings, Usage } from './hourly-quota.ts';
import type { RecentUsage } from './recent-usage.ts';

/** The plan's burst limit, and how many more requests it allows now. */
export interface BurstState {
  readonly limit: number;
  readonly remaining: number;
}

export type QuotaDecision =
  | {
      readonly outcome: 'admitted';
      readonly limit: number;
      readonly burst: BurstState | undefined;
      readonly admission: Admitted;
      /** Whether the plan's shadow limit would admit the request; undefined without one. */
      readonly shadow: 'allowed' | 'denied' | undefined;
      /** The plan's shadow limit, if it applies to this customer. */
      readonly shadowLimit: number | undefined;
    }
  | {
      readonly outcome: 'quota_exceeded';
      readonly limit: number;
      readonly burst: BurstState | undefined;
      readonly mode: QuotaMode;
      readonly resetSeconds: number;
    }
  | {
      readonly outcome: 'burst_exceeded';
      readonly limit: number;
      readonly burstLimit: number;
      readonly resetSeconds: number;
    }
  /** For operators: what is missing and where. */
  | { readonly outcome: 'not_configured'; readonly reason: string };

export interface CustomerQuotaParts {
  /** The initial limits, until {@link CustomerQuota.applyLimits} replaces them. */
  readonly limits: LimitPolicy;
  readonly bursts: BurstLimiter;
  readonly hourly: HourlyQuota;
  readonly recentUsage: RecentUsage;
}

export class CustomerQuota {
  readonly hourly: HourlyQuota;
  readonly #bursts: BurstLimiter;
  readonly #recentUsage: RecentUsage;
  #limits: LimitPolicy;

  constructor({ limits, bursts, hourly, recentUsage }: CustomerQuotaParts) {
    this.hourly = hourly;
    this.#bursts = bursts;
    this.#recentUsage = recentUsage;
    this.#limits = limits;
  }

  /** Applies new limits from the next decision on, even within a window and despite earlier grants and refusals. */
  applyLimits(limits: LimitPolicy): void {
    this.#limits = limits;
  }

  limitOf(customer: CustomerRecord): EffectiveLimit {
    return effectiveLimit(customer, this.#limits);
  }

  /** Returns the current name of the customer's plan; undefined if the config does not know it. */
  planNameOf({ plan }: CustomerRecord): string | undefined {
    return planNameOf(plan, this.#limits);
  }

  /** Decides one request; without a promise if memory suffices. Fails as {@link HourlyQuota.admit} does. */
  decide(customer: CustomerRecord): QuotaDecision | Promise<QuotaDecision> {
    const found = this.limitOf(customer);
    if (!found.found) return { outcome: 'not_configured', reason: found.reason };
    const { requestsPerHour: limit } = found;
    const plan = planOf(customer.plan, this.#limits);
    const burstLimit = plan?.burstPerSecond;
    if (burstLimit === undefined) return this.#decideHour(customer, found, plan, undefined);

    const burst = this.#bursts.take(customer.id, burstLimit);
    if (!burst.allowed) return { outcome: 'burst_exceeded', limit, burstLimit, resetSeconds: burst.resetSeconds };
    const decision = this.#decideHour(customer, found, plan, { limit: burstLimit, remaining: burst.remaining });
    return this.#withBurstCounted(customer.id, decision);
  }

  /** Returns usage at most 250 ms old, for customers that query their own. Rejects with StoreUnavailableError. */
  recentUsage(customer: CustomerRecord, requestsPerHour: number): Promise<Usage> {
    return this.#recentUsage.of(customer.id, settingsOf(customer, requestsPerHour));
  }

  #decideHour(
    customer: CustomerRecord,
    { requestsPerHour: limit, source }: Extract<EffectiveLimit, { found: true }>,
    plan: PlanPolicy | undefined,
    burst: BurstState | undefined,
  ): QuotaDecision | Promise<QuotaDecision> {
    // The shadow limit tries out another number for the plan, so customers with their own limit are exempt.
    const shadowLimit = source === 'plan' ? plan?.shadow?.requestsPerHour : undefined;
    const settle = (admission: Admission): QuotaDecision => {
      if (admission.outcome === 'refused') {
        const { mode } = admission;
        return { outcome: 'quota_exceeded', limit, burst, mode, resetSeconds: admission.resetSeconds() };
      }
      const shadow = shadowLimit === undefined ? undefined : judge(limit - admission.remaining, shadowLimit);
      return { outcome: 'admitted', limit, burst, admission, shadow, shadowLimit };
    };
    const admission = this.hourly.admit(customer.id, settingsOf(customer, limit));
    return admission instanceof Promise ? admission.then(settle) : settle(admission);
  }

  /** Removes a request that was not admitted from the burst count: it does not reach the upstream. */
  #withBurstCounted(
    customer: string,
    decision: QuotaDecision | Promise<QuotaDecision>,
  ): QuotaDecision | Promise<QuotaDecision> {
    if (decision instanceof Promise) {
      return decision.then(
        (settled) => this.#withBurstCounted(customer, settled),
        (error) => {
          this.#bursts.uncount(customer);
          throw error;
        },
      );
    }
    if (decision.outcome !== 'admitted') this.#bursts.uncount(customer);
    return decision;
  }
}

function settingsOf({ usageResetAt = '' }: CustomerRecord, limit: number): QuotaSettings {
  return { limit, usageResetAt };
}

/** `used` includes this request, and units leased to other instances: the result errs towards denied. */
function judge(used: number, shadowLimit: number): 'allowed' | 'denied' {
  return used > shadowLimit ? 'denied' : 'allowed';
}
