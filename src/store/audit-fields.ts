/** Audit entries as named text fields, the form in which both stores keep them. Only the gateway writes them. */
import type { AuditEntry } from './audit.ts';
import { parseJsonObject } from './json-object.ts';
import { type Fields, fieldsOf, textsFrom } from './record-fields.ts';

/**
 * Entries are kept this long, unless there are more than {@link AUDIT_ENTRIES}. Both limits far exceed what
 * administration needs, so that a burst of changes does not evict older entries.
 */
export const AUDIT_RETENTION_MS = 400 * 24 * 3600 * 1000;
/** About 75 MB in Redis. */
export const AUDIT_ENTRIES = 500_000;

/** Without the values, which are not texts. */
const TEXTS = {
  at: 'at',
  actor: 'actor',
  from: 'from',
  action: 'action',
  customer: 'customer',
  keyId: 'key_id',
} as const;

/** Objects, stored as JSON. */
const VALUES = ['details', 'before'] as const;

export type AuditFields = Fields<(typeof TEXTS)[keyof typeof TEXTS] | (typeof VALUES)[number]>;

export function auditFields(entry: AuditEntry): AuditFields {
  const values = VALUES.flatMap((name) => (entry[name] ? [[name, JSON.stringify(entry[name])]] : []));
  return { ...fieldsOf(TEXTS, entry), ...Object.fromEntries(values) };
}

/** Returns the entry, or undefined when a required field is unset. */
export function auditEntryFrom(fields: AuditFields): AuditEntry | undefined {
  const { at, actor, from, action, ...rest } = textsFrom(TEXTS, fields);
  if (!at || !actor || !from || !action) return undefined;
  // Text that is not an object is returned under `unreadable`, so that operators still see a damaged entry.
  const valuesFrom = (text: string) => parseJsonObject(text) ?? { unreadable: text };
  const values = VALUES.flatMap((name) => (fields[name] ? [[name, valuesFrom(fields[name])]] : []));
  return { at, actor, from, action, ...rest, ...Object.fromEntries(values) };
}
