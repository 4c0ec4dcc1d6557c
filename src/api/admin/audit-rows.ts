/** The rows of the audit for people, in which an import is one. Imports nothing, because browsers load it too. */
import type { AuditAction, AuditDocument } from './responses.ts';

/** One entry; or the newest one of an import, with the members that its entries have in common. */
export interface AuditRow extends AuditDocument {
  /** The newest first. */
  readonly entries: readonly AuditDocument[];
}

const IMPORTED: readonly string[] = ['customer.create', 'key.create', 'key.import'] satisfies AuditAction[];
const MAX_GAP_MS = 10_000;
const MIN_IMPORT = 3;

/** Folds what one import made: equal actions of one actor at one address, seconds apart. `entries`: the newest first. */
export function auditRowsOf(entries: readonly AuditDocument[]): AuditRow[] {
  const groups: AuditDocument[][] = [];
  for (const entry of entries) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    const belongs =
      last !== undefined &&
      IMPORTED.includes(entry.action) &&
      (['action', 'actor', 'from'] as const).every((member) => entry[member] === last[member]) &&
      Date.parse(last.at) - Date.parse(entry.at) <= MAX_GAP_MS;
    if (belongs) group?.push(entry);
    else groups.push([entry]);
  }
  return groups.flatMap((group) => {
    if (group.length < MIN_IMPORT) return group.map((entry) => ({ ...entry, entries: [entry] }));
    return group.slice(0, 1).map((entry) => {
      const customer = group.every((other) => other.customer === entry.customer) ? entry.customer : null;
      return { ...entry, customer, key_id: null, details: null, entries: group };
    });
  });
}
