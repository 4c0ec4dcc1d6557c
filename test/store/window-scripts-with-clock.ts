/** The production scripts on a real Redis, with a clock that the test sets: the one line that reads it is replaced. */
import { rootsIn } from '../../src/store/grants.ts';
import type { RedisChannel } from '../../src/store/redis/connection/channel.ts';
import { scriptText } from '../../src/store/redis/connection/client.ts';
import { redisKeyNames } from '../../src/store/redis/protocol/key-names.ts';
import { redisUsageHistory } from '../../src/store/redis/usage/usage-history.ts';
import {
  CHARGE_LUA,
  chargeArguments,
  parseCharged,
  parseReserved,
  RESERVE_LUA,
  RESET_PERIOD_LUA,
  type Reserved,
  reserveArguments,
  resetPeriodArguments,
  type ScriptRequest,
} from '../../src/store/redis/window/window-scripts.ts';
import type { UsageHistory, UsageRetention } from '../../src/store/usage-history.ts';
import type { WindowShape } from '../../src/store/window-arithmetic.ts';
import type { ChargedUnits, PeriodAnchor, PeriodLimit, WindowStore } from '../../src/store/windows.ts';
import type { RedisServer } from '../support/redis-server.ts';

const RESET_LUA = scriptText(new URL('../../src/store/redis/window/reset-usage.lua', import.meta.url));
const CLOCK_LINE = "local time = call('TIME')";

export interface ScriptedWindows {
  /** The windows `keys` in one call. */
  reserve(
    keys: readonly string[],
    nowMs: number,
    requests: readonly ScriptRequest[],
    freshEpoch: string,
  ): Promise<readonly (Reserved | Error)[]>;
  charge(
    key: string,
    nowMs: number,
    admitted: readonly ChargedUnits[],
    freshEpoch: string,
    period?: PeriodLimit,
  ): ReturnType<WindowStore['charge']>;
  reset(key: string): Promise<void>;
  resetPeriod(key: string, nowMs: number, period: PeriodAnchor): Promise<void>;
  fields(key: string): Promise<Record<string, string>>;
}

export function scriptedWindows(redis: RedisServer, shape: WindowShape, retention?: UsageRetention): ScriptedWindows {
  const reserveLua = withTestClock(RESERVE_LUA);
  const chargeLua = withTestClock(CHARGE_LUA);
  const resetPeriodLua = withTestClock(RESET_PERIOD_LUA);
  const setClock = async (nowMs: number) => {
    await redis.command('DEL', 'test:clock');
    await redis.command('RPUSH', 'test:clock', Math.floor(nowMs / 1000), (nowMs % 1000) * 1000);
  };
  return {
    async reserve(keys, nowMs, requests, freshEpoch) {
      await setClock(nowMs);
      const args = reserveArguments(requests, shape, freshEpoch, retention);
      const reply = await redis.command('EVAL', reserveLua, keys.length, ...keys, ...args);
      return parseReserved(reply, requests, shape);
    },
    async charge(key, nowMs, admitted, freshEpoch, period) {
      await setClock(nowMs);
      const args = chargeArguments(admitted, period, shape, freshEpoch, retention);
      const keys = [key, ...rootsIn(admitted).map((root) => `${key}:${root}`)];
      return parseCharged(await redis.command('EVAL', chargeLua, keys.length, ...keys, ...args), admitted, period);
    },
    async reset(key) {
      await redis.command('EVAL', RESET_LUA, 3, key, 'no-such-record', 'no-such-grants', '', 'plan');
    },
    async resetPeriod(key, nowMs, period) {
      await setClock(nowMs);
      const args = resetPeriodArguments(period, '', ['plan']);
      await redis.command('EVAL', resetPeriodLua, 2, key, 'no-such-record', ...args);
    },
    async fields(key) {
      const flat = (await redis.command('HGETALL', key)) as string[];
      return Object.fromEntries(
        flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : [])),
      );
    },
  };
}

/** The usage history under a prefix, read on the tests' own connection. */
export function scriptedHistory(redis: RedisServer, prefix: string, retention: UsageRetention): UsageHistory {
  const client = {
    batch: (commands: readonly (readonly [string, ...(string | number)[]])[]) =>
      Promise.all(commands.map(async (command) => [null, await redis.command(...command)])),
  };
  const run = (_op: string, work: (redis: unknown) => unknown) => work(client);
  const channel = { run, client: { defineScript: () => undefined } } as unknown as RedisChannel;
  return redisUsageHistory(channel, redisKeyNames(prefix), retention);
}

function withTestClock(script: string): string {
  if (script.split(CLOCK_LINE).length !== 2) throw new Error('a script must read the clock in exactly one line');
  return script.replace(CLOCK_LINE, "local time = call('LRANGE', 'test:clock', 0, 1)");
}
