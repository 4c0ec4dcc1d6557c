/** The gateway instances that share a store. Each announces itself regularly, and counts for an hour. */
import { readFileSync } from 'node:fs';
import type { Store } from '../../store.ts';
import type { RedisChannel } from '../connection/channel.ts';
import type { RedisClient } from '../connection/client.ts';
import { instancesName } from '../protocol/key-names.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';

const ANNOUNCE_LUA = readFileSync(new URL('./announce.lua', import.meta.url), 'utf8');
const COUNTED_MS = 3_600_000;

interface InstanceCommands {
  tollgateAnnounce(instances: string, instance: string, countedMs: number): Promise<unknown>;
}

/**
 * Must be called before the first command is sent on the connection, because it defines a command. A withdrawal uses
 * the same connection, so that it follows an announcement in flight.
 */
export function redisInstances(connection: RedisChannel, keyPrefix: string): Pick<Store, 'announce' | 'withdraw'> {
  connection.client.defineCommand('tollgateAnnounce', { numberOfKeys: 1, lua: ANNOUNCE_LUA });
  const commands = connection.client as RedisClient & InstanceCommands;
  const name = instancesName(keyPrefix);
  return {
    announce: (instance) =>
      connection.run('announce', async () => {
        const count = await commands.tollgateAnnounce(name, instance, COUNTED_MS);
        if (typeof count !== 'number') throw new UnexpectedReplyError('announce');
        return count;
      }),
    withdraw: (instance) =>
      connection.run('withdraw', async (redis) => {
        await redis.zrem(name, instance);
      }),
  };
}
