import { randomUuid } from '../base/random-uuid.ts';

const SANE_REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._:=@+/-]{0,127}$/;
const MIN_KEY_LENGTH = 8;
/** Version, trace id, parent id and flags of a `traceparent`, and whatever later versions append. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-|$)/;
const NO_TRACE = '0'.repeat(32);
const NO_PARENT = '0'.repeat(16);

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

/**
 * Returns the trace id of a request; undefined without a valid `traceparent` (W3C Trace Context §3.2). Version `ff` is
 * invalid, version `00` has nothing appended, and neither id is all zeros. Node.js joins repeated headers by commas,
 * which makes them invalid.
 */
export function traceId(traceparent: string | string[] | undefined): string | undefined {
  if (typeof traceparent !== 'string') return undefined;
  const [, version, trace, parent, appended] = TRACEPARENT.exec(traceparent) ?? [];
  if (version === 'ff' || trace === NO_TRACE || parent === NO_PARENT) return undefined;
  return version === '00' && appended === '-' ? undefined : trace;
}
