/** The arguments and replies of reserve.lua and charge.lua. */
import { readFileSync } from 'node:fs';
import { ReplyError } from 'ioredis';
import type { ChargedUnits, Refund } from '../../store.ts';
import { dayName, HOUR_MS, hourName, type UsageRetention } from '../../usage-history.ts';
import type { WindowGrant, WindowRequest, WindowShape } from '../../window-arithmetic.ts';
import { scriptText } from '../connection/client.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';

const WINDOW_LUA = scriptText(new URL('./window.lua', import.meta.url));
export const RESERVE_LUA: string = WINDOW_LUA + read('reserve.lua');
export const CHARGE_LUA: string = WINDOW_LUA + read('charge.lua');

type ScriptArgument = string | number;

export type ScriptRequest = Omit<WindowRequest, 'refunds'> & { readonly refunds: readonly Omit<Refund, 'session'>[] };

/** What reserve.lua did to one window. */
export interface Reserved extends WindowGrant {
  readonly refunded: number;
}

/** One request for each window, in the order of the script's names. */
export function reserveArguments(
  requests: readonly ScriptRequest[],
  shape: WindowShape,
  freshEpoch: string,
  retention?: UsageRetention,
): ScriptArgument[] {
  const args = windowArguments(shape, freshEpoch, retention);
  for (const { need, ahead, limit, holdMs, refunds } of requests) {
    args.push(need, ahead, limit, holdMs, refunds.length);
    for (const { epoch, bucket, units, hour } of refunds) args.push(epoch, bucket, units, hour);
  }
  return args;
}

export function chargeArguments(
  charged: readonly ChargedUnits[],
  shape: WindowShape,
  freshEpoch: string,
  retention?: UsageRetention,
): ScriptArgument[] {
  return [...windowArguments(shape, freshEpoch, retention), ...charged.flatMap(({ ageMs, units }) => [ageMs, units])];
}

/** Without a retention, no usage history is written. */
function windowArguments(
  { windowMs, bucketMs }: WindowShape,
  freshEpoch: string,
  retention: UsageRetention | undefined,
): ScriptArgument[] {
  if (retention === undefined) return [windowMs, bucketMs, freshEpoch, 0, 0, 0, '', '', '', ''];
  return [windowMs, bucketMs, freshEpoch, retention.hoursDays, retention.days, ...hourArguments(Date.now())];
}

let named: { readonly hour: number; readonly args: readonly ScriptArgument[] } | undefined;

/** The scripts take these names if the hour is right by the store's clock, and compute them otherwise. */
function hourArguments(nowMs: number): readonly ScriptArgument[] {
  const hour = Math.floor(nowMs / HOUR_MS);
  if (named?.hour !== hour) {
    const day = dayName(nowMs);
    named = { hour, args: [hour, `:${day}`, hourName(nowMs), `:${day.slice(0, 4)}`, day.slice(4)] };
  }
  return named.args;
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
