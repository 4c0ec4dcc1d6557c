import { isKeyId } from '../../formats/ids.ts';
import type { EnforcedKey } from '../../store/record-fields.ts';
import type { KeyLimit } from '../../store/windows.ts';

/** The limit of a key under that of its customer, by its record. */
export interface KeyCeiling {
  readonly limit: KeyLimit;
  readonly keyId: string;
  /**
   * Names the leases that requests with the key use. Another number, and a reset of the key's usage, begin other leases, so
   * keys that share a window may have different limits.
   */
  readonly leases: string;
  /** ISO 8601; '': never. */
  readonly usageResetAt: string;
}

/** Undefined: the key has no limit. `'unreadable'`: the key must be refused. */
export type CeilingOfKey = KeyCeiling | 'unreadable' | undefined;

/** Returns the window of a key's line of rotations. */
export function rootOf({ id, root = id }: Pick<EnforcedKey, 'id' | 'root'>): string {
  return root;
}

export function ceilingOf(key: EnforcedKey): CeilingOfKey {
  const { customer, id, requestsPerHour, usageResetAt = '' } = key;
  if (requestsPerHour === undefined) return undefined;
  const root = rootOf(key);
  if (requestsPerHour === 'invalid' || !isKeyId(root)) return 'unreadable';
  const limit: KeyLimit = { policy: 'key', amount: requestsPerHour, root };
  return { limit, keyId: id, leases: `${customer} ${id} ${root} ${requestsPerHour} ${usageResetAt}`, usageResetAt };
}
