import { parseTimestamp } from '../base/timestamp.ts';
import type { KeyRecord } from './record-fields.ts';

/** Wall times in ms, both inclusive. */
export interface ExpiryRange {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Returns the wall time in ms at which a key expires; undefined if it does not, or the time is unreadable. */
export function readableExpiryMs({ expiresAt }: Pick<KeyRecord, 'expiresAt'>): number | undefined {
  return expiresAt === undefined ? undefined : parseTimestamp(expiresAt);
}

export function expiresWithin(key: Pick<KeyRecord, 'expiresAt'>, { fromMs, toMs }: ExpiryRange): boolean {
  const expiryMs = readableExpiryMs(key);
  return expiryMs !== undefined && expiryMs >= fromMs && expiryMs <= toMs;
}
