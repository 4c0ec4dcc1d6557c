/**
 * Reads the usage of many windows. Most usages come from a window's head alone: its sum is exact until the oldest
 * bucket expires, and an upper bound after that. The whole window is read only if that bound is not below `from`.
 */
import type { StoreOp } from '../../observer.ts';
import { dropTimeMs, HOURLY, unitsCounted, unitsSettled } from '../../window-arithmetic.ts';
import type { UsageReader, WindowRoot } from '../../windows.ts';
import { type RedisChannel, sendAll, storeTimeMs } from '../connection/channel.ts';
import { hashFrom } from '../connection/client.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';

const OP: StoreOp = 'read_usages';
/** Heads that are read at once, in about a millisecond of Redis' time. */
const HEADS = 100;
/** Windows that are read at once; each may have some hundred fields. */
const WHOLE_WINDOWS = 10;
const HEAD = /^\S+ (\d+) (\d+) (\d+) (\d+)$/;

export function redisUsages(connection: RedisChannel, names: RedisKeyNames): UsageReader {
  const readWindows = (asked: readonly { readonly customer: string; readonly root?: WindowRoot }[]) => {
    const commands = asked.map(({ customer, root }) => ['hgetall', names.window(customer, root)] as const);
    return sendAll(connection, OP, commands, WHOLE_WINDOWS);
  };

  return {
    async usedOf(asked) {
      if (asked.length === 0) return [];
      const nowMs = await storeTimeMs(connection, OP);
      const commands = asked.map(({ customer, root }) => ['hget', names.window(customer, root), 'head'] as const);
      const heads = await sendAll(connection, OP, commands, HEADS);
      const used = asked.map((each, index) => ({ ...each, index, ...usedByHead(heads[index], nowMs) }));
      const unclear = used.filter(({ from, atMost, isExact }) => !isExact && atMost >= from);
      const windows = await readWindows(unclear);
      const counts = used.map(({ atMost }) => atMost);
      unclear.forEach(({ index }, at) => {
        counts[index] = unitsCounted(bucketsOf(windows[at]), HOURLY, nowMs);
      });
      return counts;
    },

    async settledOf(customer, root) {
      const nowMs = await storeTimeMs(connection, OP);
      const [window] = await readWindows([{ customer, root }]);
      const [, , , , holdEndMs = 0] = HEAD.exec(hashFrom(window).get('head') ?? '') ?? [];
      return unitsSettled(bucketsOf(window), HOURLY, nowMs, Number(holdEndMs));
    },
  };
}

/** A malformed window counts as empty here; reservations from it report the fault. */
function usedByHead(head: unknown, nowMs: number) {
  const [, used, oldest, newest] = (typeof head === 'string' && HEAD.exec(head)) || [];
  if (used === undefined || dropTimeMs(Number(newest), HOURLY) <= nowMs) return { atMost: 0, isExact: true };
  return { atMost: Number(used), isExact: Number(oldest) > 0 && dropTimeMs(Number(oldest), HOURLY) > nowMs };
}

/** Returns the buckets of a whole window, from the reply to HGETALL in a pipeline. */
function bucketsOf(reply: unknown): (readonly [bucket: number, units: number])[] {
  return [...hashFrom(reply)]
    .filter(([field]) => field !== 'head')
    .map(([bucket, units]) => [Number(bucket), Number(units)]);
}
