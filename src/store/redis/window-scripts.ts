/** How reserve.lua and refund.lua are called, and what they answer. */
import { readFileSync } from 'node:fs';
import type { GiveBack, ReserveRequest } from '../store.ts';
import type { WindowGrant, WindowShape } from '../window-arithmetic.ts';
import { UnexpectedReplyError } from './unexpected-reply.ts';

export const RESERVE_LUA: string = readFileSync(new URL('./reserve.lua', import.meta.url), 'utf8');
export const REFUND_LUA: string = readFileSync(new URL('./refund.lua', import.meta.url), 'utf8');

type ScriptArgument = string | number;

export function reserveArguments(
  request: Omit<ReserveRequest, 'customer'>,
  shape: WindowShape,
  freshEpoch: string,
): ScriptArgument[] {
  const { need, ahead, limit, holdMs, giveBacks } = request;
  return [need, ahead, limit, holdMs, freshEpoch, shape.windowMs, shape.bucketMs, ...refundArguments(giveBacks)];
}

export function refundArguments(giveBacks: readonly Omit<GiveBack, 'session'>[]): ScriptArgument[] {
  return giveBacks.flatMap(({ epoch, bucket, units }) => [epoch, bucket, units]);
}

/** @throws UnexpectedReplyError when this is not what reserve.lua returns. */
export function parseGrant(reply: unknown): WindowGrant {
  if (!Array.isArray(reply) || reply.length !== 8) throw new UnexpectedReplyError('reserve');
  const [granted, free, used, waitMs, bucket, epoch, storeTimeMs, holdEndMs] = reply;
  const numbers = { granted, free, used, waitMs, bucket, storeTimeMs, holdEndMs };
  if (typeof epoch !== 'string' || !Object.values(numbers).every(Number.isSafeInteger)) {
    throw new UnexpectedReplyError('reserve');
  }
  return { ...numbers, epoch };
}

/** @throws UnexpectedReplyError when this is not what refund.lua returns. */
export function parseRefund(reply: unknown): number {
  if (typeof reply !== 'number' || !Number.isSafeInteger(reply)) throw new UnexpectedReplyError('refund');
  return reply;
}
