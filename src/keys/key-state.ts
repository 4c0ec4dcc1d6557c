import type { EnforcedKey, KeyRecord } from '../store/store.ts';
import { parseTimestamp } from '../timestamp.ts';

export type KeyState = 'live' | 'revoked' | 'expired';

/**
 * Wall time in ms at which a key ends, if it does. An unreadable time ends it at once: whoever wrote it meant a bound,
 * and none of ours is safe to assume.
 */
export function expiryMsOf({ expiresAt }: Pick<EnforcedKey, 'expiresAt'>): number | undefined {
  return expiresAt === undefined ? undefined : (parseTimestamp(expiresAt) ?? 0);
}

export function keyState(record: EnforcedKey, nowMs: number): KeyState {
  if (record.revokedAt !== undefined) return 'revoked';
  const expiresAtMs = expiryMsOf(record);
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? 'expired' : 'live';
}

/**
 * Whether a key that could still be used has not been since `sinceMs`. One that never was counts from its creation, and
 * one whose creation nobody wrote down as old.
 */
export function isUnusedSince(
  record: KeyRecord,
  lastUsedMs: number | undefined,
  { sinceMs, nowMs }: { readonly sinceMs: number; readonly nowMs: number },
): boolean {
  if (keyState(record, nowMs) !== 'live') return false;
  const createdAtMs = record.createdAt === undefined ? undefined : parseTimestamp(record.createdAt);
  return (lastUsedMs ?? createdAtMs ?? 0) <= sinceMs;
}
