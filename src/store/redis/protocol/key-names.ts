/**
 * The name of every Redis key. In a cluster only the part in braces is hashed, so all Redis keys named after a customer
 * share a slot. The hashes of API keys and customers are a public format: other programs write them too.
 */

/** Hash: the record of the API key with this SHA-256 (lower-case hex). */
export const keyRecordName = (prefix: string, sha256: string): string => `${prefix}:key:${sha256}`;

/** Hash: the customer's record. */
export const customerRecordName = (prefix: string, customer: string): string => `${prefix}:customer:{${customer}}`;

/** Hash: the name that other programs write when they omit the braces of {@link customerRecordName}. */
export const unbracedCustomerName = (prefix: string, customer: string): string => `${prefix}:customer:${customer}`;

/**
 * Returns enough of a record's name to find it, for logs and reports. The full hash would let readers of a log verify
 * guessed API keys. Text that is not a hash may be the API key itself, written there by mistake.
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

/** String: the secret that signs the customer's notices. */
export const notifySecretName = (prefix: string, customer: string): string => `${prefix}:notify-secret:{${customer}}`;

/** String: the secret before it, which expires when it is no longer in force. */
export const formerNotifySecretName = (prefix: string, customer: string): string =>
  `${notifySecretName(prefix, customer)}:former`;

/** Hash: the customer's requests and refusals by UTC hour of one day (`yyyymmdd`). */
export const usageDayName = (prefix: string, customer: string, day: string): string =>
  `${prefix}:usage:{${customer}}:${day}`;

/** Hash: the customer's requests by UTC day of one year (`yyyy`). */
export const usageYearName = (prefix: string, customer: string, year: string): string =>
  `${prefix}:usage-days:{${customer}}:${year}`;

/** Hash: totals by hour and plan of one UTC day (`yyyymmdd`). */
export const usageTotalName = (prefix: string, day: string): string => `${prefix}:usage-total:${day}`;

/** Sorted set: customers near their limits, by the percentage last seen. */
export const nearName = (prefix: string): string => `${prefix}:near`;

/** Hash: what the customer's notices were about, and those that are not delivered. */
export const noticesName = (prefix: string, customer: string): string => `${prefix}:notices:{${customer}}`;

/** Sorted set: notices to deliver, by the store time at which they are due. */
export const pendingNoticesName = (prefix: string): string => `${prefix}:notices-due`;

/** Sorted set: notices that could not be delivered, by the store time at which they were given up. */
export const deadNoticesName = (prefix: string): string => `${prefix}:notices-dead`;

/** Hash: when an endpoint said that it wants no more notices, by URL. */
export const goneEndpointsName = (prefix: string): string => `${prefix}:notices-gone`;

/** Sorted sets that versions before 0.3.0 wrote: indexes for searches, and customers with claimed levels. */
export const formerIndexNames = (prefix: string): readonly string[] => [
  `${prefix}:customer-index`,
  `${prefix}:key-index`,
  `${prefix}:notices-levels`,
];

/** Sorted set: the instances, by the store time of their last announcement in milliseconds. */
export const instancesName = (prefix: string): string => `${prefix}:instances`;

/** String: what an instance tells about itself, as JSON. */
export const instanceName = (prefix: string, instance: string): string => `${prefix}:instance:${instance}`;

/** Sorted set: the customers and codes of refusals, by the time of the last one. */
export const refusedName = (prefix: string): string => `${prefix}:refused`;

/** Sorted set: the ids of keys, by the time of their last use in milliseconds. */
export const keyUsesName = (prefix: string): string => `${prefix}:key-uses`;

/** Stream: the audit log. */
export const auditName = (prefix: string): string => `${prefix}:audit`;

/** String: the random id of this installation. */
export const installedName = (prefix: string): string => `${prefix}:installed`;

/** String: a copy of that id, in the part of a cluster's slots that the tag hashes to. */
export const installedPartName = (prefix: string, tag: string): string => `${installedName(prefix)}:{${tag}}`;

/** Hash: how many evictions `store init` accepted, by the run id of the server. */
export const acceptedEvictionsName = (prefix: string): string => `${installedName(prefix)}:evictions`;

/** The Redis key on which permissions are checked. Exists at most during the check. */
export const permissionCheckName = (prefix: string): string => `${prefix}:permission-check`;

/** Returns the SCAN MATCH pattern for every name that starts with `beginning`, taken literally. */
const everyNameFrom = (beginning: string): string => `${beginning.replace(/[\\*?[\]]/g, '\\$&')}*`;

/** Returns the SCAN MATCH pattern for every name under the prefix. */
export const everyName = (prefix: string): string => everyNameFrom(`${prefix}:`);

/** A SCAN MATCH pattern with a parser for the names that it finds. The parser returns undefined for a partial match. */
interface NameFamily {
  readonly pattern: (prefix: string) => string;
  readonly parse: (prefix: string, name: string) => string | undefined;
}

/** Names of key records. Parsed to what should be a SHA-256: see {@link isSha256}. */
export const KEY_RECORDS: NameFamily = family(':key:', '');
/** Names of customer records. Parsed to the customer's id. */
export const CUSTOMER_RECORDS: NameFamily = family(':customer:{', '}');
/** Names of customer records, with and without braces. Parsed to the part after the colon. */
export const CUSTOMER_RECORD_NAMES: NameFamily = family(':customer:', '');
/** Names of index entries by key id. Parsed to the key's id. */
export const KEY_IDS: NameFamily = family(':key-id:', '');
/** Names of the sets of customers' keys. Parsed to the customer's id. */
export const CUSTOMER_KEYS: NameFamily = family(':customer-keys:{', '}');

/** Returns whether `text` is a SHA-256 in lower-case hex. A key record with any other name is never looked up. */
export function isSha256(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** Returns the prefixes of the names whose changes Redis pushes. None may be the beginning of another. */
export const trackedPrefixes = (prefix: string): readonly string[] => [
  `${prefix}:key:`,
  `${prefix}:customer:`,
  installedName(prefix),
];

export type TrackedName =
  | { readonly kind: 'key'; readonly sha256: string }
  | { readonly kind: 'customer'; readonly id: string }
  | { readonly kind: 'installed' };

/** Returns what a pushed name refers to; undefined if only its beginning fits. */
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
