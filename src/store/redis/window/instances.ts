/** The gateway instances that share a store. Each announces itself regularly, and counts for an hour. */
import type { Store } from '../../store.ts';
import type { RedisChannel } from '../connection/channel.ts';
import { instancesName } from '../protocol/key-names.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';

const COUNTED_MS = 3_600_000;

/**
 * Must be called before the first command is sent on the connection, because it defines a command. A withdrawal uses
 * the same connection, so that it follows an announcement in flight.
 */
export function redisInstances(connection: RedisChannel, keyPrefix: string): Pick<Store, 'announce' | 'withdraw'> {
  const announce = connection.client.defineScript(new URL('./announce.lua', import.meta.url), 1);
  const name = instancesName(keyPrefix);
  return {
    announce: (instance) =>
      connection.run('announce', async () => {
        const count = await announce(name, instance, COUNTED_MS);
        if (typeof count !== 'number') throw new UnexpectedReplyError('announce');
        return count;
      }),
    withdraw: (instance) =>
      connection.run('withdraw', async (redis) => {
        await redis.zrem(name, instance);
      }),
  };
}
