import { randomUUID } from 'node:crypto';

const SANE_REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._:=@+/-]{0,127}$/;
const SHORTEST_KEY_LENGTH = 8;

/**
 * Returns the client's `X-Request-Id` if it is a plain token of at most 128 characters, else a new UUID. A value that
 * could contain a key, or a part of one, is not used, because request ids are logged.
 */
export function chooseRequestId(fromCaller: string | string[] | undefined, authorization = ''): string {
  if (typeof fromCaller !== 'string' || !SANE_REQUEST_ID.test(fromCaller)) return randomUUID();
  const token = authorization.slice(authorization.lastIndexOf(' ') + 1);
  const isPartOfKey = fromCaller.length >= SHORTEST_KEY_LENGTH && authorization.includes(fromCaller);
  const hasKey = token.length >= SHORTEST_KEY_LENGTH && fromCaller.includes(token);
  return isPartOfKey || hasKey || fromCaller.includes('tg_') ? randomUUID() : fromCaller;
}
