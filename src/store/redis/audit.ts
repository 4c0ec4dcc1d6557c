/** The audit log: one stream. The stream's ids are the entries' ids, and begin with the store's time in ms. */
import type { AuditStore } from '../audit.ts';
import { AUDIT_ENTRIES, AUDIT_RETENTION_MS, auditEntryFrom, auditFields } from '../audit-fields.ts';
import { InvalidCursorError } from '../errors.ts';
import type { RedisChannel } from './connection/channel.ts';
import { pairsFrom } from './connection/client.ts';
import type { RedisKeyNames } from './protocol/key-names.ts';

const ENTRY_ID = /^(\d{1,20})-(\d{1,20})$/;
/** Both numbers of an entry's id are below this. */
const ID_LIMIT = 2n ** 64n;

export function redisAudit(connection: RedisChannel, names: RedisKeyNames): AuditStore {
  const name = names.audit;
  /** Store time of the last appended entry. The gateway's clock is not used: a wrong clock must not delete entries. */
  let appendedAtMs: number | undefined;
  let trimsByAge = false;

  /** Returns the trim option of the next XADD. XADD trims by age or by number, so the two alternate. */
  function nextBound(): ['MINID' | 'MAXLEN', '~', number] {
    trimsByAge = !trimsByAge && appendedAtMs !== undefined;
    if (!trimsByAge || appendedAtMs === undefined) return ['MAXLEN', '~', AUDIT_ENTRIES];
    return ['MINID', '~', Math.max(0, appendedAtMs - AUDIT_RETENTION_MS)];
  }

  return {
    async append(entry) {
      const fields = Object.entries(auditFields(entry)).flatMap(([field, value]) => (value ? [field, value] : []));
      const id = await connection.run('append_audit', (redis) => redis.xadd(name, ...nextBound(), '*', ...fields));
      appendedAtMs = Number.parseInt(id ?? '', 10) || undefined;
    },

    async list(cursor, limit, { fromMs = 0, toMs = Number.MAX_SAFE_INTEGER } = {}) {
      const newest = cursor === undefined ? `${Math.max(0, toMs - 1)}` : `(${checkedId(cursor)}`;
      const oldest = `${Math.max(0, fromMs)}`;
      const entries = await connection.run('read_audit', (redis) =>
        redis.xrevrange(name, newest, oldest, 'COUNT', limit + 1),
      );
      const listed = entries.slice(0, limit);
      return {
        items: listed.flatMap(([id, values]) => {
          const entry = auditEntryFrom(Object.fromEntries(pairsFrom(values)));
          return entry === undefined ? [] : [{ ...entry, id }];
        }),
        next: entries.length > limit ? listed.at(-1)?.[0] : undefined,
      };
    },
  };
}

function checkedId(cursor: string): string {
  const parts = ENTRY_ID.exec(cursor)?.slice(1);
  const isEntryId = parts?.every((part) => BigInt(part) < ID_LIMIT) && parts.some((part) => BigInt(part) > 0n);
  // 0-0 is rejected: no entry is below it, and Redis refuses it as an exclusive bound.
  if (!isEntryId) throw new InvalidCursorError();
  return cursor;
}
