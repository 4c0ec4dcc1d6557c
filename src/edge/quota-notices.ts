/**
 * Logs for operators that a customer is near or above a limit: one line per customer, level (80 %, 95 %, shadow limit)
 * and hour on each instance. With more than {@link CUSTOMERS} such customers, lines may repeat early. Called only for
 * requests near or above a limit, so that all others cost one comparison.
 */
import type { Clock } from '../base/clock.ts';
import { Throttle } from '../base/throttle.ts';
import type { Logger } from '../observability/logger.ts';
import type { QuotaDecision } from '../quota/customer-quota.ts';
import type { Exchange } from './exchange.ts';

export type AdmittedDecision = Extract<QuotaDecision, { outcome: 'admitted' }>;

const HOUR_MS = 3_600_000;
const CUSTOMERS = 10_000;

/** Returns whether 80 % of the limit is used, this request included. False without the store: usage is unknown then. */
export function isNear({ admission, limit }: AdmittedDecision): boolean {
  return 5 * admission.remaining <= limit && admission.mode !== 'local';
}

/** Returns whether half of the limit is used, this request included. False without the store. */
export function isHalfUsed({ admission, limit }: AdmittedDecision): boolean {
  return 2 * admission.remaining <= limit && admission.mode !== 'local';
}

export function createQuotaNotices(logger: Logger, clock: Clock) {
  const at80 = new Throttle(clock, HOUR_MS, CUSTOMERS);
  const at95 = new Throttle(clock, HOUR_MS, CUSTOMERS);
  const shadows = new Throttle(clock, HOUR_MS, CUSTOMERS);

  function logMembers({ customer, plan }: Exchange, { admission, limit }: AdmittedDecision) {
    return { customer, plan, limit, used: limit - admission.remaining };
  }

  return {
    /** Logs that 80 % or 95 % is used. Call it only for requests that pass {@link isNear}. */
    near(exchange: Exchange, decision: AdmittedDecision): void {
      const { customer = '' } = exchange;
      if (20 * decision.admission.remaining <= decision.limit) {
        if (!at95.isDue(customer)) return;
        // Usage that falls below 95 % within the hour must not log the lower level.
        at80.isDue(customer);
        logger.warn({ ...logMembers(exchange, decision), percent: 95 }, 'a customer has used 95 % of its hourly quota');
      } else if (at80.isDue(customer)) {
        logger.warn({ ...logMembers(exchange, decision), percent: 80 }, 'a customer has used 80 % of its hourly quota');
      }
    },
    /** Logs that the plan's shadow limit, which is not enforced, would have refused the request. */
    shadowDenied(exchange: Exchange, decision: AdmittedDecision): void {
      const { customer = '' } = exchange;
      if (!shadows.isDue(customer)) return;
      const facts = { ...logMembers(exchange, decision), shadow_limit: decision.shadowLimit };
      logger.info(facts, "a customer is above its plan's shadow limit, which would refuse it from here on");
    },
  };
}
