/** The arguments and replies of reserve.lua and charge.lua. */
import { readFileSync } from 'node:fs';
import { ReplyError } from 'ioredis';
import type { AdmittedUnits } from '../../store.ts';
import type { WindowGrant, WindowRequest, WindowShape } from '../../window-arithmetic.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';

const WINDOW_LUA = read('window.lua');
export const RESERVE_LUA: string = WINDOW_LUA + read('reserve.lua');
export const CHARGE_LUA: string = WINDOW_LUA + read('charge.lua');

type ScriptArgument = string | number;

/** What reserve.lua did to one window. */
export interface Reserved extends WindowGrant {
  readonly refunded: number;
}

/** One request for each window, in the order of the script's names. */
export function reserveArguments(
  requests: readonly WindowRequest[],
  { windowMs, bucketMs }: WindowShape,
  freshEpoch: string,
): ScriptArgument[] {
  const args: ScriptArgument[] = [windowMs, bucketMs, freshEpoch];
  for (const { need, ahead, limit, holdMs, refunds } of requests) {
    args.push(need, ahead, limit, holdMs, refunds.length);
    for (const { epoch, bucket, units } of refunds) args.push(epoch, bucket, units);
  }
  return args;
}

export function chargeArguments(
  admitted: readonly AdmittedUnits[],
  { windowMs, bucketMs }: WindowShape,
  freshEpoch: string,
): ScriptArgument[] {
  return [windowMs, bucketMs, freshEpoch, ...admitted.flatMap(({ ageMs, units }) => [ageMs, units])];
}

/**
 * Parses the reply of reserve.lua: for each request what was done, or why its window is damaged.
 * @throws UnexpectedReplyError when the reply has another form.
 */
export function parseReserved(
  reply: unknown,
  requests: readonly WindowRequest[],
  shape: WindowShape,
): (Reserved | Error)[] {
  const [storeTimeMs, ...windows]: unknown[] = Array.isArray(reply) ? reply : [];
  if (typeof storeTimeMs !== 'number' || windows.length !== requests.length) throw new UnexpectedReplyError('reserve');
  return requests.map((request, index) => {
    const window = windows[index];
    if (typeof window === 'string') return reservedFrom(window, storeTimeMs, request, shape);
    return window instanceof Error && window instanceof ReplyError ? window : new UnexpectedReplyError('reserve');
  });
}

function reservedFrom(
  text: string,
  storeTimeMs: number,
  { limit, holdMs }: WindowRequest,
  { bucketMs }: WindowShape,
): Reserved | Error {
  const [granted, waitMs, refunded, epoch = '', used, , , holdEnd, ...more] = text.split(' ');
  const reserved = {
    granted: Number(granted),
    free: Math.max(0, limit - Number(used)),
    used: Number(used),
    waitMs: Number(waitMs),
    refunded: Number(refunded),
    bucket: Math.floor((storeTimeMs + holdMs) / bucketMs),
    storeTimeMs,
    holdEndMs: Number(holdEnd),
    epoch,
  };
  const { granted: a, used: b, waitMs: c, refunded: d, holdEndMs: e } = reserved;
  const isWhole = more.length === 0 && Number.isSafeInteger(a + b + c + d + e);
  return isWhole ? reserved : new UnexpectedReplyError('reserve');
}

/**
 * Parses the number of units that are counted after charge.lua.
 * @throws UnexpectedReplyError when the reply is not an integer.
 */
export function parseCharged(reply: unknown): number {
  if (typeof reply !== 'number' || !Number.isSafeInteger(reply)) throw new UnexpectedReplyError('charge');
  return reply;
}

function read(file: string): string {
  return readFileSync(new URL(`./${file}`, import.meta.url), 'utf8');
}
