import type { Clock } from '../clock.ts';
import type { CustomerRecord, KeyRecord, RecordStore } from '../store/store.ts';
import { failsChecksum, sha256Hex } from './api-key.ts';

export type Authentication =
  | {
      readonly outcome: 'known';
      readonly key: KeyRecord;
      /** Wall time in ms at which the key ends, if it does. */
      readonly expiresAtMs: number | undefined;
      /** Undefined: the key names a customer that has no record. */
      readonly customer: CustomerRecord | undefined;
    }
  | { readonly outcome: 'invalid'; readonly reason: 'checksum' | 'unknown' | 'revoked' | 'expired' };

export interface Authenticator {
  /** Rejects with StoreUnavailableError when the answer is not to be had: never an outcome about the key. */
  authenticate(token: string): Promise<Authentication>;
}

/** An unreadable date ends the key at once: whoever wrote it meant a bound, and none of ours is safe to assume. */
function parseExpiry(expiresAt: string | undefined): number | undefined {
  if (expiresAt === undefined) return undefined;
  const expiresAtMs = Date.parse(expiresAt);
  return Number.isNaN(expiresAtMs) ? 0 : expiresAtMs;
}

/** Looks each key up by its SHA-256, so that the store never holds what could be presented to the gateway. */
export function createAuthenticator(records: RecordStore, clock: Clock): Authenticator {
  return {
    async authenticate(token) {
      if (failsChecksum(token)) return { outcome: 'invalid', reason: 'checksum' };
      const key = await records.findKey(sha256Hex(token));
      if (key === undefined) return { outcome: 'invalid', reason: 'unknown' };
      if (key.revokedAt !== undefined) return { outcome: 'invalid', reason: 'revoked' };
      const expiresAtMs = parseExpiry(key.expiresAt);
      if (expiresAtMs !== undefined && expiresAtMs <= clock.nowMs()) return { outcome: 'invalid', reason: 'expired' };
      return { outcome: 'known', key, expiresAtMs, customer: await records.findCustomer(key.customer) };
    },
  };
}
