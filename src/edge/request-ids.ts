import { randomUuid } from '../base/random-uuid.ts';
import { comparableName } from '../formats/header-names.ts';
import type { KeyHeaders } from './credentials.ts';

const SANE_REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._:=@+/-]{0,127}$/;
const MIN_KEY_LENGTH = 8;

/**
 * Returns the client's `X-Request-Id` if it is a plain token of at most 128 characters, else a new UUID. A value that
 * could contain a key, or a part of one, is not used, because request ids are logged.
 */
export function chooseRequestId(
  fromClient: string | string[] | undefined,
  rawHeaders: readonly string[],
  { lengths, comparableNames }: Pick<KeyHeaders, 'lengths' | 'comparableNames'>,
): string {
  if (typeof fromClient !== 'string' || !SANE_REQUEST_ID.test(fromClient)) return randomUuid();
  if (fromClient.includes('tg_')) return randomUuid();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (lengths[name.length] !== true || !comparableNames.has(comparableName(name.toLowerCase()))) continue;
    if (sharesText(fromClient, rawHeaders[i + 1] ?? '')) return randomUuid();
  }
  return fromClient;
}

/** Returns whether a request id contains a key, or a part of one. `credentials`: the value of a header, or a key. */
export function sharesText(requestId: string, credentials: string): boolean {
  const token = credentials.slice(credentials.lastIndexOf(' ') + 1);
  const isPartOfKey = requestId.length >= MIN_KEY_LENGTH && credentials.includes(requestId);
  return isPartOfKey || (token.length >= MIN_KEY_LENGTH && requestId.includes(token));
}
