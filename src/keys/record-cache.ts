/**
 * Records of the store in memory, bounded in number, each read once for everybody who waits for it.
 *
 * - A record answers until `cacheMs` after the read that confirmed it was sent. The last fifth of that time is for
 *   reading it again: the request that comes then starts the read and is answered from memory.
 * - That there is no such record is remembered for at most 5 s, and apart, so that made-up ids push out no real ones.
 * - A change to one record drops it. A read of it that is under way may be from before the change: whoever waits for it
 *   already may have its result, but it is not kept, and whoever comes later starts another.
 * - When anything may have changed, nothing is dropped, but every record must be read again before it answers.
 * - While the store is away, a record answers until `staleIfErrorMs` after it was confirmed, whatever state it is in.
 *   After a failed read requests do not wait for another: the next are answered from memory, and one of them starts a
 *   read every 250 ms. A failure of long ago says nothing about the store of now, so then a request waits again.
 */
import type { Clock } from '../clock.ts';
import { LruMap } from '../lru-map.ts';
import { DamagedRecordError, StoreUnavailableError } from '../store/store.ts';

const MISSING_ENTRIES = 10_000;
const LONGEST_MISSING_MS = 5000;
/** Share of `cacheMs` after which a record is read again without anybody waiting. */
const REFRESH_FROM = 0.8;
const RETRY_MS = 250;
/** How long after a failed read the store is taken to be away. */
const AWAY_MS = 1000;

export interface RecordCache<Value extends object> {
  /**
   * The record, or undefined when there is none. Not a promise when the answer is in memory; else one that rejects
   * with StoreUnavailableError when the store is away and nothing in memory may stand in.
   */
  get(id: string): Value | undefined | Promise<Value | undefined>;
  /** The record of this id has changed, or has come to be. */
  invalidate(id: string): void;
  /** Any record may have changed. */
  invalidateAll(): void;
  /** Other times, from the next request on. */
  follow(times: CacheTimes): void;
  size(): RecordCacheSize;
}

export interface RecordCacheSize {
  readonly records: number;
  /** Ids of which is remembered that they have no record. */
  readonly missing: number;
}

export interface CacheTimes {
  /** How long a record answers without being read again. */
  readonly cacheMs: number;
  /** How long a record may answer while the store is away, counted from when the store last confirmed it. */
  readonly staleIfErrorMs: number;
}

export interface RecordCacheOptions<Value extends object> extends CacheTimes {
  /** Undefined: no such record. Rejects with StoreUnavailableError when the store does not say. */
  readonly read: (id: string) => Promise<Value | undefined>;
  /** Whether a record is still the one in memory, which then stays: its users may recognise it by identity. */
  readonly unchanged: (held: Value, read: Value) => boolean;
  readonly clock: Clock;
  /** Most records kept; the least recently used makes room. */
  readonly entries: number;
}

interface Held<Value> {
  value: Value;
  /** Monotonic time before the read was sent: the record cannot be older. */
  confirmedAtMs: number;
  /** Another than the cache's: anything may have changed since. */
  generation: number;
  failure: { readonly atMs: number; readonly generation: number } | undefined;
}

export function createRecordCache<Value extends object>(options: RecordCacheOptions<Value>): RecordCache<Value> {
  const { clock, entries } = options;
  let { cacheMs, staleIfErrorMs } = options;
  let refreshMs = REFRESH_FROM * cacheMs;
  let missingMs = Math.min(LONGEST_MISSING_MS, cacheMs);
  const held = new LruMap<string, Held<Value>>(entries);
  /** When the store was asked, by id. */
  const missing = new LruMap<string, number>(MISSING_ENTRIES);
  /** Reads that may be kept: an invalidation takes them out, which is how they learn of it. */
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
    // Whether it failed is noted with the record; who has to wait for a read hears of it then.
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
      // The store works: what it held before must not outlive its change.
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
      const mayStandIn = sinceFailureMs < AWAY_MS && ageMs < staleIfErrorMs;
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

    follow(times) {
      ({ cacheMs, staleIfErrorMs } = times);
      refreshMs = REFRESH_FROM * cacheMs;
      missingMs = Math.min(LONGEST_MISSING_MS, cacheMs);
    },

    size: () => ({ records: held.size, missing: missing.size }),
  };
}
