import { isUnreadable, isValidKey } from '../../customers/keys/key-state.ts';
import { type EffectiveLimit, limitsOf, secondsUntilUnits } from '../../customers/quota/effective-limit.ts';
import type { Usage } from '../../customers/quota/hourly-quota.ts';
import type { RecentRefusal } from '../../observability/recent-refusals.ts';
import { type PeriodAnchor, periodIn } from '../../store/windows.ts';
import { isoTime } from '../frame/document-of.ts';
import { noSuchCustomer, possibleCustomerId, Refusal, requireCustomer } from '../frame/refusal.ts';
import type { AdminContext, Handlers } from './dependencies.ts';
import { limitMembers, suspensionMembers, unlessUnavailable, withCustomerNames } from './documents.ts';
import { latestRefusals, refusalsOf } from './recent-refusals.ts';

/** Keys of a customer that are read at once. */
const KEYS_AT_ONCE = 1000;

/** Shows and resets usage, and explains a customer's limit, or why there is none. */
export function usageHandlers(context: AdminContext) {
  const { records, currentPlan, effectiveLimit, limitOrigins, usage, leaseState, refusals, clock, limitClock } =
    context;

  return {
    async 'GET /admin/v1/usage/refused'({ query: { limit } }) {
      const latest = await latestRefusals(context, limit);
      return withCustomerNames(records, latest.map(withIsoTimes));
    },
    async 'GET /admin/v1/customers/:id/usage'({ id }) {
      const customer = await requireCustomer(records, id);
      const limit = effectiveLimit(customer);
      if (!limit.found) throw new Refusal('unprocessable', limit.reason);
      return usage(customer.id, limitsOf(limit, customer, currentPlan(customer.plan)));
    },
    async 'DELETE /admin/v1/customers/:id/usage'({ id, query: { window } }, res) {
      const customer = possibleCustomerId(id);
      const resetAt = isoTime(clock.nowMs());
      const period = window === 'period' ? await requirePeriod(customer) : undefined;
      const reset = period ? records.resetPeriod(customer, resetAt, period) : records.resetUsage(customer, resetAt);
      if ((await reset) === undefined) noSuchCustomer();
      await context.recordChange(res, { action: 'usage.reset', customer, ...(period && { details: { window } }) });
    },
    async 'GET /admin/v1/customers/:id/explain'({ id }) {
      const customer = await requireCustomer(records, id);
      const limit = effectiveLimit(customer);
      const suspension = suspensionMembers(customer, limitClock);
      const limits = limit.found ? limitsOf(limit, customer, currentPlan(customer.plan)) : undefined;
      const used = limits && (await unlessUnavailable(() => usage(customer.id, limits)));
      const [{ leases, refusedForMs }, refused] = await Promise.all([leaseState(customer.id), refusals(customer.id)]);
      return {
        customer: customer.id,
        ...verdictOf(suspension, limit, used, await keysOf(customer.id), context),
        plan: customer.plan,
        currentPlan: currentPlan(customer.plan),
        ...suspension,
        ...limitMembers(limit),
        ...limitOrigins(customer, limit),
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

  async function requirePeriod(id: string): Promise<PeriodAnchor> {
    const customer = await requireCustomer(records, id);
    const limit = effectiveLimit(customer);
    const period = limit.found ? periodIn(limitsOf(limit, customer)) : undefined;
    if (period) return period;
    throw new Refusal('unprocessable', limit.found ? 'The plan of the customer has no period.' : limit.reason);
  }

  /** Returns what the best of the customer's valid keys allows. */
  async function keysOf(customer: string): Promise<KeysOf> {
    let best: KeysOf = 'none';
    let cursor: string | undefined;
    do {
      const { items, next } = await records.listCustomerKeys(customer, cursor, KEYS_AT_ONCE);
      for (const key of items.filter((key) => isValidKey(key, clock.nowMs()))) {
        if (isUnreadable(key)) best = best === 'none' ? 'unreadable' : best;
        else if (key.scopes ?? key.allowedAddresses) best = 'restricted';
        else return 'unrestricted';
      }
      cursor = next;
    } while (cursor !== undefined);
    return best;
  }
}

type KeysOf = 'none' | 'unreadable' | 'restricted' | 'unrestricted';

function verdictOf(
  { suspended, suspendedUntil }: ReturnType<typeof suspensionMembers>,
  limit: EffectiveLimit,
  used: Usage | undefined,
  keys: KeysOf,
  { limitClock: clock, routes }: AdminContext,
) {
  const refused = (why: string) => ({ admitted: false, verdict: `Its requests are refused now: ${why}.` });
  if (keys === 'none') return refused('it has no valid key');
  if (keys === 'unreadable') return refused('the scopes or allowed addresses of its valid keys are unreadable');
  if (suspended) return refused(`the customer is suspended${suspendedUntil ? ` until ${suspendedUntil}` : ''}`);
  if (!limit.found) return refused('it has no limit');
  if (used?.period?.remaining === 0 && used.period.beyond === 'refuse') {
    return refused(`the limit of this ${used.period.per} is used up; the next one begins at ${used.period.endsAt}`);
  }
  if (used?.remaining === 0) {
    const seconds = secondsUntilUnits(used.resetSeconds, used.used, limit, clock);
    const wait = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
    return refused(`the hourly limit is used up; more in ${wait}`);
  }
  const extent = keys === 'restricted' ? ', as far as the scopes and allowed addresses of its keys permit' : '';
  const left = used?.remaining ?? Number.POSITIVE_INFINITY;
  const except = routes.some(({ units }) => units > left) ? `, except those that take more than ${left} units` : '';
  return { admitted: true, verdict: `Its requests are admitted now${except}${extent}.` };
}

function withIsoTimes({ firstAtMs, lastAtMs, ...refusal }: RecentRefusal) {
  return { ...refusal, firstAt: isoTime(firstAtMs), lastAt: isoTime(lastAtMs) };
}

/** Rounds to tenths. */
function inSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
