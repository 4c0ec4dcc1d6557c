/** The gateway instances that share a store. Each announces itself regularly, and counts for an hour. */
import { readFileSync } from 'node:fs';
import type { RedisChannel } from '../connection/channel.ts';
import type { RedisClient } from '../connection/client.ts';
import { instancesName } from '../protocol/key-names.ts';
import { UnexpectedReplyError } from '../protocol/unexpected-reply.ts';

const ANNOUNCE_LUA = readFileSync(new URL('./announce.lua', import.meta.url), 'utf8');
const COUNTED_MS = 3_600_000;

interface InstanceCommands {
  tollgateAnnounce(instances: string, instance: string, countedMs: number): Promise<unknown>;
}

/**
 * Returns a function that announces an instance and resolves to the number of instances. Must be called before the
 * first command is sent on the connection, because it defines a command.
 */
export function redisInstances(connection: RedisChannel, keyPrefix: string): (instance: string) => Promise<number> {
  connection.client.defineCommand('tollgateAnnounce', { numberOfKeys: 1, lua: ANNOUNCE_LUA });
  const commands = connection.client as RedisClient & InstanceCommands;
  return (instance) =>
    connection.run('announce', async () => {
      const count = await commands.tollgateAnnounce(instancesName(keyPrefix), instance, COUNTED_MS);
      if (typeof count !== 'number') throw new UnexpectedReplyError('announce');
      return count;
    });
}

/**
 * Returns a function that deletes an instance's announcement. It uses the connection of the announcements, so that the
 * deletion follows an announcement in flight.
 */
export function redisWithdrawal(connection: RedisChannel, keyPrefix: string): (instance: string) => Promise<void> {
  return (instance) =>
    connection.run('withdraw', async (redis) => {
      await redis.zrem(instancesName(keyPrefix), instance);
    });
}
