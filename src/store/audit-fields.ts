/** Audit entries as named text fields, the form in which both stores keep them. Only the gateway writes them. */
import { type Fields, fieldsOf, textsFrom } from './record-fields.ts';
import type { AuditEntry } from './store.ts';

/**
 * Entries are kept this long, unless there are more than {@link AUDIT_ENTRIES}. Both limits far exceed what
 * administration needs, so that a burst of changes does not evict older entries.
 */
export const AUDIT_RETENTION_MS = 400 * 24 * 3600 * 1000;
/** About 75 MB in Redis. */
export const AUDIT_ENTRIES = 500_000;

/** Without the details, which are not a text. */
const TEXTS = {
  at: 'at',
  actor: 'actor',
  from: 'from',
  action: 'action',
  customer: 'customer',
  keyId: 'key_id',
} as const;

export type AuditFields = Fields<(typeof TEXTS)[keyof typeof TEXTS] | 'details'>;

export function auditFields(entry: AuditEntry): AuditFields {
  return { ...fieldsOf(TEXTS, entry), ...(entry.details && { details: JSON.stringify(entry.details) }) };
}

/** Returns the entry, or undefined when a required field is unset. */
export function auditEntryFrom(fields: AuditFields): AuditEntry | undefined {
  const { at, actor, from, action, ...rest } = textsFrom(TEXTS, fields);
  if (!at || !actor || !from || !action) return undefined;
  return { at, actor, from, action, ...rest, ...(fields.details && { details: parseDetails(fields.details) }) };
}

/** Returns text that is not a JSON object under `unreadable`, so that operators still see a damaged entry. */
function parseDetails(text: string): NonNullable<AuditEntry['details']> {
  try {
    const details: unknown = JSON.parse(text);
    if (typeof details === 'object' && details !== null && !Array.isArray(details)) return { ...details };
  } catch {}
  return { unreadable: text };
}
