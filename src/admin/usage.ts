import { isValidKey } from '../keys/key-state.ts';
import type { RecentRefusal } from '../observability/recent-refusals.ts';
import type { EffectiveLimit } from '../quota/effective-limit.ts';
import type { Usage } from '../quota/hourly-quota.ts';
import type { CustomerRecord } from '../store/record-fields.ts';
import type { AdminContext } from './dependencies.ts';
import { isoTime } from './document-of.ts';
import { limitMembers, withCustomerNames } from './documents.ts';
import { latestRefusals, refusalsOf } from './recent-refusals.ts';
import { noSuchCustomer, possibleCustomerId, Refusal, requireCustomer } from './refusal.ts';
import type { Handlers } from './routes.ts';
import { unlessUnavailable } from './unless-unavailable.ts';

/** Keys of a customer that are read at once. */
const KEYS_AT_ONCE = 1000;

/** Shows and resets usage, and explains a customer's limit, or why there is none. */
export function usageHandlers(context: AdminContext) {
  const { records, currentPlan, effectiveLimit, limitOrigin, usage, leaseState, refusals, clock } = context;

  return {
    async 'GET /admin/v1/usage/refused'({ query: { limit } }) {
      const latest = await latestRefusals(context, limit);
      return withCustomerNames(records, latest.map(withIsoTimes));
    },
    async 'GET /admin/v1/customers/:id/usage'({ id }) {
      const customer = await requireCustomer(records, id);
      const limit = effectiveLimit(customer);
      if (!limit.found) throw new Refusal('unprocessable', limit.reason);
      return usage(customer.id, limit.requestsPerHour);
    },
    async 'DELETE /admin/v1/customers/:id/usage'({ id }, res) {
      const customer = possibleCustomerId(id);
      const resetAt = isoTime(clock.nowMs());
      if ((await records.resetUsage(customer, resetAt)) === undefined) noSuchCustomer();
      await context.recordChange(res, { action: 'usage.reset', customer });
    },
    async 'GET /admin/v1/customers/:id/explain'({ id }) {
      const customer = await requireCustomer(records, id);
      const limit = effectiveLimit(customer);
      const used = limit.found ? await unlessUnavailable(() => usage(customer.id, limit.requestsPerHour)) : undefined;
      const [{ leases, refusedForMs }, refused] = await Promise.all([leaseState(customer.id), refusals(customer.id)]);
      return {
        customer: customer.id,
        ...verdictOf(customer, limit, used, await hasValidKey(customer.id)),
        plan: customer.plan,
        currentPlan: currentPlan(customer.plan),
        suspended: customer.suspended,
        ...limitMembers(limit),
        origin: limitOrigin(customer, limit),
        usage: used,
        instance: {
          leases: leases.map(({ units, endsInMs }) => ({ units, endsInSeconds: inSeconds(endsInMs) })),
          refusesForSeconds: refusedForMs === undefined ? null : inSeconds(refusedForMs),
          refusals: refused.map(withIsoTimes),
        },
        refusals: (await refusalsOf(context, customer.id)).map(withIsoTimes),
      };
    },
  } satisfies Partial<Handlers>;

  async function hasValidKey(customer: string): Promise<boolean> {
    let cursor: string | undefined;
    do {
      const { items, next } = await records.listCustomerKeys(customer, cursor, KEYS_AT_ONCE);
      if (items.some((key) => isValidKey(key, clock.nowMs()))) return true;
      cursor = next;
    } while (cursor !== undefined);
    return false;
  }
}

function verdictOf({ suspended }: CustomerRecord, limit: EffectiveLimit, used: Usage | undefined, hasKey: boolean) {
  const refused = (why: string) => ({ admitted: false, verdict: `Its requests are refused now: ${why}.` });
  if (!hasKey) return refused('it has no valid key');
  if (suspended) return refused('the customer is suspended');
  if (!limit.found) return refused('it has no limit');
  if (used?.remaining === 0) return refused(`the hourly limit is used up; more in ${used.resetSeconds} s`);
  return { admitted: true, verdict: 'Its requests are admitted now.' };
}

function withIsoTimes({ firstAtMs, lastAtMs, ...refusal }: RecentRefusal) {
  return { ...refusal, firstAt: isoTime(firstAtMs), lastAt: isoTime(lastAtMs) };
}

/** Rounds to tenths. */
function inSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
