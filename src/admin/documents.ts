/**
 * Records as the admin API shows them: every member is always there, null is what is not set. Neither a key nor its
 * hash is in any of them.
 */

import type { EffectiveLimit } from '../quota/limit.ts';
import type { AuditEntry, CustomerRecord, KeyRecord } from '../store/store.ts';
import { parseTimestamp } from '../timestamp.ts';

/** `limit_problem` says why there is no limit. `currentPlan`: undefined when the configuration does not know the plan. */
export function customerDocument(customer: CustomerRecord, currentPlan: string | undefined, limit: EffectiveLimit) {
  const { requestsPerHour } = customer;
  return {
    id: customer.id,
    name: customer.name ?? null,
    plan: customer.plan,
    current_plan: currentPlan ?? null,
    requests_per_hour: typeof requestsPerHour === 'number' ? requestsPerHour : null,
    suspended: customer.suspended,
    usage_reset_at: inUtc(customer.usageResetAt),
    ...limitDocument(limit),
  };
}

export function limitDocument(limit: EffectiveLimit) {
  return {
    limit: limit.found ? limit.requestsPerHour : null,
    limit_source: limit.found ? limit.source : null,
    limit_problem: limit.found ? null : limit.reason,
  };
}

/** `percent` is rounded down: 100 is a limit that is used up. */
export function customerUsageDocument({ id, plan }: CustomerRecord, limit: EffectiveLimit, used: number) {
  const requestsPerHour = limit.found ? limit.requestsPerHour : null;
  const percent = requestsPerHour === null ? null : Math.floor((100 * used) / requestsPerHour);
  return { customer: id, plan, limit: requestsPerHour, used, percent };
}

/** A key that nothing can have happened to yet. */
export function newKeyDocument(record: KeyRecord) {
  return {
    id: record.id,
    prefix: record.prefix ?? null,
    customer: record.customer,
    name: record.name ?? null,
    created_at: inUtc(record.createdAt),
    expires_at: inUtc(record.expiresAt),
  };
}

/** `lastUsedMs`: wall time in ms. */
export function keyDocument(record: KeyRecord, lastUsedMs: number | undefined) {
  return {
    ...newKeyDocument(record),
    revoked_at: inUtc(record.revokedAt),
    replaced_by: record.replacedBy ?? null,
    last_used_at: lastUsedMs === undefined ? null : new Date(lastUsedMs).toISOString(),
  };
}

export function auditDocument(entry: AuditEntry) {
  return {
    at: entry.at,
    actor: entry.actor,
    from: entry.from,
    action: entry.action,
    customer: entry.customer ?? null,
    key_id: entry.keyId ?? null,
    details: entry.details ?? null,
  };
}

/** Other programs write times with other offsets. What is no time at all is shown as it stands, for whoever corrects it. */
function inUtc(time: string | undefined): string | null {
  if (time === undefined) return null;
  const timeMs = parseTimestamp(time);
  return timeMs === undefined ? time : new Date(timeMs).toISOString();
}
