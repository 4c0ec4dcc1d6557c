/**
 * Records as the admin API shows them. Every member is always present; null means not set. No record contains a key or
 * its hash.
 */
import type {
  CustomerDocument,
  CustomerUsageDocument,
  ImportedKeyDocument,
  KeyDocument,
} from '../admin-api/responses.ts';
import { parseTimestamp } from '../base/timestamp.ts';
import { keyState } from '../keys/key-state.ts';
import type { EffectiveLimit } from '../quota/effective-limit.ts';
import type { CustomerRecord, KeyRecord } from '../store/record-fields.ts';
import type { Page } from '../store/store.ts';

/** `limit_problem` says why there is no limit. `currentPlan`: undefined if the plan is not configured. */
export function customerDocument(
  customer: CustomerRecord,
  currentPlan: string | undefined,
  limit: EffectiveLimit,
): CustomerDocument {
  const { requestsPerHour } = customer;
  return {
    id: customer.id,
    name: customer.name ?? null,
    plan: customer.plan,
    current_plan: currentPlan ?? null,
    requests_per_hour: typeof requestsPerHour === 'number' ? requestsPerHour : null,
    suspended: customer.suspended,
    usage_reset_at: inUtc(customer.usageResetAt),
    notify_url: customer.notifyUrl ?? null,
    ...limitDocument(limit),
  };
}

export function limitDocument(
  limit: EffectiveLimit,
): Pick<CustomerDocument, 'limit' | 'limit_source' | 'limit_problem'> {
  return limit.found
    ? { limit: limit.requestsPerHour, limit_source: limit.source, limit_problem: null }
    : { limit: null, limit_source: null, limit_problem: limit.reason };
}

/** `percent` is rounded down, so 100 means that the limit is used up. */
export function customerUsageDocument(
  { id, plan }: CustomerRecord,
  limit: EffectiveLimit,
  used: number,
): CustomerUsageDocument {
  const requestsPerHour = limit.found ? limit.requestsPerHour : null;
  const percent = requestsPerHour === null ? null : Math.floor((100 * used) / requestsPerHour);
  return { customer: id, plan, limit: requestsPerHour, limit_source: limit.found ? limit.source : null, used, percent };
}

/** Document of a key just created: without the members for revocation, replacement and last use. */
export function newKeyDocument(record: KeyRecord): ImportedKeyDocument {
  return {
    id: record.id,
    prefix: record.prefix ?? null,
    customer: record.customer,
    name: record.name ?? null,
    created_at: inUtc(record.createdAt),
    expires_at: inUtc(record.expiresAt),
  };
}

/** `lastUsedMs` and `nowMs`: wall times in ms. */
export function keyDocument(record: KeyRecord, lastUsedMs: number | undefined, nowMs: number): KeyDocument {
  const { id, ...members } = newKeyDocument(record);
  return {
    id,
    state: keyState(record, nowMs),
    ...members,
    revoked_at: inUtc(record.revokedAt),
    replaced_by: record.replacedBy ?? null,
    last_used_at: lastUsedMs === undefined ? null : new Date(lastUsedMs).toISOString(),
  };
}

/** `items`: the documents of the page's records. */
export function pageDocument<Item>(items: Item[], { next }: Pick<Page<unknown>, 'next'>) {
  return { items, next_cursor: next ?? null };
}

type Defined<Members> = string extends keyof Members
  ? Record<string, Exclude<Members[keyof Members], undefined>>
  : { [Name in keyof Members]?: Exclude<Members[Name], undefined> };

/** Returns the members without those that are undefined: a request may omit what a record may lack. */
export function definedMembers<Members extends object>(members: Members): Defined<Members> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<Members>;
}

/** Converts a time to UTC: other programs may write offsets. Returns an invalid time as stored, to be corrected. */
function inUtc(time: string | undefined): string | null {
  if (time === undefined) return null;
  const timeMs = parseTimestamp(time);
  return timeMs === undefined ? time : new Date(timeMs).toISOString();
}
