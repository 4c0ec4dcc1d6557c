/** The arguments and replies of reserve.lua and charge.lua. */
import { readFileSync } from 'node:fs';
import { ReplyError } from 'ioredis';
import { mapAll } from '../../../base/non-empty.ts';
import { dayName, HOUR_MS, hourName, type UsageRetention } from '../../usage-history.ts';
import type { WindowShape } from '../../window-arithmetic.ts';
import type { ChargedUnits, Grant, LimitCount, ReserveRequest } from '../../windows.ts';
import { scriptText } from '../connection/client.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';

export const WINDOW_LUA = scriptText(new URL('./window.lua', import.meta.url));
export const RESERVE_LUA: string = WINDOW_LUA + read('reserve.lua');
export const CHARGE_LUA: string = WINDOW_LUA + read('charge.lua');

type ScriptArgument = string | number;

export type ScriptRequest = Omit<ReserveRequest, 'customer'>;

/** What reserve.lua did for one reservation. `refunded`: to the window of its first limit. */
export interface Reserved extends Grant {
  readonly refunded: number;
}

/** In the order of the script's windows: one for each limit of each request. */
export function reserveArguments(
  requests: readonly ScriptRequest[],
  shape: WindowShape,
  freshEpoch: string,
  retention?: UsageRetention,
): ScriptArgument[] {
  const args = windowArguments(shape, freshEpoch, retention);
  for (const { grant, need, heaviest = 1, ahead, limits, holdMs, refunds } of requests) {
    args.push(grant, need, heaviest, ahead, holdMs, limits.length);
    for (const { amount } of limits) args.push(amount);
    args.push(refunds.length);
    for (const { grant: id, units, isFinal } of refunds) args.push(id, units, isFinal ? 1 : 0);
  }
  return args;
}

export function chargeArguments(
  charged: readonly ChargedUnits[],
  shape: WindowShape,
  freshEpoch: string,
  retention?: UsageRetention,
): ScriptArgument[] {
  const entries = charged.flatMap(({ grant, ageMs, units }) => [grant, ageMs, units]);
  return [...windowArguments(shape, freshEpoch, retention), ...entries];
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
 * Parses the reply of reserve.lua: for each request what was done, or why a window of it is damaged.
 * @throws UnexpectedReplyError when the reply has another form.
 */
export function parseReserved(
  reply: unknown,
  requests: readonly ScriptRequest[],
  shape: WindowShape,
): (Reserved | Error)[] {
  const [storeTimeMs, ...replies]: unknown[] = Array.isArray(reply) ? reply : [];
  if (typeof storeTimeMs !== 'number' || replies.length !== requests.length) throw new UnexpectedReplyError('reserve');
  return requests.map((request, index) => {
    const done = replies[index];
    if (typeof done === 'string') return reservedFrom(done, storeTimeMs, request, shape);
    return done instanceof Error && done instanceof ReplyError ? done : new UnexpectedReplyError('reserve');
  });
}

/** Number of words that the reply has for each limit: the wait, and the head of the window. */
const WORDS_OF_LIMIT = 6;

function reservedFrom(
  text: string,
  storeTimeMs: number,
  { limits, holdMs }: ScriptRequest,
  { bucketMs }: WindowShape,
): Reserved | Error {
  const words = text.split(' ');
  const [granted, refunded] = [Number(words[0]), Number(words[1])];
  let isWhole = words.length === 2 + WORDS_OF_LIMIT * limits.length && Number.isSafeInteger(granted + refunded);
  const counts = mapAll(limits, ({ policy, amount }, index): LimitCount => {
    const first = 2 + WORDS_OF_LIMIT * index;
    const [waitMs, used, holdEndMs] = [Number(words[first]), Number(words[first + 2]), Number(words[first + 5])];
    isWhole &&= Number.isSafeInteger(waitMs + used + holdEndMs);
    return { policy, free: Math.max(0, amount - used), used, waitMs, epoch: words[first + 1] ?? '', holdEndMs };
  });
  const bucket = Math.floor((storeTimeMs + holdMs) / bucketMs);
  return isWhole ? { granted, refunded, counts, bucket, storeTimeMs } : new UnexpectedReplyError('reserve');
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
