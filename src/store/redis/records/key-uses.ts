/** Last uses of keys: one sorted set, outside the tracked prefixes, so that uses are not pushed as changes. */
import type { KeyUseStore } from '../../store.ts';
import type { RedisChannel } from '../connection/channel.ts';
import { inPieces } from '../connection/replies.ts';
import { keyUsesName } from '../protocol/key-names.ts';

/** The latest time that a Date can hold. */
const LATEST_MS = 8.64e15;

export function redisKeyUses(connection: RedisChannel, keyPrefix: string): KeyUseStore {
  const name = keyUsesName(keyPrefix);
  return {
    async noteUses(uses) {
      await inPieces(uses, async (piece) => {
        const scores = piece.flatMap(({ keyId, usedAtMs }) => [usedAtMs, keyId]);
        await connection.run('note_uses', (redis) => redis.zadd(name, 'GT', ...scores));
        return [];
      });
    },

    lastUses: (keyIds) =>
      inPieces(keyIds, async (piece) => {
        const scores = await connection.run('read_uses', (redis) => redis.zmscore(name, ...piece));
        return scores.map(usedAtMsFrom);
      }),
  };
}

function usedAtMsFrom(score: string | null): number | undefined {
  const usedAtMs = Number(score ?? Number.NaN);
  return usedAtMs >= 0 && usedAtMs <= LATEST_MS ? usedAtMs : undefined;
}
