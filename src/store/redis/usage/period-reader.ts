/** Reads what the periods of customers counted. period.lua writes it. */
import { StoreUnavailableError } from '../../errors.ts';
import type { StoreOp } from '../../observer.ts';
import { type PeriodReader, periodsFrom } from '../../period-reader.ts';
import { firstOpenHour, HOUR_MS } from '../../usage-history.ts';
import { type RedisChannel, sendAll, storeTimeMs } from '../connection/channel.ts';
import { hashFrom } from '../connection/client.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';

const OP: StoreOp = 'read_history';
/** Hashes that are read at once; each may have more than a hundred fields. */
const HASHES = 50;

export function redisPeriodReader(channel: RedisChannel, names: RedisKeyNames): PeriodReader {
  return {
    async openFromMs() {
      // Each server closes the periods of its customers by its own clock.
      const times = await Promise.all(channel.servers.map((server) => storeTimeMs(server, OP)));
      if (times.length === 0) throw new StoreUnavailableError('no Redis server is known');
      return firstOpenHour(Math.min(...times)) * HOUR_MS;
    },

    async periodsOf(customers) {
      const commands = customers.map((customer) => ['hgetall', names.period(customer)] as const);
      const replies = await sendAll(channel, OP, commands, HASHES);
      return replies.map((reply) => {
        return reply === undefined ? { periods: [], isDamaged: true } : periodsFrom(hashFrom(reply));
      });
    },
  };
}
