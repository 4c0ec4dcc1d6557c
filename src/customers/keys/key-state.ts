import { parseTimestamp } from '../../formats/timestamp.ts';
import { type EnforcedKey, expiryMsOf, type KeyRecord } from '../../store/record-fields.ts';
import { ceilingOf } from '../quota/key-ceiling.ts';

/** The states of a key's record; its customer may also be suspended. `rotated`: replaced, and valid until it expires. */
type KeyState = 'live' | 'rotated' | 'expired' | 'revoked';

export function keyState(record: EnforcedKey, nowMs: number): KeyState {
  if (record.revokedAt !== undefined) return 'revoked';
  const expiresAtMs = expiryMsOf(record);
  if (expiresAtMs !== undefined && expiresAtMs <= nowMs) return 'expired';
  return record.replacedBy === undefined ? 'live' : 'rotated';
}

/** Returns whether a key is neither revoked nor expired. */
export function isValidKey(record: EnforcedKey, nowMs: number): boolean {
  return ['live', 'rotated'].includes(keyState(record, nowMs));
}

/** Returns whether every request with the key is refused, because its record cannot be read. */
export function isUnreadable(key: EnforcedKey): boolean {
  return key.scopes?.length === 0 || key.allowedAddresses?.length === 0 || ceilingOf(key) === 'unreadable';
}

/**
 * Returns whether a valid key has not been used since `sinceMs`. A key that was never used counts from its creation.
 * Without a creation time, it counts as unused.
 */
export function isUnusedSince(
  record: KeyRecord,
  lastUsedMs: number | undefined,
  { sinceMs, nowMs }: { readonly sinceMs: number; readonly nowMs: number },
): boolean {
  return isValidKey(record, nowMs) && (lastUsedMs ?? createdAtMs(record)) <= sinceMs;
}

/** Returns the keys sorted by age. Those of unknown age come first. */
export function oldestFirst(keys: readonly KeyRecord[]): KeyRecord[] {
  return keys.toSorted((a, b) => createdAtMs(a) - createdAtMs(b) || (a.id < b.id ? -1 : 1));
}

function createdAtMs({ createdAt = '' }: KeyRecord): number {
  return parseTimestamp(createdAt) ?? 0;
}
