/**
 * The customers in memory, by which they are searched.
 *
 * The first search reads all records. From then on, Redis pushes every change, and a search first reads the records
 * that changed since the one before. The directory never decides: each record that it finds is read before it is
 * listed. A search scans all records instead while changes are not pushed, and when the directory would take more than
 * {@link MAX_BYTES}.
 */
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { isCustomerId } from '../../../formats/ids.ts';
import {
  type CustomerSearch,
  isFound,
  type Rank,
  type SearchedFields,
  searchedFields,
  searchMatcher,
} from '../../customer-search.ts';
import { InvalidCursorError } from '../../errors.ts';
import type { Invalidations } from '../../invalidations.ts';
import type { CustomerRecord } from '../../record-fields.ts';
import type { RecordStore } from '../../records.ts';

const MAX_BYTES = 128 * 1024 * 1024;
/** What an entry takes beside the characters of its texts: measured, rounded up. */
const ENTRY_BYTES = 150;
/** The records of one step, and the most steps of one call: about half a second in all. */
const STEP_RECORDS = 1000;
const MAX_STEPS = 20;
/** The most changed records to remember between two searches. Beyond that, the next search reads all records again. */
const MAX_CHANGED = 10_000;
/** Entries that a search compares in one turn of the event loop, in a few milliseconds. */
const ENTRIES_AT_ONCE = 5000;
/** `d`: the directory, after this place in base64url. `s`: a scan of all records, from its own cursor. */
const CURSOR = /^(?:d([A-Za-z0-9_-]*)|s(.+))$/;

interface CustomerDirectoryOptions {
  readonly pushed: Pick<Invalidations, 'connected' | 'subscribe'>;
  readonly records: Pick<RecordStore, 'listCustomers' | 'readCustomers'>;
  /** Default: {@link MAX_BYTES}. */
  readonly maxBytes?: number;
}

/** A rank, as a digit, and an id, so that places sort as found customers are listed. */
const placeOf = (rank: Rank, id: string) => `${rank === 'name' ? 0 : 1}${id}`;

/** Places. Each run is sorted. Sorting all at once would delay other requests. */
type SortedRuns = readonly (readonly string[])[];

/** What is known of all customers. Discarded when a change may have been missed. */
class Contents {
  readonly entries = new Map<string, SearchedFields>();
  bytes = 0;
  /** The cursor at which the scan of all records continues. */
  cursor: string | undefined;
  isComplete = false;
  /** Ids of records that changed since the scan began and are to be read again. */
  changed = new Set<string>();
  /** The result of the last search, until an entry changes. */
  #found: { readonly search: string; readonly places: SortedRuns } | undefined;

  update(id: string, customer: CustomerRecord | undefined): void {
    const before = this.entries.get(id);
    const fields = customer && searchedFields(customer);
    if (before !== undefined) this.bytes -= bytesOf(id, before);
    if (fields === undefined) {
      this.entries.delete(id);
      return;
    }
    this.bytes += bytesOf(id, fields);
    if (isDeepStrictEqual(before, fields)) return;
    this.entries.set(id, fields);
    this.#found = undefined;
  }

  async find(search: CustomerSearch): Promise<SortedRuns> {
    const key = JSON.stringify(search);
    if (this.#found?.search === key) return this.#found.places;
    const rankOf = searchMatcher(search);
    const places: string[][] = [];
    let run: string[] = [];
    let compared = 0;
    for (const [id, fields] of this.entries) {
      const rank = rankOf(fields);
      if (rank !== undefined) run.push(placeOf(rank, id));
      compared += 1;
      if (compared % ENTRIES_AT_ONCE !== 0) continue;
      places.push(run.sort());
      run = [];
      await setImmediate();
    }
    places.push(run.sort());
    this.#found = { search: key, places };
    return places;
  }
}

export class CustomerDirectory {
  readonly #options: CustomerDirectoryOptions;
  #contents: Contents | 'too_large' | undefined;
  /** Searches use the contents in turns, so that what was read first never replaces what was read later. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: CustomerDirectoryOptions) {
    this.#options = options;
    options.pushed.subscribe((change) => {
      if (change.kind === 'customer') this.changed(change.id);
      else if (change.kind === 'all') this.#contents = undefined;
    });
  }

  /** Must be called after each write of this process: its push may arrive after the next search. */
  changed(id: string): void {
    if (!(this.#contents instanceof Contents)) return;
    const { changed } = this.#contents;
    changed.add(id);
    if (changed.size > MAX_CHANGED) this.#contents = undefined;
  }

  /** See {@link RecordStore}. A page is empty while the directory is not complete. */
  readonly find: RecordStore['findCustomers'] = async (search, cursor, limit) => {
    const [, encoded = '', scanned] = cursor === undefined ? [] : (CURSOR.exec(cursor) ?? invalid());
    const after = Buffer.from(encoded, 'base64url').toString();
    if (after !== '' && !(/^[01]/.test(after) && isCustomerId(after.slice(1)))) invalid();
    const { records } = this.#options;
    const found = scanned === undefined ? await this.#inTurn(() => this.#placesOf(search)) : 'unusable';
    if (found === 'incomplete') return { items: [], next: cursorAfter(after) };
    if (found === 'unusable') {
      const { items, next } = await records.listCustomers(scanned, limit);
      return { items: items.filter((customer) => isFound(customer, search)), next: next && `s${next}` };
    }
    const places = placesAfter(found, after, limit + 1);
    const page = places.slice(0, limit);
    // Even without ids: that also checks whether the store lost its data.
    const read = await records.readCustomers(page.map((place) => place.slice(1)));
    return {
      items: read.flatMap((record) => (record !== undefined && isFound(record, search) ? [record] : [])),
      next: places.length > limit ? cursorAfter(page.at(-1) ?? '') : undefined,
    };
  };

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => undefined);
    return result;
  }

  /** `unusable`: only a scan finds all records now. */
  async #placesOf(search: CustomerSearch): Promise<SortedRuns | 'incomplete' | 'unusable'> {
    if (!this.#options.pushed.connected || this.#contents === 'too_large') return 'unusable';
    this.#contents ??= new Contents();
    const contents = this.#contents;
    for (let step = 0; step < MAX_STEPS; step += 1) {
      await this.#readOn(contents);
      if (this.#contents !== contents) return 'unusable';
      if (contents.isComplete) return contents.find(search);
    }
    return 'incomplete';
  }

  /** Reads the next records of the scan, then those that changed. */
  async #readOn(contents: Contents): Promise<void> {
    const { records, maxBytes = MAX_BYTES } = this.#options;
    if (!contents.isComplete) {
      const { items, next } = await records.listCustomers(contents.cursor, STEP_RECORDS);
      for (const customer of items) contents.update(customer.id, customer);
      contents.cursor = next;
      contents.isComplete = next === undefined;
    }
    const changed = [...contents.changed];
    if (changed.length > 0) {
      contents.changed = new Set();
      try {
        const read = await records.readCustomers(changed);
        for (const [at, id] of changed.entries()) contents.update(id, read[at]);
      } catch (error) {
        for (const id of changed) contents.changed.add(id);
        throw error;
      }
    }
    if (contents.bytes > maxBytes && this.#contents === contents) this.#contents = 'too_large';
  }
}

/** Returns the first `limit` places that sort after `after`, in their order. */
function placesAfter(runs: SortedRuns, after: string, limit: number): readonly string[] {
  const heads = runs.flatMap((run) => {
    const start = firstAfter(run, after);
    return run.slice(start, start + limit);
  });
  return [...new Set(heads.sort())].slice(0, limit);
}

/** Returns the index of the first place that sorts after `after`, by binary search. */
function firstAfter(run: readonly string[], after: string): number {
  let [low, high] = [0, run.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((run[middle] ?? '') > after) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Rounded up: many texts take one byte a character. */
function bytesOf(id: string, { text, plan }: SearchedFields): number {
  return ENTRY_BYTES + 2 * (id.length + text.length + plan.length);
}

function cursorAfter(place: string): string {
  return `d${Buffer.from(place).toString('base64url')}`;
}

function invalid(): never {
  throw new InvalidCursorError();
}
