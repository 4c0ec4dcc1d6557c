/** The production scripts on a real Redis, with a clock that the test sets: the one line that reads it is replaced. */
import {
  parseGrant,
  parseRefund,
  REFUND_LUA,
  RESERVE_LUA,
  refundArguments,
  reserveArguments,
} from '../../src/store/redis/window-scripts.ts';
import type { WindowGrant, WindowRequest, WindowShape } from '../../src/store/window-arithmetic.ts';
import type { RedisServer } from '../support/redis-server.ts';

const CLOCK_LINE = "local time = call('TIME')";

export interface ScriptedWindows {
  reserve(key: string, nowMs: number, request: WindowRequest, freshEpoch: string): Promise<WindowGrant>;
  refund(key: string, giveBacks: WindowRequest['giveBacks']): Promise<number>;
  fields(key: string): Promise<Record<string, string>>;
}

export function scriptedWindows(redis: RedisServer, shape: WindowShape): ScriptedWindows {
  if (RESERVE_LUA.split(CLOCK_LINE).length !== 2)
    throw new Error('reserve.lua must read the clock in exactly one line');
  const reserveLua = RESERVE_LUA.replace(CLOCK_LINE, "local time = call('LRANGE', 'test:clock', 0, 1)");
  return {
    async reserve(key, nowMs, request, freshEpoch) {
      await redis.command('DEL', 'test:clock');
      await redis.command('RPUSH', 'test:clock', Math.floor(nowMs / 1000), (nowMs % 1000) * 1000);
      const giveBacks = request.giveBacks.map((giveBack) => ({ ...giveBack, session: 1 }));
      const args = reserveArguments({ ...request, giveBacks }, shape, freshEpoch);
      return parseGrant(await redis.command('EVAL', reserveLua, 1, key, ...args));
    },
    async refund(key, giveBacks) {
      return parseRefund(await redis.command('EVAL', REFUND_LUA, 1, key, ...refundArguments(giveBacks)));
    },
    async fields(key) {
      const flat = (await redis.command('HGETALL', key)) as string[];
      return Object.fromEntries(
        flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : [])),
      );
    },
  };
}
