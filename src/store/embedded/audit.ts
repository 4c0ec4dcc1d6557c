/** The audit log in SQLite. Columns have the names and meanings of the Redis fields. */
import type { DatabaseSync } from 'node:sqlite';
import { AUDIT_ENTRIES, type AuditFields, auditEntryFrom, auditFields } from '../audit-fields.ts';
import { type AuditEntry, type AuditStore, InvalidCursorError } from '../store.ts';
import { keyBefore, pageOf } from './cursor.ts';
import { inTransaction } from './database.ts';
import type { RunOperation } from './operation.ts';

type AuditRow = AuditFields & { readonly id: number };

export function embeddedAudit(database: DatabaseSync, run: RunOperation): AuditStore {
  const insert = database.prepare(
    `INSERT INTO audit (at, actor, "from", action, customer, key_id, details)
     VALUES (:at, :actor, :from, :action, :customer, :key_id, :details)`,
  );
  const deleteUpTo = database.prepare('DELETE FROM audit WHERE id <= ?');
  const selectBelow = database.prepare('SELECT * FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?');
  return {
    append: (entry) =>
      run('append_audit', () =>
        inTransaction(database, () => {
          const { lastInsertRowid } = insert.run({ ...auditFields(entry) });
          deleteUpTo.run(Number(lastInsertRowid) - AUDIT_ENTRIES);
        }),
      ),

    list: async (cursor, limit) => {
      const below = cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(keyBefore(cursor));
      if (!Number.isSafeInteger(below)) throw new InvalidCursorError();
      return run('read_audit', () => {
        const rows = selectBelow.all(below, limit + 1) as AuditRow[];
        return pageOf(rows, limit, ({ id }) => String(id), listedEntryFrom);
      });
    },
  };
}

function listedEntryFrom(row: AuditRow): (AuditEntry & { readonly id: string }) | undefined {
  const entry = auditEntryFrom(row);
  return entry && { ...entry, id: String(row.id) };
}
