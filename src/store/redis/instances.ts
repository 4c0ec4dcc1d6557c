/** The gateway instances that share a store. Each announces itself regularly, and counts for an hour. */
import { type AnnouncedInstance, parseInstanceState } from '../announced-instances.ts';
import type { StoreOp } from '../observer.ts';
import type { Store } from '../store.ts';
import { isTimeMs } from '../usage-history.ts';
import { type RedisChannel, sendEach } from './connection/channel.ts';
import { pairsFrom } from './connection/client.ts';
import type { RedisKeyNames } from './protocol/key-names.ts';
import { UnexpectedReplyError } from './protocol/redis-errors.ts';

const COUNTED_MS = 3_600_000;
/** The most instances that are read. */
const MAX_READ = 1000;
const OP: StoreOp = 'announce';

/**
 * Must be called before the first command is sent on the connection, because it defines a command. A withdrawal uses
 * the same connection, so that it follows an announcement in flight. `background`: for reading.
 */
export function redisInstances(
  connection: RedisChannel,
  background: RedisChannel,
  names: RedisKeyNames,
): Pick<Store, 'announce' | 'announced' | 'withdraw'> {
  const announce = connection.client.defineScript(new URL('./announce.lua', import.meta.url), 1);
  const name = names.instances;
  return {
    announce: (instance, state) =>
      connection.run(OP, async (redis) => {
        const [reply] = await Promise.all([
          announce(name, instance, COUNTED_MS),
          // For people only: an announcement counts without it.
          state && redis.set(names.instance(instance), JSON.stringify(state), 'PX', COUNTED_MS).catch(() => {}),
        ]);
        const [instances, storeTimeMs] = Array.isArray(reply) ? reply : [];
        if (typeof instances !== 'number' || !isTimeMs(storeTimeMs)) throw new UnexpectedReplyError('announce');
        return { instances, storeTimeMs };
      }),
    async announced() {
      const found = await background.run(OP, (redis) => redis.zrevrange(name, 0, MAX_READ - 1, 'WITHSCORES'));
      const instances = pairsFrom(found)
        .map(([instance, score]) => ({ instance, announcedAtMs: Number(score) }))
        .filter(({ announcedAtMs }) => isTimeMs(announcedAtMs));
      const states = await sendEach(background, OP, instances, ({ instance }) => ['get', names.instance(instance)]);
      return instances.map(
        (each, at): AnnouncedInstance => ({ ...each, state: parseInstanceState(String(states[at])) }),
      );
    },
    withdraw: (instance) =>
      connection.run('withdraw', async (redis) => {
        await Promise.all([redis.zrem(name, instance), redis.del(names.instance(instance)).catch(() => {})]);
      }),
  };
}
