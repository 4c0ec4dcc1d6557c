/** All that a plan says of how much a customer may send, as one decision a request: burst first, then the hour. */
import type { CustomerRecord } from '../store/store.ts';
import type { Terms } from './account.ts';
import type { Admission, Admitted, QuotaMode } from './admission.ts';
import type { BurstLimiter } from './burst.ts';
import type { CustomerUsage } from './highest-usage.ts';
import type { Held, HourlyQuota } from './leased-quota.ts';
import { type EffectiveLimit, effectiveLimit, type LimitPolicy, type PlanPolicy, planNameOf, planOf } from './limit.ts';
import type { RecentUsage } from './recent-usage.ts';
import type { Usage } from './usage.ts';

/** Where the plan has a burst limit: what is left of it. */
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
      /** Whether the plan's shadow limit would have let it pass; undefined without one. */
      readonly shadow: 'allowed' | 'denied' | undefined;
      /** Where the plan has one, and it concerns this customer. */
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
  /** Until {@link CustomerQuota.follow} brings others. */
  readonly limits: LimitPolicy;
  readonly bursts: BurstLimiter;
  readonly hourly: HourlyQuota;
  readonly recentUsage: RecentUsage;
}

export class CustomerQuota {
  readonly #parts: Omit<CustomerQuotaParts, 'limits'>;
  #limits: LimitPolicy;

  constructor({ limits, ...parts }: CustomerQuotaParts) {
    this.#parts = parts;
    this.#limits = limits;
  }

  /** Other limits, from the next decision on: in the middle of a window, and whatever was granted or refused before. */
  follow(limits: LimitPolicy): void {
    this.#limits = limits;
  }

  limitOf(customer: CustomerRecord): EffectiveLimit {
    return effectiveLimit(customer, this.#limits);
  }

  /** The present name of the customer's plan; undefined when the configuration doesn't know it. */
  planNameOf({ plan }: CustomerRecord): string | undefined {
    return planNameOf(plan, this.#limits);
  }

  /** At once where memory knows the answer. Rejects or throws with StoreUnavailableError as {@link HourlyQuota}. */
  decide(customer: CustomerRecord): QuotaDecision | Promise<QuotaDecision> {
    const found = this.limitOf(customer);
    if (!found.found) return { outcome: 'not_configured', reason: found.reason };
    const { requestsPerHour: limit } = found;
    const plan = planOf(customer.plan, this.#limits);
    const burstLimit = plan?.burstPerSecond;
    if (burstLimit === undefined) return this.#decideHour(customer, found, plan, undefined);

    const burst = this.#parts.bursts.take(customer.id, burstLimit);
    if (!burst.allowed) return { outcome: 'burst_exceeded', limit, burstLimit, resetSeconds: burst.resetSeconds };
    const decision = this.#decideHour(customer, found, plan, { limit: burstLimit, remaining: burst.remaining });
    return this.#withBurstCounted(customer.id, decision);
  }

  /** What this instance holds for a customer in memory. */
  held(customer: string): Held {
    return this.#parts.hourly.held(customer);
  }

  /** For a customer that asks about itself: at most 250 ms old. Rejects with StoreUnavailableError. */
  recentUsage(customer: CustomerRecord, requestsPerHour: number): Promise<Usage> {
    return this.#parts.recentUsage.of(customer.id, termsOf(customer, requestsPerHour));
  }

  /** As the store has it now. Rejects with StoreUnavailableError. */
  usage(customer: string, requestsPerHour: number): Promise<Usage> {
    return this.#parts.hourly.usage(customer, requestsPerHour);
  }

  /** As {@link HourlyQuota}. */
  highestUsage(count: number): readonly CustomerUsage[] {
    return this.#parts.hourly.highestUsage(count);
  }

  #decideHour(
    customer: CustomerRecord,
    { requestsPerHour: limit, source }: Extract<EffectiveLimit, { found: true }>,
    plan: PlanPolicy | undefined,
    burst: BurstState | undefined,
  ): QuotaDecision | Promise<QuotaDecision> {
    // The shadow tries out another number for the plan, so it says nothing of customers with a number of their own.
    const shadowLimit = source === 'plan' ? plan?.shadow?.requestsPerHour : undefined;
    const settle = (admission: Admission): QuotaDecision => {
      if (admission.outcome === 'refused') {
        const { mode } = admission;
        return { outcome: 'quota_exceeded', limit, burst, mode, resetSeconds: admission.resetSeconds() };
      }
      const shadow = shadowLimit === undefined ? undefined : judge(limit - admission.remaining, shadowLimit);
      return { outcome: 'admitted', limit, burst, admission, shadow, shadowLimit };
    };
    const admission = this.#parts.hourly.admit(customer.id, termsOf(customer, limit));
    return admission instanceof Promise ? admission.then(settle) : settle(admission);
  }

  /** What went no further than the gateway is no part of a burst at the backend. */
  #withBurstCounted(
    customer: string,
    decision: QuotaDecision | Promise<QuotaDecision>,
  ): QuotaDecision | Promise<QuotaDecision> {
    if (decision instanceof Promise) {
      return decision.then(
        (settled) => this.#withBurstCounted(customer, settled),
        (error) => {
          this.#parts.bursts.untake(customer);
          throw error;
        },
      );
    }
    if (decision.outcome !== 'admitted') this.#parts.bursts.untake(customer);
    return decision;
  }
}

function termsOf({ usageResetAt = '' }: CustomerRecord, limit: number): Terms {
  return { limit, usageResetAt };
}

/** `used`: this request included. Units that other instances hold ahead count as used, so it errs towards denied. */
function judge(used: number, shadowLimit: number): 'allowed' | 'denied' {
  return used > shadowLimit ? 'denied' : 'allowed';
}
