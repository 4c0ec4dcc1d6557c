/**
 * The name of every Redis key. Braces mark what a cluster hashes, so that all keys of one customer share a slot.
 * The key and customer hashes are public: other programs write them too.
 */

/** Hash: the record of the API key with this SHA-256 (lower-case hex). */
export const keyRecordName = (prefix: string, sha256: string): string => `${prefix}:key:${sha256}`;

/** Hash: the customer's record. */
export const customerRecordName = (prefix: string, customer: string): string => `${prefix}:customer:{${customer}}`;

/** String: the SHA-256 of the API key with this id. */
export const keyIdName = (prefix: string, keyId: string): string => `${prefix}:key-id:${keyId}`;

/** Set: the ids of the customer's keys. */
export const customerKeysName = (prefix: string, customer: string): string => `${prefix}:customer-keys:{${customer}}`;

/** Hash: the customer's hourly window. */
export const windowName = (prefix: string, customer: string): string => `${prefix}:window:{${customer}}`;

/** Sorted set: the instances that said that they run, by the store's time of it in milliseconds. */
export const instancesName = (prefix: string): string => `${prefix}:instances`;

/** String: the random id of this installation. */
export const installedName = (prefix: string): string => `${prefix}:installed`;

/** For SCAN MATCH: every name under the prefix, which itself is taken letter by letter. */
export const everyName = (prefix: string): string => `${prefix.replace(/[\\*?[\]]/g, '\\$&')}:*`;

export type TrackedName =
  | { readonly kind: 'key'; readonly sha256: string }
  | { readonly kind: 'customer'; readonly id: string }
  | { readonly kind: 'installed' };

/**
 * What a pushed name stands for; undefined for names of which nothing is kept in memory: indexes, the list of instances,
 * and a window after it was reset.
 */
export function parseTrackedName(prefix: string, name: string): TrackedName | undefined {
  if (name === installedName(prefix)) return { kind: 'installed' };
  const sha256 = between(keyRecordName(prefix, ''), name, '');
  if (sha256 !== undefined) return { kind: 'key', sha256 };
  const id = between(`${prefix}:customer:{`, name, '}');
  return id === undefined ? undefined : { kind: 'customer', id };
}

function between(start: string, name: string, end: string): string | undefined {
  if (!name.startsWith(start) || !name.endsWith(end)) return undefined;
  return name.slice(start.length, name.length - end.length);
}
