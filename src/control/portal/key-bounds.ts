/** What a customer's keys may at most do, and for how long: a customer may restrict its keys, but never allow them more. */
import { keyState, oldestFirst } from '../../customers/keys/key-state.ts';
import { isWithinRestrictions, type KeyRestrictions, type WantedRestrictions } from '../../formats/key-restrictions.ts';
import { parseTimestamp } from '../../formats/timestamp.ts';
import { expiryMsOf, type KeyChange, type KeyRecord } from '../../store/record-fields.ts';
import { isoTime } from '../frame/document-of.ts';
import { Refusal } from '../frame/refusal.ts';

/** Keys that a refusal names the restrictions of. */
const MAX_NAMED = 3;

/** Returns the refusal of a change that allows the key more than it may now. */
export function wideningProblem(current: KeyRestrictions, change: KeyChange): Refusal | undefined {
  const excess = excessOf({ ...current, ...change }, current);
  return excess === '' ? undefined : new Refusal('unprocessable', excess);
}

/**
 * Returns the keys that bound a new one: those in use. Without any, the one that ended last: otherwise a customer could
 * revoke its restricted keys, and then create one without restrictions.
 */
export function boundsOfNewKey(stored: readonly KeyRecord[], nowMs: number): readonly KeyRecord[] {
  const live = oldestFirst(stored.filter((key) => keyState(key, nowMs) === 'live'));
  if (live.length > 0) return live;
  const ended = stored.filter(({ replacedBy }) => replacedBy === undefined);
  return ended.toSorted((a, b) => endMsOf(b) - endMsOf(a)).slice(0, 1);
}

function endMsOf({ revokedAt, expiresAt }: KeyRecord): number {
  return Math.min(...[revokedAt, expiresAt].map((at) => (at === undefined ? Infinity : (parseTimestamp(at) ?? 0))));
}

/**
 * Returns when a new key ends. It may do what one of these keys may, and no longer than that one; anything if there is
 * none. Undefined: it has no end. @throws Refusal
 */
export function endOfNewKey(
  keys: readonly KeyRecord[],
  wanted: WantedRestrictions & { readonly expiresAt?: string | undefined },
  nowMs: number,
): string | undefined {
  if (keys.length === 0) return wanted.expiresAt;
  const bounding = keys.filter((key) => excessOf(wanted, key) === '');
  if (bounding.length === 0) {
    const excesses = new Set(keys.map((key) => excessOf(wanted, key)));
    const named = [...excesses].slice(0, MAX_NAMED).join(' – or ');
    throw new Refusal('unprocessable', `A new key may do no more than one of your keys. ${named}`);
  }
  const endMs = Math.max(...bounding.map((key) => expiryMsOf(key) ?? Infinity));
  if (endMs <= nowMs)
    throw new Refusal('conflict', 'The key that a new one would be made from has expired. Contact support.');
  if (endMs === Infinity) return wanted.expiresAt;
  if (wanted.expiresAt === undefined) return isoTime(endMs);
  if ((parseTimestamp(wanted.expiresAt) ?? Infinity) <= endMs) return wanted.expiresAt;
  throw new Refusal('unprocessable', `expires_at: must be no later than ${isoTime(endMs)}, like your key.`);
}

/** Returns which members allow more than those of `most`, in the form of details; empty if none does. */
function excessOf({ scopes, allowedAddresses }: WantedRestrictions, most: KeyRestrictions): string {
  const excesses = [
    !isWithinRestrictions({ scopes }, { scopes: most.scopes }) && `scopes: ${atMost('must be some of', most.scopes)}`,
    !isWithinRestrictions({ allowedAddresses }, { allowedAddresses: most.allowedAddresses }) &&
      `allowed_addresses: ${atMost('must be within', most.allowedAddresses)}`,
  ];
  return excesses.filter(Boolean).join('; ');
}

function atMost(rule: string, items: readonly string[] = []): string {
  return items.length > 0 ? `${rule} ${items.join(', ')}` : 'unreadable in the record of the key; contact support';
}
