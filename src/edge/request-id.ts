import { randomUUID } from 'node:crypto';

const SANE_REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._:=@+/-]{0,127}$/;
const SHORTEST_KEY_LENGTH = 8;

/**
 * The caller's `X-Request-Id` when it is a plain token of at most 128 characters, else a new UUID. What could be a
 * key is not taken over: this value is logged.
 */
export function chooseRequestId(fromCaller: string | string[] | undefined, authorization: string | undefined): string {
  if (typeof fromCaller !== 'string' || !SANE_REQUEST_ID.test(fromCaller)) return randomUUID();
  const couldBeKey = fromCaller.length >= SHORTEST_KEY_LENGTH && authorization?.includes(fromCaller);
  if (couldBeKey || fromCaller.startsWith('tg_')) return randomUUID();
  return fromCaller;
}
