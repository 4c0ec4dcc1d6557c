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
