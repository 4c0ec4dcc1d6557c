/** The arguments and replies of reserve.lua and charge.lua. */
import { readFileSync } from 'node:fs';
import { ReplyError } from 'ioredis';
import { mapAll } from '../../../base/non-empty.ts';
import { rootsIn } from '../../grants.ts';
import { anchorText, limitCountOf, termsOf } from '../../period-counts.ts';
import { dayName, HOUR_MS, hourName, type UsageRetention } from '../../usage-history.ts';
import { HOURLY, type WindowShape } from '../../window-arithmetic.ts';
import {
  type ChargedCounts,
  type ChargedUnits,
  type Grant,
  isPeriod,
  type LimitCount,
  type PeriodAnchor,
  type PeriodLimit,
  periodIn,
  type ReserveRequest,
  windowsIn,
} from '../../windows.ts';
import { scriptText } from '../connection/client.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';

export const WINDOW_LUA = scriptText(new URL('./window.lua', import.meta.url));
const BEGINNING = WINDOW_LUA + read('period.lua');
export const RESERVE_LUA: string = BEGINNING + read('reserve.lua');
export const CHARGE_LUA: string = BEGINNING + read('charge.lua');
export const RESET_PERIOD_LUA: string = BEGINNING + read('reset-period.lua');

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
    const period = periodIn(limits);
    args.push(grant, need, heaviest, ahead, holdMs, period ? limits.length - 1 : limits.length);
    for (const limit of limits) if (!isPeriod(limit)) args.push(limit.amount);
    if (period === undefined) args.push('');
    else args.push(anchorText(period), period.beyond === 'allow' ? UNLIMITED : period.amount, termsOf(period));
    args.push(refunds.length);
    for (const { grant: id, units, isFinal } of refunds) args.push(id, units, isFinal ? 1 : 0);
  }
  return args;
}

/** The script's windows: that of the customer, then one for each of {@link rootsIn}. */
export function chargeArguments(
  charged: readonly ChargedUnits[],
  period: PeriodLimit | undefined,
  shape: WindowShape,
  freshEpoch: string,
  retention?: UsageRetention,
): ScriptArgument[] {
  const ofPeriod = period ? [anchorText(period), termsOf(period)] : ['', ''];
  const roots: readonly (string | undefined)[] = [undefined, ...rootsIn(charged)];
  const entries = charged.flatMap(({ grant, ageMs, units, root }) => [grant, ageMs, units, roots.indexOf(root) + 1]);
  return [...windowArguments(shape, freshEpoch, retention), ...ofPeriod, ...entries];
}

/** `resetAt`: the time as the record has it. `fields`: of the record, which the script returns. */
export function resetPeriodArguments(
  period: PeriodAnchor,
  resetAt: string,
  fields: readonly string[],
): ScriptArgument[] {
  return [...windowArguments(HOURLY, '', undefined), anchorText(period), resetAt, ...fields];
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

/** More than any count of units. */
const UNLIMITED = Number.MAX_SAFE_INTEGER;
/** Number of words that the reply has for each window: the wait, and its head. */
const WORDS_OF_WINDOW = 6;
/** The same of a period: its units, those forgiven, its first hour and its end hour. */
const WORDS_OF_PERIOD = 4;

function reservedFrom(
  text: string,
  storeTimeMs: number,
  { limits, holdMs }: ScriptRequest,
  { bucketMs }: WindowShape,
): Reserved | Error {
  const words = text.split(' ');
  const [granted, refunded] = [Number(words[0]), Number(words[1])];
  const period = periodIn(limits);
  const periodAt = words.length - (period ? WORDS_OF_PERIOD : 0);
  const windows = windowsIn(limits);
  let isWhole = periodAt === 2 + WORDS_OF_WINDOW * windows.length && Number.isSafeInteger(granted + refunded);
  const counts = mapAll(windows, ({ policy, amount }, index): LimitCount => {
    const first = 2 + WORDS_OF_WINDOW * index;
    const [waitMs, used, holdEndMs] = [Number(words[first]), Number(words[first + 2]), Number(words[first + 5])];
    isWhole &&= Number.isSafeInteger(waitMs + used + holdEndMs);
    return { policy, free: Math.max(0, amount - used), used, waitMs, epoch: words[first + 1] ?? '', holdEndMs };
  });
  const counted = period && periodFrom(period, words.slice(periodAt).map(Number), storeTimeMs, counts[0].holdEndMs);
  if (!isWhole || counted === 'unexpected') return new UnexpectedReplyError('reserve');
  const bucket = Math.floor((storeTimeMs + holdMs) / bucketMs);
  return { granted, refunded, counts: counted ? [...counts, counted] : counts, bucket, storeTimeMs };
}

function periodFrom(limit: PeriodLimit, numbers: readonly number[], nowMs: number, holdEndMs: number) {
  const [counted = Number.NaN, forgiven = 0, startHour = 0, endHour = 0] = numbers;
  if (!Number.isSafeInteger(counted + forgiven + startHour + endHour)) return 'unexpected';
  return limitCountOf(limit, { counted, forgiven, startHour, endHour }, nowMs, holdEndMs);
}

/**
 * Parses the numbers of units that are counted after charge.lua.
 * @throws UnexpectedReplyError when the reply has another form.
 */
export function parseCharged(
  reply: unknown,
  charged: readonly ChargedUnits[],
  limit: PeriodLimit | undefined,
): ChargedCounts {
  const [nowMs = Number.NaN, used = Number.NaN, ...numbers] = Array.isArray(reply) ? reply.map(Number) : [];
  const usedOfKeys = new Map<string, number>();
  for (const root of rootsIn(charged)) {
    const usedOfKey = numbers.shift() ?? Number.NaN;
    if (usedOfKey !== -1) usedOfKeys.set(root, usedOfKey);
  }
  const sum = [...usedOfKeys.values()].reduce((total, each) => total + each, nowMs + used);
  const period = limit && periodFrom(limit, numbers, nowMs, 0);
  if (!Number.isSafeInteger(sum) || period === 'unexpected') throw new UnexpectedReplyError('charge');
  return { used, usedOfKeys, period };
}

function read(file: string): string {
  return readFileSync(new URL(`./${file}`, import.meta.url), 'utf8');
}
