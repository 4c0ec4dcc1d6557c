/** The audit log: one stream, whose ids are the entries' ids. */
import { AUDIT_ENTRIES, AUDIT_FIELDS, type AuditFields, auditEntryFrom, auditFields } from '../audit-fields.ts';
import { type AuditStore, InvalidCursorError } from '../store.ts';
import type { RedisChannel } from './channel.ts';
import { auditName } from './key-names.ts';

const ENTRY_ID = /^(\d{1,20})-(\d{1,20})$/;
const ID_PARTS = 2n ** 64n;

export function redisAudit(connection: RedisChannel, keyPrefix: string): AuditStore {
  const name = auditName(keyPrefix);
  return {
    async append(entry) {
      const fields = Object.entries(auditFields(entry)).flatMap(([field, value]) => (value ? [field, value] : []));
      await connection.run('append_audit', (redis) => redis.xadd(name, 'MAXLEN', '~', AUDIT_ENTRIES, '*', ...fields));
    },

    async list(cursor, limit) {
      const newest = cursor === undefined ? '+' : `(${checkedId(cursor)}`;
      const entries = await connection.run('read_audit', (redis) =>
        redis.xrevrange(name, newest, '-', 'COUNT', limit + 1),
      );
      const given = entries.slice(0, limit);
      return {
        items: given.flatMap(([id, values]) => {
          const entry = auditEntryFrom(fieldsFrom(values));
          return entry === undefined ? [] : [{ ...entry, id }];
        }),
        next: entries.length > limit ? given.at(-1)?.[0] : undefined,
      };
    },
  };
}

function fieldsFrom(values: readonly string[]): AuditFields {
  return Object.fromEntries(
    AUDIT_FIELDS.flatMap((field) => {
      const at = values.findIndex((name, index) => index % 2 === 0 && name === field);
      return at < 0 ? [] : [[field, values[at + 1]]];
    }),
  );
}

function checkedId(cursor: string): string {
  const parts = ENTRY_ID.exec(cursor)?.slice(1);
  const isEntryId = parts?.every((part) => BigInt(part) < ID_PARTS) && parts.some((part) => BigInt(part) > 0n);
  // Nothing is below 0-0, and Redis refuses to look there.
  if (!isEntryId) throw new InvalidCursorError();
  return cursor;
}
