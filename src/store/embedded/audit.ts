/** The audit log in SQLite. Columns have the names and meanings of the Redis fields. */
import type { AuditEntry, AuditStore } from '../audit.ts';
import { AUDIT_ENTRIES, AUDIT_RETENTION_MS, type AuditFields, auditEntryFrom, auditFields } from '../audit-fields.ts';
import { InvalidCursorError } from '../errors.ts';
import { idBefore, pageOf } from './cursor.ts';
import type { EmbeddedContext } from './database.ts';

type StoredAuditRow = AuditFields & { readonly id: number };

export function embeddedAudit({ database, sql, run, transact }: EmbeddedContext): AuditStore {
  const insert = database.prepare(
    `INSERT INTO audit (at, actor, "from", action, customer, key_id, details, before)
     VALUES (:at, :actor, :from, :action, :customer, :key_id, :details, :before)`,
  );
  return {
    append: (entry) =>
      transact('append_audit', () => {
        const { lastInsertRowid } = insert.run({ before: null, ...auditFields(entry) });
        sql.run`DELETE FROM audit WHERE id <= ${Number(lastInsertRowid) - AUDIT_ENTRIES}`;
        // At most 100 at a time: each append deletes more old entries than it adds.
        const oldest = isoTime(Date.parse(entry.at) - AUDIT_RETENTION_MS);
        sql.run`DELETE FROM audit WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT 100) AND at < ${oldest}`;
      }),

    list: async (cursor, limit, { fromMs, toMs } = {}) => {
      const below = cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(idBefore(cursor));
      if (!Number.isSafeInteger(below)) throw new InvalidCursorError();
      // Without a bound, the texts that sort before and after every timestamp.
      const [from, to] = [fromMs === undefined ? '' : isoTime(fromMs), toMs === undefined ? '~' : isoTime(toMs)];
      return run('read_audit', () => {
        const rows = sql.all<StoredAuditRow>`
          SELECT * FROM audit WHERE id < ${below} AND at >= ${from} AND at < ${to}
          ORDER BY id DESC LIMIT ${limit + 1}`;
        return pageOf(rows, limit, listedEntryFrom);
      });
    },
  };
}

const isoTime = (ms: number) => new Date(ms).toISOString();

function listedEntryFrom(row: StoredAuditRow): (AuditEntry & { readonly id: string }) | undefined {
  const entry = auditEntryFrom(row);
  return entry && { ...entry, id: String(row.id) };
}
