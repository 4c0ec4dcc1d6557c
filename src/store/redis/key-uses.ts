/** Last uses of keys: one sorted set, outside the tracked prefixes, so that uses are not pushed as changes. */
import type { KeyUseStore } from '../key-uses.ts';
import { isTimeMs } from '../usage-history.ts';
import { inPieces, type RedisChannel, sendAll, sendEach } from './connection/channel.ts';
import type { RedisKeyNames } from './protocol/key-names.ts';

export function redisKeyUses(connection: RedisChannel, names: RedisKeyNames): KeyUseStore {
  const name = names.keyUses;
  return {
    async noteUses(uses) {
      await inPieces(uses, async (piece) => {
        const scores = piece.flatMap(({ keyId, usedAtMs }) => [usedAtMs, keyId]);
        await connection.run('note_uses', (redis) => redis.zadd(name, 'GT', ...scores));
        // Checked after the write: a deletion removes the record first, so one of the two sees the other's write.
        const known = piece.flatMap(({ keyId, sha256 }) => (sha256 === undefined ? [] : [{ keyId, sha256 }]));
        const records = known.map(({ sha256 }) => ['hget', names.keyRecord(sha256), 'id'] as const);
        const ids = await sendAll(connection, 'note_uses', records);
        const deleted = known.filter(({ keyId }, at) => ids[at] !== keyId);
        return sendEach(connection, 'note_uses', deleted, ({ keyId }) => ['zrem', name, keyId]);
      });
    },

    lastUses: (keyIds) =>
      inPieces(keyIds, async (piece) => {
        const scores = await connection.run('read_uses', (redis) => redis.zmscore(name, ...piece));
        return scores.map((score) => {
          const usedAtMs = score === null ? undefined : Number(score);
          return isTimeMs(usedAtMs) ? usedAtMs : undefined;
        });
      }),
  };
}
