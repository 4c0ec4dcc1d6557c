import { isUnreadable, isValidKey } from '../../customers/keys/key-state.ts';
import { type EffectiveLimit, limitsOf, secondsUntilUnits } from '../../customers/quota/effective-limit.ts';
import type { KeyUsage, Usage } from '../../customers/quota/hourly-quota.ts';
import { ceilingOf } from '../../customers/quota/key-ceiling.ts';
import type { RecentRefusal } from '../../observability/recent-refusals.ts';
import type { KeyRecord } from '../../store/record-fields.ts';
import { type PeriodAnchor, periodIn } from '../../store/windows.ts';
import { isoTime } from '../frame/document-of.ts';
import { noSuchCustomer, possibleCustomerId, Refusal, requireCustomer } from '../frame/refusal.ts';
import type { AdminContext, Handlers } from './dependencies.ts';
import { limitMembers, suspensionMembers, unlessUnavailable, usedOfKeys, withCustomerNames } from './documents.ts';
import { usageOfKey } from './key-usage.ts';
import { latestRefusals, refusalsOf } from './recent-refusals.ts';

/** Keys of a customer that are read at once. */
const KEYS_AT_ONCE = 1000;
/** Keys that are listed as refusing. Each costs a store call. */
const MAX_REFUSING = 20;

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
      const keys = await keysOf(customer.id);
      const [{ leases, refusedForMs }, refused] = await Promise.all([leaseState(customer.id), refusals(customer.id)]);
      return {
        customer: customer.id,
        ...verdictOf(suspension, limit, used, keys, context),
        plan: customer.plan,
        currentPlan: currentPlan(customer.plan),
        ...suspension,
        ...limitMembers(limit),
        ...limitOrigins(customer, limit),
        refusingKeys: keys.refusing,
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

  /** Returns what the best of the customer's valid keys allows, and those that refuse by their own limit. */
  async function keysOf(customer: string): Promise<KeysOf> {
    let best: Extent = 'none';
    const refusing: RefusingKey[] = [];
    let cursor: string | undefined;
    do {
      const { items, next } = await records.listCustomerKeys(customer, cursor, KEYS_AT_ONCE);
      const valid = items.filter((key) => isValidKey(key, clock.nowMs()));
      const used = await usedOfKeys(context.usages, valid);
      for (const [at, key] of valid.entries()) {
        const refusal = refusing.length < MAX_REFUSING ? await refusalOf(key, used[at]) : undefined;
        if (refusal) refusing.push(refusal);
        const extent = refusal?.limit ? 'used_up' : extentOf(key);
        if (EXTENTS.indexOf(extent) > EXTENTS.indexOf(best)) best = extent;
      }
      cursor = next;
    } while (cursor !== undefined && best !== 'unrestricted');
    return { best, refusing };
  }

  /** `used`: of the last hour, with units of open leases that no request may use. */
  async function refusalOf(key: KeyRecord, used: number | undefined): Promise<RefusingKey | undefined> {
    const ceiling = ceilingOf(key);
    if (ceiling === 'unreadable') return { keyId: key.id };
    if (ceiling === undefined || used === undefined || used < ceiling.limit.amount) return undefined;
    const usage = await unlessUnavailable(() => usageOfKey(context, key, ceiling));
    return usage?.remaining === 0 ? { keyId: key.id, ...usage } : undefined;
  }
}

/** What a key allows, worst first. */
const EXTENTS = ['none', 'unreadable', 'used_up', 'restricted', 'unrestricted'] as const;
type Extent = (typeof EXTENTS)[number];

/** Without a usage if its limit is unreadable. */
type RefusingKey = { readonly keyId: string } & Partial<KeyUsage>;

interface KeysOf {
  readonly best: Extent;
  readonly refusing: readonly RefusingKey[];
}

function extentOf(key: KeyRecord): Extent {
  if (isUnreadable(key)) return 'unreadable';
  return (key.scopes ?? key.allowedAddresses) ? 'restricted' : 'unrestricted';
}

function verdictOf(
  { suspended, suspendedUntil }: ReturnType<typeof suspensionMembers>,
  limit: EffectiveLimit,
  used: Usage | undefined,
  { best: keys, refusing }: KeysOf,
  { limitClock: clock, routes }: AdminContext,
) {
  const refused = (why: string) => ({ admitted: false, verdict: `Its requests are refused now: ${why}.` });
  if (keys === 'none') return refused('it has no valid key');
  if (keys === 'unreadable') return refused('the scopes, allowed addresses or limits of its valid keys are unreadable');
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
  if (keys === 'used_up') return refused('the own limits of its valid keys are used up');
  const byKeys = refusing.length > 0 ? ', except with keys whose own limits are used up or unreadable' : '';
  const extent = keys === 'restricted' ? ', as far as the scopes and allowed addresses of its keys permit' : '';
  const left = used?.remaining ?? Number.POSITIVE_INFINITY;
  const except = routes.some(({ units }) => units > left) ? `, except those that take more than ${left} units` : '';
  return { admitted: true, verdict: `Its requests are admitted now${byKeys}${except}${extent}.` };
}

function withIsoTimes({ firstAtMs, lastAtMs, ...refusal }: RecentRefusal) {
  return { ...refusal, firstAt: isoTime(firstAtMs), lastAt: isoTime(lastAtMs) };
}

/** Rounds to tenths. */
function inSeconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
