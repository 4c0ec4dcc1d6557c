/** What several documents of the admin API are made of. See document-of.ts for the conversion. */
import type { Clock } from '../../base/clock.ts';
import { keyState } from '../../customers/keys/key-state.ts';
import { type EffectiveLimit, limitsOf } from '../../customers/quota/effective-limit.ts';
import { type PeriodUsage, periodUsage } from '../../customers/quota/hourly-quota.ts';
import { ceilingOf } from '../../customers/quota/key-ceiling.ts';
import { isCustomerId } from '../../formats/ids.ts';
import { StoreUnavailableError } from '../../store/errors.ts';
import { policyOf } from '../../store/period-counts.ts';
import { type CustomerRecord, isSuspendedAt, type KeyRecord } from '../../store/record-fields.ts';
import type { Page, RecordStore } from '../../store/records.ts';
import { periodIn } from '../../store/windows.ts';
import { isoTime } from '../frame/document-of.ts';
import type { AdminDependencies } from './dependencies.ts';

/** `limitProblem` says why there is no limit. */
export function limitMembers(limit: EffectiveLimit) {
  if (!limit.found) return { limit: null, limitSource: null, limitProblem: limit.reason, period: null };
  const { requestsPerHour, source, until, period } = limit;
  const temporary = { limitUntil: isoTime(until?.atMs), limitThen: until?.then };
  const ofPeriod = period && { ...period, limit: period.requests, limitSource: period.source };
  return { limit: requestsPerHour, limitSource: source, limitProblem: null, ...temporary, period: ofPeriod };
}

/** A suspension that has ended is none. */
export function suspensionMembers(customer: CustomerRecord, clock: Pick<Clock, 'nowMs'>) {
  const suspended = isSuspendedAt(customer, clock.nowMs());
  return { suspended, suspendedUntil: suspended ? isoTime(customer.suspendedUntilMs) : undefined };
}

/**
 * Resolves to the usage of these customers, in their order. Usages of the hour below `fromPercent` of the limit may be
 * inexact. `percent` is rounded down, so 100 means that the limit is used up. `nearest`: the limit with the highest
 * percentage, undefined without a limit.
 */
export async function customerUsages(customers: readonly CustomerRecord[], context: UsageContext, fromPercent = 0) {
  const limits = customers.map((customer) => {
    const limit = context.effectiveLimit(customer);
    return limit.found ? limitsOf(limit, customer) : undefined;
  });
  const windows = customers.map(({ id: customer }, at) => {
    return { customer, from: Math.ceil(((limits[at]?.[0].amount ?? 0) * fromPercent) / 100) };
  });
  const used = await context.usages.usedOf(windows);
  const withPeriods = customers.flatMap(({ id: customer }, at) => {
    const period = limits[at] && periodIn(limits[at]);
    return period ? [{ customer, period }] : [];
  });
  const counts = await context.usages.presentPeriodsOf(withPeriods);
  const periods = new Map(
    withPeriods.map(({ customer, period }, at) => [customer, counts[at] && periodUsage(period, counts[at], 0)]),
  );
  return customers.map((customer, at) => customerUsage(customer, used[at] ?? 0, periods.get(customer.id), context));
}

type UsageContext = Pick<AdminDependencies, 'effectiveLimit' | 'currentPlan' | 'limitClock' | 'usages'>;

function customerUsage(
  customer: CustomerRecord,
  used: number,
  period: PeriodUsage | undefined,
  { effectiveLimit, currentPlan, limitClock }: UsageContext,
) {
  const { id, name, plan } = customer;
  const { limit, limitSource } = limitMembers(effectiveLimit(customer));
  const hour = limit === null ? undefined : { window: 'hourly' as const, ...shareOf(used, limit) };
  const ofPeriod = period && { window: policyOf(period.per), ...shareOf(period.used, period.limit) };
  return {
    customer: id,
    customerName: name,
    plan,
    currentPlan: currentPlan(plan),
    suspended: isSuspendedAt(customer, limitClock.nowMs()),
    limit,
    limitSource,
    used,
    percent: hour?.percent,
    period,
    nearest: ofPeriod && hour && ofPeriod.percent > hour.percent ? ofPeriod : hour,
  };
}

function shareOf(used: number, limit: number) {
  return { limit, used, percent: Math.floor((100 * used) / limit) };
}

/** `lastUsedMs` and `nowMs`: wall times in ms. `used`: see {@link usedOfKeys}. */
export function keyMembers(
  record: KeyRecord,
  { lastUsedMs, used }: { readonly lastUsedMs: number | undefined; readonly used: number | undefined },
  nowMs: number,
) {
  const ceiling = ceilingOf(record);
  const requestsPerHour = ceiling === 'unreadable' ? 0 : ceiling?.limit.amount;
  return { ...record, requestsPerHour, state: keyState(record, nowMs), lastUsedAt: isoTime(lastUsedMs), used };
}

/** Resolves to the units of the last hour of each key that has a limit. Undefined also without the store. */
export async function usedOfKeys(
  usages: UsageContext['usages'],
  keys: readonly KeyRecord[],
): Promise<readonly (number | undefined)[]> {
  const windows = keys.map((key) => {
    const ceiling = ceilingOf(key);
    // Requests with a key of an invalid customer id are refused, and no window has such a name.
    if (typeof ceiling !== 'object' || !isCustomerId(key.customer)) return undefined;
    return { customer: key.customer, root: ceiling.limit.root, from: 0 };
  });
  const read = windows.filter((window) => window !== undefined);
  const used = read.length === 0 ? [] : await unlessUnavailable(() => usages.usedOf(read));
  return windows.map((window) => (window && used ? used[read.indexOf(window)] : undefined));
}

/** Resolves to undefined while the store is unavailable: the rest of a document is still useful. */
export async function unlessUnavailable<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof StoreUnavailableError) return undefined;
    throw error;
  }
}

/** Adds the names of the customers. Without the store, none: a name is never worth refusing the document. */
export async function withCustomerNames<Item extends { readonly customer?: string | undefined }>(
  records: Pick<RecordStore, 'readCustomers'>,
  items: readonly Item[],
): Promise<readonly (Item & { readonly customerName: string | undefined })[]> {
  const ids = [...new Set(items.flatMap(({ customer }) => customer ?? []))];
  const found = ids.length === 0 ? [] : ((await unlessUnavailable(() => records.readCustomers(ids))) ?? []);
  const names = new Map(found.flatMap((record) => (record ? [[record.id, record.name] as const] : [])));
  return items.map((item) => ({ ...item, customerName: names.get(item.customer ?? '') }));
}

export async function withCustomerName<Item extends { readonly customer: string }>(
  records: Pick<RecordStore, 'readCustomers'>,
  item: Item,
) {
  const [named] = await withCustomerNames(records, [item]);
  return { ...item, customerName: named?.customerName };
}

/** `items`: one for each of the page's records. */
export function pageOf<Item>(items: readonly Item[], { next }: Pick<Page<unknown>, 'next'>) {
  return { items, nextCursor: next };
}

type Defined<Members> = string extends keyof Members
  ? Record<string, Exclude<Members[keyof Members], undefined>>
  : { [Name in keyof Members]?: Exclude<Members[Name], undefined> };

/** Returns the members without those that are undefined: a request may omit what a record may lack. */
export function definedMembers<Members extends object>(members: Members): Defined<Members> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<Members>;
}

/** Returns the members without those that are undefined or null. */
export function setMembers<Members extends object>(members: Members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value != null)) as {
    [Name in keyof Members]?: NonNullable<Members[Name]>;
  };
}
