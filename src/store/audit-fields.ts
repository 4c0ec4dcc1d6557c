/** Audit entries as named text fields, the form in which both stores keep them. Only the gateway writes them. */
import type { Fields } from './record-fields.ts';
import type { AuditEntry } from './store.ts';

/**
 * Entries are kept this long, unless there are more than {@link AUDIT_ENTRIES}. Both limits far exceed what
 * administration needs, so that a burst of changes does not evict older entries.
 */
export const AUDIT_RETENTION_MS = 400 * 24 * 3600 * 1000;
/** About 75 MB in Redis. */
export const AUDIT_ENTRIES = 500_000;

export type AuditFields = Fields<'at' | 'actor' | 'from' | 'action' | 'customer' | 'key_id' | 'details'>;

export function auditFields({ at, actor, from, action, customer, keyId, details }: AuditEntry): AuditFields {
  return {
    at,
    actor,
    from,
    action,
    customer: customer ?? null,
    key_id: keyId ?? null,
    details: details === undefined ? null : JSON.stringify(details),
  };
}

/** Returns the entry, or undefined when a required field is unset. */
export function auditEntryFrom({
  at,
  actor,
  from,
  action,
  customer,
  key_id: keyId,
  details,
}: AuditFields): AuditEntry | undefined {
  if (!at || !actor || !from || !action) return undefined;
  return {
    at,
    actor,
    from,
    action,
    ...(customer && { customer }),
    ...(keyId && { keyId }),
    ...(details && { details: parseDetails(details) }),
  };
}

/** Returns text that is not a JSON object under `unreadable`, so that operators still see a damaged entry. */
function parseDetails(text: string): NonNullable<AuditEntry['details']> {
  try {
    const details: unknown = JSON.parse(text);
    if (typeof details === 'object' && details !== null && !Array.isArray(details)) return { ...details };
  } catch {}
  return { unreadable: text };
}
