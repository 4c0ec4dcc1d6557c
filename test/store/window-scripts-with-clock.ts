/** The production scripts on a real Redis, with a clock that the test sets: the one line that reads it is replaced. */
import {
  CHARGE_LUA,
  chargeArguments,
  parseGrant,
  parseUnits,
  REFUND_LUA,
  RESERVE_LUA,
  refundArguments,
  reserveArguments,
} from '../../src/store/redis/window/window-scripts.ts';
import type { AdmittedUnits } from '../../src/store/store.ts';
import type { WindowGrant, WindowRequest, WindowShape } from '../../src/store/window-arithmetic.ts';
import type { RedisServer } from '../support/redis-server.ts';

const CLOCK_LINE = "local time = call('TIME')";

export interface ScriptedWindows {
  reserve(key: string, nowMs: number, request: WindowRequest, freshEpoch: string): Promise<WindowGrant>;
  refund(key: string, refunds: WindowRequest['refunds']): Promise<number>;
  report(key: string, nowMs: number, admitted: readonly AdmittedUnits[], freshEpoch: string): Promise<number>;
  fields(key: string): Promise<Record<string, string>>;
}

export function scriptedWindows(redis: RedisServer, shape: WindowShape): ScriptedWindows {
  const reserveLua = withTestClock(RESERVE_LUA);
  const chargeLua = withTestClock(CHARGE_LUA);
  const setClock = async (nowMs: number) => {
    await redis.command('DEL', 'test:clock');
    await redis.command('RPUSH', 'test:clock', Math.floor(nowMs / 1000), (nowMs % 1000) * 1000);
  };
  return {
    async reserve(key, nowMs, request, freshEpoch) {
      await setClock(nowMs);
      const refunds = request.refunds.map((refund) => ({ ...refund, session: 1 }));
      const args = reserveArguments({ ...request, refunds }, shape, freshEpoch);
      return parseGrant(await redis.command('EVAL', reserveLua, 1, key, ...args));
    },
    async report(key, nowMs, admitted, freshEpoch) {
      await setClock(nowMs);
      const args = chargeArguments(admitted, shape, freshEpoch);
      return parseUnits(await redis.command('EVAL', chargeLua, 1, key, ...args), 'charge');
    },
    async refund(key, refunds) {
      return parseUnits(await redis.command('EVAL', REFUND_LUA, 1, key, ...refundArguments(refunds)), 'refund');
    },
    async fields(key) {
      const flat = (await redis.command('HGETALL', key)) as string[];
      return Object.fromEntries(
        flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : [])),
      );
    },
  };
}

function withTestClock(script: string): string {
  if (script.split(CLOCK_LINE).length !== 2) throw new Error('a script must read the clock in exactly one line');
  return script.replace(CLOCK_LINE, "local time = call('LRANGE', 'test:clock', 0, 1)");
}
