/** Reads what the present periods of many customers count. */
import type { StoreOp } from '../../observer.ts';
import { counterFields, countInPeriod } from '../../period-counts.ts';
import type { PresentPeriodReader } from '../../windows.ts';
import { type RedisChannel, sendEach, storeTimeMs } from '../connection/channel.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';

const OP: StoreOp = 'read_usages';
const UNITS = /^\d{1,15}$/;

export function redisPresentPeriods(connection: RedisChannel, names: RedisKeyNames): PresentPeriodReader {
  return {
    async presentPeriodsOf(asked) {
      if (asked.length === 0) return [];
      const nowMs = await storeTimeMs(connection, OP);
      const fields = asked.map(({ period }) => counterFields(period, nowMs));
      const commands = asked.map(
        ({ customer }, at) => ['hmget', names.period(customer), ...(fields[at] ?? [])] as const,
      );
      const replies = await sendEach(connection, OP, commands, (command) => command);
      return asked.map(({ period }, at) => {
        const values: unknown = replies[at];
        // Undefined for a Redis key that is not a hash.
        const found = Array.isArray(values) ? values : [];
        const counted = fields[at]?.map((field, index) => [field, String(found[index])] as const) ?? [];
        const units = new Map(counted.filter(([, text]) => UNITS.test(text)));
        return countInPeriod(units, period, nowMs, 0);
      });
    },
  };
}
