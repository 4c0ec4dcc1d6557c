/**
 * The name of every Redis key. Braces mark what a cluster hashes, so that all keys of one customer share a slot.
 * The key and customer hashes are public: other programs write them too.
 */

/** Hash: the record of the API key with this SHA-256 (lower-case hex). */
export const keyRecordName = (prefix: string, sha256: string): string => `${prefix}:key:${sha256}`;

/** Hash: the customer's record. */
export const customerRecordName = (prefix: string, customer: string): string => `${prefix}:customer:{${customer}}`;

/** What programs that overlook the braces write in place of {@link customerRecordName}. */
export const unbracedCustomerName = (prefix: string, customer: string): string => `${prefix}:customer:${customer}`;

/**
 * For logs and reports: enough of a name to find the record by. All of the hash would let readers of a log try out keys that
 * they can guess. What is no hash may be the key itself, written there by mistake.
 */
export function shownKeyRecordName(prefix: string, sha256: string): string {
  return `${keyRecordName(prefix, sha256.slice(0, isSha256(sha256) ? 12 : 4))}…`;
}

/** String: the SHA-256 of the API key with this id. */
export const keyIdName = (prefix: string, keyId: string): string => `${prefix}:key-id:${keyId}`;

/** Set: the ids of the customer's keys. */
export const customerKeysName = (prefix: string, customer: string): string => `${prefix}:customer-keys:{${customer}}`;

/** Hash: the customer's hourly window. */
export const windowName = (prefix: string, customer: string): string => `${prefix}:window:{${customer}}`;

/** Sorted set: the instances that said that they run, by the store's time of it in milliseconds. */
export const instancesName = (prefix: string): string => `${prefix}:instances`;

/** Sorted set: the ids of keys, by the time of their last use in milliseconds. */
export const keyUsesName = (prefix: string): string => `${prefix}:key-uses`;

/** Stream: what was changed through the admin API. */
export const auditName = (prefix: string): string => `${prefix}:audit`;

/** String: the random id of this installation. */
export const installedName = (prefix: string): string => `${prefix}:installed`;

/** String: the same id once more, in the part of a cluster's slots that the tag hashes to. */
export const installedPartName = (prefix: string, tag: string): string => `${installedName(prefix)}:{${tag}}`;

/** Hash: how many evictions `store init` accepted, by the run id of the server. */
export const acceptedEvictionsName = (prefix: string): string => `${installedName(prefix)}:evictions`;

/** Nothing: the name on which permissions are checked. */
export const permissionCheckName = (prefix: string): string => `${prefix}:permission-check`;

/** For SCAN MATCH: every name that begins so; the beginning is taken letter by letter. */
export const everyNameFrom = (beginning: string): string => `${beginning.replace(/[\\*?[\]]/g, '\\$&')}*`;

/** For SCAN MATCH: every name under the prefix. */
export const everyName = (prefix: string): string => everyNameFrom(`${prefix}:`);

/** For SCAN MATCH, and how the names that it finds are read; undefined for a name that has only the beginning right. */
export interface NameFamily {
  readonly pattern: (prefix: string) => string;
  readonly parse: (prefix: string, name: string) => string | undefined;
}

/** Names of keys' records, by what should be a SHA-256: see {@link isSha256}. */
export const KEY_RECORDS: NameFamily = family(':key:', '');
/** Names of customers' records, by the customer's id. */
export const CUSTOMER_RECORDS: NameFamily = family(':customer:{', '}');
/** The same and names without braces, by what comes after the colon. */
export const CUSTOMER_RECORD_NAMES: NameFamily = family(':customer:', '');
/** Names of index entries, by the key's id. */
export const KEY_IDS: NameFamily = family(':key-id:', '');
/** Names of the sets of customers' keys, by the customer's id. */
export const CUSTOMER_KEYS: NameFamily = family(':customer-keys:{', '}');

/** A record under another name belongs to no key: that of a key is looked up under nothing else. */
export function isSha256(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** The names whose changes Redis pushes begin so. None of these may be the beginning of another. */
export const trackedPrefixes = (prefix: string): readonly string[] => [
  `${prefix}:key:`,
  `${prefix}:customer:`,
  installedName(prefix),
];

export type TrackedName =
  | { readonly kind: 'key'; readonly sha256: string }
  | { readonly kind: 'customer'; readonly id: string }
  | { readonly kind: 'installed' };

/** What a pushed name stands for; undefined for a name that has only the beginning right. */
export function parseTrackedName(prefix: string, name: string): TrackedName | undefined {
  if (name === installedName(prefix) || name.startsWith(`${installedName(prefix)}:`)) return { kind: 'installed' };
  const sha256 = KEY_RECORDS.parse(prefix, name);
  if (sha256 !== undefined) return { kind: 'key', sha256 };
  const id = CUSTOMER_RECORDS.parse(prefix, name);
  return id === undefined ? undefined : { kind: 'customer', id };
}

function family(start: string, end: string): NameFamily {
  return {
    pattern: (prefix) => everyNameFrom(prefix + start),
    parse: (prefix, name) => between(prefix + start, name, end),
  };
}

function between(start: string, name: string, end: string): string | undefined {
  if (!name.startsWith(start) || !name.endsWith(end)) return undefined;
  return name.slice(start.length, name.length - end.length);
}
