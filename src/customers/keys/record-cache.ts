/**
 * Caches a limited number of store records in memory. Concurrent requests for a record share one read.
 *
 * - A record is fresh for `cacheMs`, counted from the sending of the read that confirmed it. In the last fifth of that
 *   time, the next request starts a background read and is served from memory.
 * - While the push of changes is proven to work, its last proof confirms a record like a read, until ten minutes after
 *   the last read. A push that is lost unnoticed proves nothing any more, so the record is read again `cacheMs` later.
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
import type { Clock } from '../../base/clock.ts';
import { LruEntries, LruEntry, LruMap } from '../../base/lru-map.ts';
import { DamagedRecordError, StoreUnavailableError } from '../../store/errors.ts';

const MISSING_ENTRIES = 10_000;
const MAX_MISSING_MS = 5000;
const MAX_PROVEN_MS = 600_000;
/** Share of `cacheMs` after which a record is refreshed by a background read. */
const REFRESH_FROM = 0.8;
const RETRY_MS = 250;
/** How long after a failed read the store counts as unavailable. */
const UNAVAILABLE_MS = 1000;

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
  readonly unchanged: (cached: Value, read: Value) => boolean;
  readonly clock: Clock;
  /** Returns the time (monotonic ms) until which every change has been reported by {@link RecordCache.invalidate}. */
  readonly provenAtMs: () => number;
  /** Maximum number of records; the least recently used is evicted. */
  readonly entries: number;
}

class Entry<Value> extends LruEntry<string> {
  value: Value;
  /** Monotonic time just before the read was sent: the record is at least as recent as this. */
  readAtMs: number;
  /** The cache's generation at that read. If the cache has another one now, the record may have changed since. */
  generation: number;
  failure: { readonly atMs: number; readonly generation: number } | undefined;

  constructor(id: string, value: Value, readAtMs: number, generation: number) {
    super(id);
    this.value = value;
    this.readAtMs = readAtMs;
    this.generation = generation;
    this.failure = undefined;
  }
}

export class RecordCache<Value extends object> {
  readonly #options: RecordCacheOptions<Value>;
  readonly #entries: LruEntries<string, Entry<Value>>;
  /** Missing records: monotonic ms at which the store was read, by id. */
  readonly #missing = new LruMap<string, number>(MISSING_ENTRIES);
  /** Reads whose results may be cached. Invalidation removes a read from this map, so that its result is not cached. */
  readonly #reads = new Map<string, Promise<Value | undefined>>();
  #times: CacheTimes;
  #generation = 0;

  constructor(options: RecordCacheOptions<Value>) {
    this.#options = options;
    this.#entries = new LruEntries(options.entries);
    this.#times = options;
  }

  /**
   * Returns the record, or undefined if there is none; without a promise if memory suffices. Rejects with
   * StoreUnavailableError when the store is unavailable and no cached record may be served instead.
   */
  get(id: string): Value | undefined | Promise<Value | undefined> {
    const nowMs = this.#options.clock.monotonicMs();
    const { cacheMs, staleIfErrorMs } = this.#times;
    const entry = this.#entries.get(id);
    if (entry === undefined) {
      const missedAtMs = this.#missing.get(id);
      const missingMs = Math.min(MAX_MISSING_MS, cacheMs);
      return missedAtMs !== undefined && nowMs - missedAtMs < missingMs ? undefined : this.#read(id);
    }
    const ageMs = nowMs - this.#confirmedAtMs(entry);
    const isFresh = entry.generation === this.#generation && ageMs < cacheMs;
    if (isFresh && ageMs < REFRESH_FROM * cacheMs) return entry.value;

    const { failure } = entry;
    const sinceFailureMs = failure?.generation === this.#generation ? nowMs - failure.atMs : Number.POSITIVE_INFINITY;
    const isUnavailable = sinceFailureMs < UNAVAILABLE_MS && ageMs < staleIfErrorMs;
    if (!isFresh && !isUnavailable) return this.#read(id);
    // A failure is stored with the record. A request that has to wait for a read gets the error from its own read.
    if (sinceFailureMs >= RETRY_MS && !this.#reads.has(id)) this.#read(id).catch(() => {});
    return entry.value;
  }

  /** Removes a record from the cache, because it was changed or created. */
  invalidate(id: string): void {
    this.#entries.delete(id);
    this.#missing.delete(id);
    this.#reads.delete(id);
  }

  /** Requires every record to be read again before it is served, because any may have changed. */
  invalidateAll(): void {
    this.#generation += 1;
    this.#missing.clear();
    this.#reads.clear();
  }

  /** Applies new times from the next request on. */
  applyCacheTimes(times: CacheTimes): void {
    this.#times = times;
  }

  /** `missing`: ids that are remembered as having no record. */
  size(): { readonly records: number; readonly missing: number } {
    return { records: this.#entries.size, missing: this.#missing.size };
  }

  #read(id: string): Promise<Value | undefined> {
    const inProgress = this.#reads.get(id);
    if (inProgress !== undefined) return inProgress;
    const sentAtMs = this.#options.clock.monotonicMs();
    const reading: Promise<Value | undefined> = this.#options.read(id).then(
      (value) => (this.#endRead(id, reading) ? this.#keep(id, value, sentAtMs) : value),
      (error) => this.#cachedInstead(id, error, this.#endRead(id, reading)),
    );
    this.#reads.set(id, reading);
    return reading;
  }

  /** While nothing was reported about a record, the push confirms it as a read would. */
  #confirmedAtMs({ readAtMs, generation }: Entry<Value>): number {
    if (generation !== this.#generation) return readAtMs;
    return Math.max(readAtMs, Math.min(this.#options.provenAtMs(), readAtMs + MAX_PROVEN_MS));
  }

  /** Removes a read that has ended. Returns whether its result may be cached: not if the record was invalidated. */
  #endRead(id: string, reading: Promise<Value | undefined>): boolean {
    return this.#reads.get(id) === reading && this.#reads.delete(id);
  }

  #keep(id: string, value: Value | undefined, readAtMs: number): Value | undefined {
    if (value === undefined) {
      this.#entries.delete(id);
      this.#missing.set(id, readAtMs);
      return undefined;
    }
    this.#missing.delete(id);
    const entry = this.#entries.get(id);
    const generation = this.#generation;
    if (entry === undefined) {
      this.#entries.add(new Entry(id, value, readAtMs, generation));
      return value;
    }
    if (!this.#options.unchanged(entry.value, value)) entry.value = value;
    Object.assign(entry, { readAtMs, generation, failure: undefined });
    return entry.value;
  }

  /** Returns the cached record after a failed read, or throws the read's error. */
  #cachedInstead(id: string, error: unknown, mayKeep: boolean): Value {
    const entry = this.#entries.get(id);
    if (entry === undefined || !(error instanceof StoreUnavailableError)) throw error;
    if (error instanceof DamagedRecordError) {
      // The store responded, and its record has changed: the cached one must no longer be served.
      if (mayKeep) this.#entries.delete(id);
      throw error;
    }
    const nowMs = this.#options.clock.monotonicMs();
    if (mayKeep) entry.failure = { atMs: nowMs, generation: this.#generation };
    if (nowMs - this.#confirmedAtMs(entry) >= this.#times.staleIfErrorMs) throw error;
    return entry.value;
  }
}
