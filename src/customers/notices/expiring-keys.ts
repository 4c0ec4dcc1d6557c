/**
 * Makes the notices of keys that expire soon, in a search once an hour.
 *
 * The search reads all keys, one page a second. Any number of gateways may search at once: a mark in the store lets only
 * the first of them make a notice.
 */
import type { Clock, Scheduler } from '../../base/clock.ts';
import { LruMap } from '../../base/lru-map.ts';
import { Periodic } from '../../base/periodic.ts';
import { isCustomerId, isKeyId } from '../../formats/ids.ts';
import { parseTimestamp } from '../../formats/timestamp.ts';
import type { NoticeStore } from '../../store/notices.ts';
import { expiryMsOf, type KeyRecord } from '../../store/record-fields.ts';
import type { RecordStore } from '../../store/records.ts';
import { newNotice } from './notice.ts';

const DAY_MS = 24 * 3600 * 1000;
const SEARCH_INTERVAL_MS = 3_600_000;
/** Gateways that start together begin their first searches within this time. */
const FIRST_SEARCH_MS = 600_000;
const PAGE_KEYS = 500;
const PAGE_INTERVAL_MS = 1000;
/** The most notices that one search makes for a customer. Later searches make the remaining ones. */
const MAX_NOTICES_PER_CUSTOMER = 100;
const MAX_KNOWN_MARKS = 10_000;

interface ExpiringKeysOptions {
  readonly records: Pick<RecordStore, 'listKeys'>;
  readonly notices: Pick<NoticeStore, 'addOnce'>;
  readonly storeIsUp: () => boolean;
  /** Returns how many days before its expiry a key has a notice, ascending; undefined or empty: there are none. */
  readonly days: () => readonly number[] | undefined;
  /** Called for each notice that this instance made. */
  readonly created: () => void;
  /** Receives the error that ended a search. The next one begins anew. */
  readonly onFailure: (error: unknown) => void;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly scheduler: Pick<Scheduler, 'after'>;
  /** From 0 to 1. */
  readonly random: () => number;
}

interface Search {
  readonly cursor: string | undefined;
  /** Notices that were made, by customer. */
  readonly made: Map<string, number>;
}

export class ExpiringKeys {
  readonly #options: ExpiringKeysOptions;
  /** Marks that the store has. Remembered only to spare calls. */
  readonly #known = new LruMap<string, true>(MAX_KNOWN_MARKS);
  readonly #reading: Periodic;
  /** The search in progress. */
  #search: Search | undefined;
  #isClosed = false;

  constructor(options: ExpiringKeysOptions) {
    this.#options = options;
    this.#reading = new Periodic(options.scheduler, async () => {
      this.#search = await this.#readPage(this.#search);
      return this.#search === undefined ? SEARCH_INTERVAL_MS : PAGE_INTERVAL_MS;
    });
  }

  start(): void {
    this.#reading.start(FIRST_SEARCH_MS * this.#options.random());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#reading.close();
  }

  /** `search`: undefined: a new one. Resolves to the search as it goes on; undefined when it is over. Never rejects. */
  async #readPage(search: Search | undefined): Promise<Search | undefined> {
    const { records, storeIsUp, days, created, onFailure } = this.#options;
    const wanted = days() ?? [];
    if (wanted.length === 0 || !storeIsUp()) return undefined;
    const made = search?.made ?? new Map<string, number>();
    try {
      const { items, next } = await records.listKeys(search?.cursor, PAGE_KEYS);
      for (const key of items) {
        const count = made.get(key.customer) ?? 0;
        if (this.#isClosed) return undefined;
        if (count >= MAX_NOTICES_PER_CUSTOMER || !(await this.#tell(key, wanted))) continue;
        made.set(key.customer, count + 1);
        created();
      }
      return next === undefined ? undefined : { cursor: next, made };
    } catch (error) {
      onFailure(error);
      return undefined;
    }
  }

  /** Makes the key's notice if one is due. Resolves to false if there is none, or it was made before. */
  async #tell(key: KeyRecord, days: readonly number[]): Promise<boolean> {
    const { notices, clock } = this.#options;
    const nowMs = clock.nowMs();
    const expiresMs = expiryMsOf(key);
    const due = dueDays(key, days, nowMs);
    // Other programs may have written anything as ids.
    if (due === undefined || expiresMs === undefined || !isKeyId(key.id) || !isCustomerId(key.customer)) return false;
    // A key whose expiry changes has new notices.
    const mark = `key:${key.id}:${expiresMs}:${due}`;
    if (this.#known.get(mark)) return false;
    const data = { customer: key.customer, plan: null, key_id: key.id, expires_at: new Date(expiresMs).toISOString() };
    const isNew = await notices.addOnce({
      customer: key.customer,
      marks: [mark],
      // Later than any clock of a gateway: a key that has expired has no notice.
      untilMs: expiresMs + DAY_MS,
      notice: newNotice('key.expiring', nowMs, data),
    });
    this.#known.set(mark, true);
    return isNew;
  }
}

/**
 * Returns the smallest number of days within which a live key expires. Returns undefined if there is none, or if the key's
 * whole life is not longer than that: its creator would get the notice right away.
 */
function dueDays(key: KeyRecord, days: readonly number[], nowMs: number): number | undefined {
  const expiresMs = expiryMsOf(key);
  if (expiresMs === undefined || expiresMs <= nowMs || key.revokedAt !== undefined) return undefined;
  const createdMs = parseTimestamp(key.createdAt ?? '') ?? Number.NEGATIVE_INFINITY;
  const due = days.find((each) => expiresMs - nowMs <= each * DAY_MS);
  return due !== undefined && expiresMs - createdMs > due * DAY_MS ? due : undefined;
}
