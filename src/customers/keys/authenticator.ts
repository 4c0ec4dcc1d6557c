/**
 * Finds the customer of an API key, mostly in memory. Keys are looked up by their SHA-256, so that neither the store
 * nor this cache contains a usable key. Keys and customers are cached separately: a customer's record is read once for
 * all of its keys.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import { AddressBlocks } from '../../formats/address-block.ts';
import { failsChecksum, sha256Hex } from '../../formats/api-key.ts';
import { isCustomerId, isKeyId } from '../../formats/ids.ts';
import type { Invalidation, Invalidations } from '../../store/invalidations.ts';
import { type EnforcedCustomer, type EnforcedKey, expiryMsOf } from '../../store/record-fields.ts';
import type { RecordStore } from '../../store/records.ts';
import { type CeilingOfKey, ceilingOf } from '../quota/key-ceiling.ts';
import { type KeyUse, NEVER_NOTED } from './key-uses.ts';
import { type CacheTimes, RecordCache } from './record-cache.ts';

export type Authentication = KnownKey | InvalidKey;

/** A valid key and its customer. The same object for as long as both records are unchanged. */
export interface KnownKey extends KeyUse {
  readonly outcome: 'known';
  readonly key: EnforcedKey;
  /** Wall time in ms at which the key expires; undefined if it does not. */
  readonly expiresAtMs: number | undefined;
  /** The addresses that may use the key; undefined if all may. */
  readonly addresses: AddressBlocks | undefined;
  readonly ceiling: CeilingOfKey;
  /** Undefined if the key names a customer that has no record. */
  readonly customer: EnforcedCustomer | undefined;
}

export interface InvalidKey {
  readonly outcome: 'invalid';
  /** `unusable`: the key's record has a malformed key id or customer id, and is treated as missing. */
  readonly reason: 'checksum' | 'unknown' | 'unusable' | 'revoked' | 'expired';
  /** From the key's record, for operators only: clients learn nothing about an invalid key. */
  readonly keyId?: string;
  /** As for `keyId`. */
  readonly customer?: string;
}

interface AuthenticatorOptions extends CacheTimes {
  readonly records: Pick<RecordStore, 'findKey' | 'findCustomer'>;
  readonly invalidations: Pick<Invalidations, 'subscribe' | 'provenAtMs'>;
  readonly clock: Clock;
  /** Maximum number of cached keys, and of cached customers. */
  readonly entries: number;
}

/** A cached key record, and what is derived from it. It is also the first result for its key: see {@link knownKeyOf}. */
interface CachedKey extends KnownKey {
  readonly refusal: InvalidKey | undefined;
  customer: EnforcedCustomer | undefined;
  /** The last result for this key. */
  known: KnownKey | undefined;
}

const CHECKSUM = invalid('checksum');
const UNKNOWN = invalid('unknown');

export class Authenticator {
  readonly #clock: Clock;
  readonly #keys: RecordCache<CachedKey>;
  readonly #customers: RecordCache<EnforcedCustomer>;
  /** Unsubscribes from invalidations. */
  readonly close: () => void;

  constructor(options: AuthenticatorOptions) {
    const { clock, invalidations, records } = options;
    this.#clock = clock;
    const provenAtMs = () => invalidations.provenAtMs ?? Number.NEGATIVE_INFINITY;
    this.#keys = new RecordCache({
      ...options,
      provenAtMs,
      read: async (sha256) => cachedKeyOf(sha256, await records.findKey(sha256)),
      unchanged: (cached, read) => isDeepStrictEqual(cached.key, read.key),
    });
    this.#customers = new RecordCache({
      ...options,
      provenAtMs,
      read: (id) => records.findCustomer(id),
      unchanged: isDeepStrictEqual,
    });
    this.close = invalidations.subscribe((invalidation) => this.#invalidate(invalidation));
  }

  /**
   * Authenticates a token; without a promise if memory suffices. Rejects with StoreUnavailableError if neither memory
   * nor the store can decide: an unavailable store never makes a key invalid.
   */
  authenticate(token: string): Authentication | Promise<Authentication> {
    if (failsChecksum(token)) return CHECKSUM;
    const found = this.authenticateSha256(sha256Hex(token));
    if (!(found instanceof Promise)) return found;
    // A record may have changed while it, or the other one, was read.
    return found.then((read) => (read.outcome === 'known' ? this.authenticateSha256(read.sha256) : read));
  }

  /** Authenticates a token by its SHA-256, as {@link authenticate} does. */
  authenticateSha256(sha256: string): Authentication | Promise<Authentication> {
    const key = this.#keys.get(sha256);
    return key instanceof Promise ? key.then((read) => this.#decide(read)) : this.#decide(key);
  }

  /** Applies new cache times from the next request on. Cached records stay. */
  applyCacheTimes(times: CacheTimes): void {
    this.#keys.applyCacheTimes(times);
    this.#customers.applyCacheTimes(times);
  }

  #decide(cached: CachedKey | undefined): Authentication | Promise<Authentication> {
    if (cached === undefined) return UNKNOWN;
    const { expiresAtMs, key, refusal } = cached;
    if (refusal !== undefined) return refusal;
    if (expiresAtMs !== undefined && expiresAtMs <= this.#clock.nowMs()) return refusalOf(key, 'expired');
    const customer = this.#customers.get(key.customer);
    return customer instanceof Promise
      ? customer.then(knownKeyOf.bind(undefined, cached))
      : knownKeyOf(cached, customer);
  }

  #invalidate(invalidation: Invalidation): void {
    if (invalidation.kind === 'key') {
      this.#keys.invalidate(invalidation.sha256);
    } else if (invalidation.kind === 'customer') {
      this.#customers.invalidate(invalidation.id);
    } else if (invalidation.kind === 'all') {
      this.#keys.invalidateAll();
      this.#customers.invalidateAll();
    }
  }
}

function cachedKeyOf(sha256: string, key: EnforcedKey | undefined): CachedKey | undefined {
  if (key === undefined) return undefined;
  return {
    outcome: 'known',
    key,
    expiresAtMs: expiryMsOf(key),
    addresses: key.allowedAddresses && new AddressBlocks(key.allowedAddresses),
    ceiling: ceilingOf(key),
    customer: undefined,
    sha256,
    flushesWhenNoted: NEVER_NOTED,
    refusal: lastingRefusalOf(key),
    known: undefined,
  };
}

function lastingRefusalOf(record: EnforcedKey): InvalidKey | undefined {
  if (!isKeyId(record.id) || !isCustomerId(record.customer)) return refusalOf(record, 'unusable');
  return record.revokedAt === undefined ? undefined : refusalOf(record, 'revoked');
}

/** Includes only well-formed ids: others may have any length and content. */
function refusalOf({ id, customer }: EnforcedKey, reason: InvalidKey['reason']): InvalidKey {
  return invalid(reason, { ...(isKeyId(id) && { keyId: id }), ...(isCustomerId(customer) && { customer }) });
}

/**
 * Returns the result, which is never changed afterwards. As long as the customer's record is unchanged, it is the cached
 * key itself: with many keys, each further object is a cache miss.
 */
function knownKeyOf(cached: CachedKey, customer: EnforcedCustomer | undefined): KnownKey {
  if (cached.known === undefined) {
    cached.customer = customer;
    cached.known = cached;
  } else if (cached.known.customer !== customer) {
    cached.known = { ...cached.known, customer };
  }
  return cached.known;
}

function invalid(reason: InvalidKey['reason'], ids: Pick<InvalidKey, 'keyId' | 'customer'> = {}): InvalidKey {
  return Object.freeze({ outcome: 'invalid', reason, ...ids });
}
