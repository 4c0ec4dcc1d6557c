/** Last uses of keys, in SQLite. */
import type { KeyUseStore } from '../store.ts';
import type { EmbeddedContext } from './database.ts';

export function embeddedKeyUses({ database, run, transact }: EmbeddedContext): KeyUseStore {
  // Inserts nothing if the key was deleted before its use was recorded.
  const note = database.prepare(
    `INSERT INTO key_use (key_id, used_at_ms) SELECT id, :usedAtMs FROM api_key WHERE id = :keyId
     ON CONFLICT (key_id) DO UPDATE SET used_at_ms = excluded.used_at_ms WHERE excluded.used_at_ms > used_at_ms`,
  );
  const select = database.prepare('SELECT used_at_ms FROM key_use WHERE key_id = ?');
  return {
    noteUses: (uses) =>
      transact('note_uses', () => {
        for (const { keyId, usedAtMs } of uses) note.run({ keyId, usedAtMs });
      }),

    lastUses: (keyIds) =>
      run('read_uses', () => keyIds.map((keyId) => select.get(keyId)?.used_at_ms as number | undefined)),
  };
}
