/** Last uses of keys, in SQLite. */
import type { KeyUseStore } from '../key-uses.ts';
import type { EmbeddedContext } from './database.ts';

export function embeddedKeyUses({ sql, run, transact }: EmbeddedContext): KeyUseStore {
  const lastUse = (keyId: string) =>
    sql.get<{ usedAtMs: number }>`SELECT used_at_ms AS usedAtMs FROM key_use WHERE key_id = ${keyId}`?.usedAtMs;
  return {
    noteUses: (uses) =>
      transact('note_uses', () => {
        // Inserts nothing if the key was deleted before its use was recorded.
        for (const { keyId, usedAtMs } of uses) {
          sql.run`
            INSERT INTO key_use (key_id, used_at_ms) SELECT id, ${usedAtMs} FROM api_key WHERE id = ${keyId}
            ON CONFLICT DO UPDATE SET used_at_ms = max(used_at_ms, excluded.used_at_ms)`;
        }
      }),

    lastUses: (keyIds) => run('read_uses', () => keyIds.map(lastUse)),
  };
}
