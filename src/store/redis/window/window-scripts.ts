/** The arguments and replies of reserve.lua, charge.lua and refund.lua. */
import { readFileSync } from 'node:fs';
import type { AdmittedUnits, Refund, ReserveRequest } from '../../store.ts';
import type { WindowGrant, WindowShape } from '../../window-arithmetic.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';

const WINDOW_LUA = read('window.lua');
export const RESERVE_LUA: string = WINDOW_LUA + read('reserve.lua');
export const CHARGE_LUA: string = WINDOW_LUA + read('charge.lua');
export const REFUND_LUA: string = read('refund.lua');

type ScriptArgument = string | number;

export function reserveArguments(
  request: Omit<ReserveRequest, 'customer'>,
  shape: WindowShape,
  freshEpoch: string,
): ScriptArgument[] {
  const { need, ahead, limit, holdMs, refunds } = request;
  return [...windowArguments(shape, freshEpoch), need, ahead, limit, holdMs, ...refundArguments(refunds)];
}

export function chargeArguments(
  admitted: readonly AdmittedUnits[],
  shape: WindowShape,
  freshEpoch: string,
): ScriptArgument[] {
  return [...windowArguments(shape, freshEpoch), ...admitted.flatMap(({ ageMs, units }) => [ageMs, units])];
}

export function refundArguments(refunds: readonly Omit<Refund, 'session'>[]): ScriptArgument[] {
  return refunds.flatMap(({ epoch, bucket, units }) => [epoch, bucket, units]);
}

/** Parses the reply of reserve.lua. @throws UnexpectedReplyError when it has another form. */
export function parseGrant(reply: unknown): WindowGrant {
  if (!Array.isArray(reply) || reply.length !== 8) throw new UnexpectedReplyError('reserve');
  const [granted, free, used, waitMs, bucket, epoch, storeTimeMs, holdEndMs] = reply;
  const numbers = { granted, free, used, waitMs, bucket, storeTimeMs, holdEndMs };
  if (typeof epoch !== 'string' || !Object.values(numbers).every(Number.isSafeInteger)) {
    throw new UnexpectedReplyError('reserve');
  }
  return { ...numbers, epoch };
}

/**
 * Parses the number of units that refund.lua refunded, or that are counted after charge.lua.
 * @throws UnexpectedReplyError when the reply is not an integer.
 */
export function parseUnits(reply: unknown, command: 'refund' | 'charge'): number {
  if (typeof reply !== 'number' || !Number.isSafeInteger(reply)) throw new UnexpectedReplyError(command);
  return reply;
}

function windowArguments({ windowMs, bucketMs }: WindowShape, freshEpoch: string): ScriptArgument[] {
  return [windowMs, bucketMs, freshEpoch];
}

function read(file: string): string {
  return readFileSync(new URL(`./${file}`, import.meta.url), 'utf8');
}
