/**
 * The name of every Redis key. In a cluster only the part in braces is hashed, so all Redis keys named after a customer
 * share a slot. The hashes of API keys and customers are a public format: other programs write them too.
 */

export type RedisKeyNames = ReturnType<typeof redisKeyNames>;

/** Returns the names under a prefix. */
export function redisKeyNames(prefix: string) {
  const everyNameFrom = (beginning: string) => `${(prefix + beginning).replace(/[\\*?[\]]/g, '\\$&')}*`;
  const family = (beginning: string, end = ''): NameFamily => ({
    pattern: everyNameFrom(beginning),
    parse: (name) => between(prefix + beginning, name, end),
  });
  const keyRecord = (sha256: string) => `${prefix}:key:${sha256}`;
  const notifySecret = (customer: string) => `${prefix}:notify-secret:{${customer}}`;
  const installed = `${prefix}:installed`;
  const maintenance = `${prefix}:maintenance`;
  const window = (customer: string, root?: string) =>
    root === undefined ? `${prefix}:window:{${customer}}` : `${prefix}:window:{${customer}}:${root}`;
  const keyRecords = family(':key:');
  const customerRecords = family(':customer:{', '}');

  return {
    /** Hash: the record of the API key with this SHA-256 (lower-case hex). */
    keyRecord,
    /** Names of key records. Parsed to what should be a SHA-256: see {@link isSha256}. */
    keyRecords,
    /**
     * Returns enough of a record's name to find it, for logs and reports. The full hash would let readers of a log verify
     * guessed API keys. Text that is not a hash may be the API key itself, written there by mistake.
     */
    shownKeyRecord: (sha256: string) => `${keyRecord(sha256.slice(0, isSha256(sha256) ? 12 : 4))}…`,
    /** Hash: the customer's record. */
    customerRecord: (customer: string) => `${prefix}:customer:{${customer}}`,
    /** Names of customer records. Parsed to the customer's id. */
    customerRecords,
    /** Hash: the name that other programs write when they omit the braces of `customerRecord`. */
    unbracedCustomer: (customer: string) => `${prefix}:customer:${customer}`,
    /** Names of customer records, with and without braces. Parsed to the part after the colon. */
    customerRecordNames: family(':customer:'),
    /** String: the SHA-256 of the API key with this id. */
    keyId: (keyId: string) => `${prefix}:key-id:${keyId}`,
    /** Names of index entries by key id. Parsed to the key's id. */
    keyIds: family(':key-id:'),
    /** Set: the ids of the customer's keys. */
    customerKeys: (customer: string) => `${prefix}:customer-keys:{${customer}}`,
    /** Names of the sets of customers' keys. Parsed to the customer's id. */
    customerKeySets: family(':customer-keys:{', '}'),
    /** Sorted set: the ids of keys, by the time of their last use in milliseconds. */
    keyUses: `${prefix}:key-uses`,
    /** Hash: the customer's hourly window; with a root, that of one of its keys. */
    window,
    /** Hash: grants of the customer that are not settled, by id. */
    grants: (customer: string) => `${prefix}:grants:{${customer}}`,
    /** Hash: what the customer's days and months count. */
    period: (customer: string) => `${prefix}:period:{${customer}}`,
    /** String: the secret that signs the customer's notices. */
    notifySecret,
    /** String: the secret before it, which expires when it is no longer in force. */
    formerNotifySecret: (customer: string) => `${notifySecret(customer)}:former`,
    /** String: the customer of the portal session with this SHA-256 of its secret. Expires with the secret. */
    portalSecret: (sha256: string) => `${prefix}:portal-secret:${sha256}`,
    /** Hash: the customer's portal sessions, by the SHA-256 of their secrets. */
    portalSessions: (customer: string) => `${prefix}:portal-sessions:{${customer}}`,
    /** Sorted set: the customer's writes in the portal within the last hour, by store time in ms. */
    portalWrites: (customer: string) => `${prefix}:portal-writes:{${customer}}`,
    /** Hash: the customer's requests and refusals by UTC hour of one day (`yyyymmdd`). */
    usageDay: (customer: string, day: string) => `${prefix}:usage:{${customer}}:${day}`,
    /** Hash: the customer's requests by UTC day of one year (`yyyy`). */
    usageYear: (customer: string, year: string) => `${prefix}:usage-days:{${customer}}:${year}`,
    /** Hash: totals by hour and plan of one UTC day (`yyyymmdd`). */
    usageTotal: (day: string) => `${prefix}:usage-total:${day}`,
    /** Sorted set: customers near their limits, by the percentage last seen. */
    near: `${prefix}:near`,
    /** Sorted set: the customers and codes of refusals, by the time of the last one. */
    refused: `${prefix}:refused`,
    /** Hash: calls of deprecated routes on one UTC day (`yyyymmdd`), by customer and route. */
    deprecated: (day: string) => `${prefix}:deprecated:${day}`,
    /** Sorted set: requests that were refused or failed, as JSON, by time in ms. */
    failedRequests: `${prefix}:requests`,
    /** Hash: what the customer's notices were about, and those that are not delivered. */
    notices: (customer: string) => `${prefix}:notices:{${customer}}`,
    /** Sorted set: notices to deliver, by the store time at which they are due. */
    pendingNotices: `${prefix}:notices-due`,
    /** Sorted set: notices that could not be delivered, by the store time at which they were given up. */
    deadNotices: `${prefix}:notices-dead`,
    /** Hash: when an endpoint said that it wants no more notices, by URL. */
    goneEndpoints: `${prefix}:notices-gone`,
    /** Sorted sets that versions before 0.3.0 wrote: indexes for searches, and customers with claimed levels. */
    formerIndexes: [`${prefix}:customer-index`, `${prefix}:key-index`, `${prefix}:notices-levels`],
    /** Sorted set: the instances, by the store time of their last announcement in milliseconds. */
    instances: `${prefix}:instances`,
    /** String: what an instance tells about itself, as JSON. */
    instance: (instance: string) => `${prefix}:instance:${instance}`,
    /** String: which requests are refused for maintenance, as JSON. */
    maintenance,
    /** Stream: the audit log. */
    audit: `${prefix}:audit`,
    /** String: the random id of this installation. */
    installed,
    /** String: a copy of that id, in the part of a cluster's slots that the tag hashes to. */
    installedPart: (tag: string) => `${installed}:{${tag}}`,
    /** Hash: how many evictions `store init` accepted, by the run id of the server. */
    acceptedEvictions: `${installed}:evictions`,
    /** The Redis key on which permissions are checked. Exists at most during the check. */
    permissionCheck: `${prefix}:permission-check`,
    /** What all names begin with, for people. */
    prefix,
    /** The SCAN MATCH pattern for every name under the prefix. */
    everyName: everyNameFrom(':'),
    /** The prefixes of the names whose changes Redis pushes. None may be the beginning of another. */
    trackedPrefixes: [`${prefix}:key:`, `${prefix}:customer:`, installed, maintenance],
    /** Returns what a pushed name refers to; undefined if only its beginning fits. */
    parseTracked(name: string): TrackedName | undefined {
      if (name === installed || name.startsWith(`${installed}:`)) return { kind: 'installed' };
      if (name === maintenance) return { kind: 'maintenance' };
      const sha256 = keyRecords.parse(name);
      if (sha256 !== undefined) return { kind: 'key', sha256 };
      const id = customerRecords.parse(name);
      return id === undefined ? undefined : { kind: 'customer', id };
    },
  };
}

/** A SCAN MATCH pattern, and a parser for the names that it finds. The parser returns undefined for a partial match. */
interface NameFamily {
  readonly pattern: string;
  readonly parse: (name: string) => string | undefined;
}

export type TrackedName =
  | { readonly kind: 'key'; readonly sha256: string }
  | { readonly kind: 'customer'; readonly id: string }
  | { readonly kind: 'maintenance' }
  | { readonly kind: 'installed' };

/** Returns whether `text` is a SHA-256 in lower-case hex. A key record with any other name is never looked up. */
export function isSha256(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

function between(start: string, name: string, end: string): string | undefined {
  if (!name.startsWith(start) || !name.endsWith(end)) return undefined;
  return name.slice(start.length, name.length - end.length);
}
