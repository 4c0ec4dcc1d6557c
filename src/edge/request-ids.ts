import { randomUuid } from '../base/random-uuid.ts';

const SANE_REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._:=@+/-]{0,127}$/;
const MIN_KEY_LENGTH = 8;

/**
 * Returns the client's `X-Request-Id` if it is a plain token of at most 128 characters, else a new UUID. A value that
 * could contain a key, or a part of one, is not used, because request ids are logged.
 */
export function chooseRequestId(fromClient: string | string[] | undefined, authorization = ''): string {
  if (typeof fromClient !== 'string' || !SANE_REQUEST_ID.test(fromClient)) return randomUuid();
  const token = authorization.slice(authorization.lastIndexOf(' ') + 1);
  const isPartOfKey = fromClient.length >= MIN_KEY_LENGTH && authorization.includes(fromClient);
  const hasKey = token.length >= MIN_KEY_LENGTH && fromClient.includes(token);
  return isPartOfKey || hasKey || fromClient.includes('tg_') ? randomUuid() : fromClient;
}
