/** Last uses of keys: one sorted set, outside the tracked prefixes, so that uses are not pushed as changes. */
import type { KeyUseStore } from '../../store.ts';
import type { RedisChannel } from '../connection/channel.ts';
import { pieces } from '../connection/replies.ts';
import { keyUsesName } from '../protocol/key-names.ts';

/** The latest time that a Date can hold. */
const LATEST_MS = 8.64e15;

export function redisKeyUses(connection: RedisChannel, keyPrefix: string): KeyUseStore {
  const name = keyUsesName(keyPrefix);
  return {
    async noteUses(uses) {
      for (const piece of pieces(uses)) {
        const scores = piece.flatMap(({ keyId, usedAtMs }) => [usedAtMs, keyId]);
        await connection.run('note_uses', (redis) => redis.zadd(name, 'GT', ...scores));
      }
    },

    async lastUses(keyIds) {
      const uses: (number | undefined)[] = [];
      for (const piece of pieces(keyIds)) {
        const scores = await connection.run('read_uses', (redis) => redis.zmscore(name, ...piece));
        uses.push(...scores.map(usedAtMsFrom));
      }
      return uses;
    },
  };
}

function usedAtMsFrom(score: string | null): number | undefined {
  const usedAtMs = Number(score ?? Number.NaN);
  return usedAtMs >= 0 && usedAtMs <= LATEST_MS ? usedAtMs : undefined;
}
