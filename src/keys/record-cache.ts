/**
 * Caches a limited number of store records in memory. Concurrent requests for a record share one read.
 *
 * - A record is fresh for `cacheMs`, counted from the sending of the read that confirmed it. In the last fifth of that
 *   time, the next request starts a background read and is served from memory.
 * - A missing record is remembered for at most 5 s. Missing records have a cache of their own, so that made-up ids
 *   evict no real records.
 * - A change to a record removes it. A read in flight may still return the old record. Requests that already wait for
 *   it may receive it, but it is not cached, and later requests start a new read.
 * - When any record may have changed, none is removed, but each must be read again before it is served.
 * - While the store is unavailable, a record is served until `staleIfErrorMs` after it was confirmed, even if it has to
 *   be read again. After a failed read, requests are served from memory without waiting for another; one of them starts
 *   a read every 250 ms. A failure more than a second ago says nothing about the store now, so the next request waits
 *   for a read.
 */
import type { Clock } from '../base/clock.ts';
import { LruMap } from '../base/lru-map.ts';
import { DamagedRecordError, StoreUnavailableError } from '../store/store.ts';

const MISSING_ENTRIES = 10_000;
const MAX_MISSING_MS = 5000;
/** Share of `cacheMs` after which a record is refreshed by a background read. */
const REFRESH_FROM = 0.8;
const RETRY_MS = 250;
/** How long after a failed read the store counts as unavailable. */
const UNAVAILABLE_MS = 1000;

export interface RecordCache<Value extends object> {
  /**
   * Returns the record, or undefined if there is none; without a promise if memory suffices. Rejects with
   * StoreUnavailableError when the store is unavailable and no cached record may be served instead.
   */
  get(id: string): Value | undefined | Promise<Value | undefined>;
  /** Removes a record from the cache, because it was changed or created. */
  invalidate(id: string): void;
  /** Requires every record to be read again before it is served, because any may have changed. */
  invalidateAll(): void;
  /** Applies new times from the next request on. */
  applyCacheTimes(times: CacheTimes): void;
  size(): RecordCacheSize;
}

export interface RecordCacheSize {
  readonly records: number;
  /** Ids that are remembered as having no record. */
  readonly missing: number;
}

export interface CacheTimes {
  /** How long a record is served without being read again. */
  readonly cacheMs: number;
  /** How long a record may be served while the store is unavailable, counted from the last read that confirmed it. */
  readonly staleIfErrorMs: number;
}

export interface RecordCacheOptions<Value extends object> extends CacheTimes {
  /** Resolves to undefined if there is no such record. Rejects with StoreUnavailableError if the store cannot tell. */
  readonly read: (id: string) => Promise<Value | undefined>;
  /** Returns whether a record equals the cached one, which then stays: users may compare records by identity. */
  readonly unchanged: (held: Value, read: Value) => boolean;
  readonly clock: Clock;
  /** Maximum number of records; the least recently used is evicted. */
  readonly entries: number;
}

/** A cached record. */
interface Held<Value> {
  value: Value;
  /** Monotonic time just before the read was sent: the record is at least as recent as this. */
  confirmedAtMs: number;
  /** The cache's generation at that read. If the cache has another one now, the record may have changed since. */
  generation: number;
  failure: { readonly atMs: number; readonly generation: number } | undefined;
}

export function createRecordCache<Value extends object>(options: RecordCacheOptions<Value>): RecordCache<Value> {
  const { clock, entries } = options;
  let { cacheMs, staleIfErrorMs } = options;
  let refreshMs = REFRESH_FROM * cacheMs;
  let missingMs = Math.min(MAX_MISSING_MS, cacheMs);
  const held = new LruMap<string, Held<Value>>(entries);
  /** Missing records: monotonic ms at which the store was asked, by id. */
  const missing = new LruMap<string, number>(MISSING_ENTRIES);
  /** Reads whose results may be cached. Invalidation removes a read from this map, so that its result is not cached. */
  const underWay = new Map<string, Promise<Value | undefined>>();
  let generation = 0;

  function read(id: string): Promise<Value | undefined> {
    const joined = underWay.get(id);
    if (joined !== undefined) return joined;
    const askedAtMs = clock.monotonicMs();
    const reading: Promise<Value | undefined> = options.read(id).then(
      (value) => (mayKeep(id, reading) ? keep(id, value, askedAtMs) : value),
      (error) => standIn(id, error, mayKeep(id, reading)),
    );
    underWay.set(id, reading);
    return reading;
  }

  function readAside(id: string): void {
    // A failure is stored with the record. A request that has to wait for a read gets the error from its own read.
    if (!underWay.has(id)) read(id).catch(() => {});
  }

  function mayKeep(id: string, reading: Promise<Value | undefined>): boolean {
    return underWay.get(id) === reading && underWay.delete(id);
  }

  function keep(id: string, value: Value | undefined, confirmedAtMs: number): Value | undefined {
    if (value === undefined) {
      held.delete(id);
      missing.set(id, confirmedAtMs);
      return undefined;
    }
    missing.delete(id);
    const entry = held.get(id);
    if (entry === undefined) {
      held.set(id, { value, confirmedAtMs, generation, failure: undefined });
      return value;
    }
    if (!options.unchanged(entry.value, value)) entry.value = value;
    entry.confirmedAtMs = confirmedAtMs;
    entry.generation = generation;
    entry.failure = undefined;
    return entry.value;
  }

  function standIn(id: string, error: unknown, noted: boolean): Value {
    const entry = held.get(id);
    if (entry === undefined || !(error instanceof StoreUnavailableError)) throw error;
    if (error instanceof DamagedRecordError) {
      // The store responded, and its record has changed: the cached one must no longer be served.
      if (noted) held.delete(id);
      throw error;
    }
    const nowMs = clock.monotonicMs();
    if (noted) entry.failure = { atMs: nowMs, generation };
    if (nowMs - entry.confirmedAtMs >= staleIfErrorMs) throw error;
    return entry.value;
  }

  return {
    get(id) {
      const nowMs = clock.monotonicMs();
      const entry = held.get(id);
      if (entry === undefined) {
        const missedAtMs = missing.get(id);
        return missedAtMs !== undefined && nowMs - missedAtMs < missingMs ? undefined : read(id);
      }
      const ageMs = nowMs - entry.confirmedAtMs;
      const isFresh = entry.generation === generation && ageMs < cacheMs;
      if (isFresh && ageMs < refreshMs) return entry.value;

      const { failure } = entry;
      const sinceFailureMs = failure?.generation === generation ? nowMs - failure.atMs : Number.POSITIVE_INFINITY;
      const mayStandIn = sinceFailureMs < UNAVAILABLE_MS && ageMs < staleIfErrorMs;
      if (!isFresh && !mayStandIn) return read(id);
      if (sinceFailureMs >= RETRY_MS) readAside(id);
      return entry.value;
    },

    invalidate(id) {
      held.delete(id);
      missing.delete(id);
      underWay.delete(id);
    },

    invalidateAll() {
      generation += 1;
      missing.clear();
      underWay.clear();
    },

    applyCacheTimes(times) {
      ({ cacheMs, staleIfErrorMs } = times);
      refreshMs = REFRESH_FROM * cacheMs;
      missingMs = Math.min(MAX_MISSING_MS, cacheMs);
    },

    size: () => ({ records: held.size, missing: missing.size }),
  };
}
