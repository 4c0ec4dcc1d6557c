/** Audit entries as named text fields: the form in which both stores keep them. Nobody but the gateway writes them. */
import type { Fields } from './record-fields.ts';
import type { AuditEntry } from './store.ts';

/**
 * Entries are kept for this long, unless there are more than {@link AUDIT_ENTRIES}. Both are far above what administration
 * needs, so that a burst of changes does not push out older entries.
 */
export const AUDIT_RETENTION_MS = 400 * 24 * 3600 * 1000;
/** About 75 MB in Redis. */
export const AUDIT_ENTRIES = 500_000;

export const AUDIT_FIELDS = ['at', 'actor', 'from', 'action', 'customer', 'key_id', 'details'] as const;

export type AuditFields = Fields<(typeof AUDIT_FIELDS)[number]>;

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

/** The entry, or undefined when this is none. */
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

/** What is no JSON object is shown as it is: an entry that somebody damaged is worth seeing. */
function parseDetails(text: string): NonNullable<AuditEntry['details']> {
  try {
    const details: unknown = JSON.parse(text);
    if (typeof details === 'object' && details !== null && !Array.isArray(details)) return { ...details };
  } catch {}
  return { unreadable: text };
}
