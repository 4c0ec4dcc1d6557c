/**
 * An index of records, by which a search finds them without reading all: one sorted set whose members are a term, a
 * separator and what the record's name contains, in the order of the terms.
 *
 * The index is a help and no truth. Other programs write records without entries, and entries may be left of records
 * that have changed. So every record is read before it is listed. After the entries, a search reads all records, adds
 * those that have no entries, and lists them if they match. It leaves that out if this process saw that the index is
 * complete: it has read all records once, and Redis has pushed every change since. The changed records are indexed at
 * the next search.
 */
import { randomBytes } from 'node:crypto';
import type { Invalidations } from '../../invalidations.ts';
import { InvalidCursorError, type Page, type StoreOp, StoreUnavailableError } from '../../store.ts';
import type { RedisChannel } from '../connection/channel.ts';
import { sendAll } from '../connection/replies.ts';
import { isPermanentRefusal } from '../protocol/redis-errors.ts';

/** Between a term and what identifies the record. */
const SEPARATOR = '\0';
/** Sorts after every other character, in UTF-8 too. */
const LAST = '\u{10ffff}';
/** Changed records that are remembered. Beyond that, all records are read again. */
const MAX_CHANGED = 10_000;
const REPAIR: StoreOp = 'reindex';
const REPAIRED_AT_ONCE = 1000;
/**
 * `e`: after this entry of this range. `s`: the process and the number of the search, and a cursor of the scan or none;
 * the entries were listed before. `a`: a cursor of the scan or none; nothing was listed before.
 */
const CURSOR = /^(?:e(\d{1,3})\.([A-Za-z0-9_-]+)|(s([0-9a-f]{8})-(\d{1,15})\.|a)(.*))$/;
/** The number of searches whose first page was not seen here. */
const UNKNOWN = 0;
/** Adder of entries that every search counts as added by another one. */
const NOBODY = -1;
const MAX_SEARCHES = 1000;

export interface TermRange {
  /** The first and the last term begin with these. */
  readonly from: string;
  readonly to?: string;
}

export interface IndexedRecords<R> {
  readonly connection: RedisChannel;
  /** Of the sorted set. */
  readonly name: string;
  /** Whether Redis pushes changes now. */
  readonly isPushed: () => boolean;
  /** Of searches. */
  readonly op: StoreOp;
  /** Identifies the record, without {@link SEPARATOR}. */
  idOf(record: R): string;
  /** How much of an id is in cursors. Other ids must not begin with that. Default: all. */
  readonly shownIdLength?: number;
  /** Without {@link SEPARATOR}. */
  termsOf(record: R): readonly string[];
  read(op: StoreOp, ids: readonly string[]): Promise<readonly (R | undefined)[]>;
  scan(op: StoreOp, cursor: string | undefined, limit: number): Promise<Page<R>>;
}

/** What the indexes of one kind of record are made of. */
export interface IndexParts<R> extends Pick<IndexedRecords<R>, 'connection' | 'read' | 'scan'> {
  readonly prefix: string;
  readonly pushed: Pick<Invalidations, 'connected' | 'subscribe'>;
}

export interface Search<R> {
  /** Every record that matches has a term in one of these. */
  readonly ranges: readonly TermRange[];
  matches(record: R): boolean;
}

export class SearchIndex<R> {
  readonly #records: IndexedRecords<R>;
  /** Changed since the reading of all records began. Undefined: changes are not known. */
  #changed: Set<string> | undefined;
  /** All records up to this cursor of the scan were read and indexed; `all`: every record. */
  #readUpTo: { readonly cursor: string | undefined } | 'all' | undefined;

  /** In cursors: the numbers of searches mean nothing to another process. */
  readonly #process = randomBytes(4).toString('hex');
  /** Numbers searches and additions in their order. */
  #events = UNKNOWN;
  /** When each search last added entries of records that it read. */
  readonly #additions = new Map<number, number>();

  constructor(records: IndexedRecords<R>) {
    this.#records = records;
  }

  /** Must be called for each change that Redis pushes. `id` undefined: anything may have changed. */
  changed(id: string | undefined): void {
    if (id !== undefined && (this.#changed?.size ?? 0) < MAX_CHANGED) {
      this.#changed?.add(id);
      return;
    }
    this.#changed = undefined;
    this.#readUpTo = undefined;
  }

  /** Adds the entries of a record that was written, and deletes those that only `before` had. */
  async written(op: StoreOp, record: R, before?: R): Promise<void> {
    await this.#addAll(op, [record]);
    if (before !== undefined) await this.forget(op, before, record);
  }

  /** Deletes the entries of a record that was deleted, or those that it no longer has. */
  async forget(op: StoreOp, before: R, after?: R): Promise<void> {
    const { connection, name, idOf, termsOf, read } = this.#records;
    const id = idOf(before);
    const kept = after === undefined ? [] : termsOf(after);
    const entries = termsOf(before).flatMap((term) => (kept.includes(term) ? [] : [term + SEPARATOR + id]));
    if (entries.length === 0) return;
    await connection.run(op, (redis) => redis.zrem(name, ...entries));
    // Another change may have been written meanwhile.
    const [now] = await read(op, [id]);
    if (now !== undefined) await this.#addAll(op, [now]);
  }

  /** Lists records that match, at most `limit`. A page may be short or empty. @throws InvalidCursorError */
  async find(search: Search<R>, cursor: string | undefined, limit: number): Promise<Page<R>> {
    const [, range = '0', entry, kind, process, number = UNKNOWN, scan] =
      cursor === undefined ? [] : (CURSOR.exec(cursor) ?? invalid());
    if (kind !== undefined) {
      const searched = process === this.#process ? Number(number) : undefined;
      const { items, next } = await this.#findByScan(search, scan || undefined, limit, searched);
      return { items, next: next === undefined ? undefined : kind + next };
    }
    const after = entry === undefined ? undefined : Buffer.from(entry, 'base64url').toString();
    try {
      await this.#indexChanged();
      const searched = cursor === undefined ? ++this.#events : UNKNOWN;
      const { items, next } = await this.#findByEntries(search, Number(range), after, limit);
      if (next !== undefined || (this.#readUpTo === 'all' && this.#records.isPushed())) return { items, next };
      return { items, next: `s${this.#process}-${searched}.` };
    } catch (error) {
      // Without permission for the index, or with another program's data under its name, all records are read.
      if (!(error instanceof StoreUnavailableError && isPermanentRefusal(error.cause))) throw error;
      return { items: [], next: 'a' };
    }
  }

  /** Adds all missing entries, then deletes those that fit no record. */
  async repair(): Promise<void> {
    let cursor: string | undefined;
    do {
      const page = await this.#records.scan(REPAIR, cursor, REPAIRED_AT_ONCE);
      await this.#addAll(REPAIR, page.items);
      cursor = page.next;
    } while (cursor !== undefined);
    await this.#dropStale();
  }

  async #dropStale(): Promise<void> {
    const { connection, name, idOf, termsOf, read } = this.#records;
    let from = '-';
    for (;;) {
      const entries = await connection.run(REPAIR, (redis) =>
        redis.zrangebylex(name, from, '+', 'LIMIT', 0, REPAIRED_AT_ONCE),
      );
      const last = entries.at(-1);
      if (last === undefined || from === `(${last}`) return;
      from = `(${last}`;
      const records = await read(REPAIR, entries.map(idIn));
      const isStale = (entry: string, at: number) => !records[at] || !termsOf(records[at]).includes(termIn(entry));
      const stale = entries.filter(isStale);
      if (stale.length === 0) continue;
      await connection.run(REPAIR, (redis) => redis.zrem(name, ...stale));
      // A record that was written meanwhile has its entries again.
      const written = (await read(REPAIR, stale.map(idIn))).filter((record) => record !== undefined);
      await this.#addAll(REPAIR, [...new Map(written.map((record) => [idOf(record), record])).values()]);
    }
  }

  async #findByEntries(search: Search<R>, first: number, after: string | undefined, limit: number): Promise<Page<R>> {
    const { connection, name, op, read } = this.#records;
    const items: R[] = [];
    for (const [at, { from, to = from }] of [...search.ranges.entries()].slice(first)) {
      const min = at === first && after !== undefined ? `(${after}` : `[${from}`;
      const room = limit - items.length;
      const entries = await connection.run(op, (redis) =>
        redis.zrangebylex(name, min, `(${to}${LAST}`, 'LIMIT', 0, room),
      );
      const records = await read(op, entries.map(idIn));
      for (const [i, entry] of entries.entries()) {
        const record = records[i];
        // A record is listed at the first of its entries in the ranges.
        if (record !== undefined && search.matches(record) && this.#firstTerm(record, search) === termIn(entry)) {
          items.push(record);
        }
      }
      const last = entries.at(-1);
      // The same entry again: another program wrote one that is no text, and no range begins after it.
      if (last !== undefined && last !== after && entries.length === room) {
        return { items, next: `e${at}.${Buffer.from(this.#shown(last)).toString('base64url')}` };
      }
    }
    return { items, next: undefined };
  }

  /** `searched`: the number of the search that listed the entries before; undefined if none was listed, or elsewhere. */
  async #findByScan(
    search: Search<R>,
    cursor: string | undefined,
    limit: number,
    searched: number | undefined,
  ): Promise<Page<R>> {
    if (cursor === undefined && this.#readUpTo !== 'all') {
      this.#changed = new Set();
      this.#readUpTo = { cursor: undefined };
    }
    const position = this.#readUpTo;
    const { items: records, next } = await this.#records.scan(this.#records.op, cursor, limit);
    const areNew = await this.#addAll(this.#records.op, records);
    // Not if a change was missed meanwhile, or another search has begun to read all.
    if (position === this.#readUpTo && typeof position === 'object' && position.cursor === cursor) {
      this.#readUpTo = next === undefined ? 'all' : { cursor: next };
    }
    // Another search may have added entries after this one listed them.
    const listsIndexed = searched === undefined || this.#hasAddedSince(searched);
    if (areNew.includes(true)) this.#noteAddition(searched);
    return { items: records.filter((record, at) => (listsIndexed || areNew[at]) && search.matches(record)), next };
  }

  #hasAddedSince(searched: number): boolean {
    return [...this.#additions].some(([adder, at]) => adder !== searched && at > searched);
  }

  #noteAddition(adder: number = UNKNOWN): void {
    const isFull = this.#additions.size >= MAX_SEARCHES;
    if (isFull) this.#additions.clear();
    // An unknown search must not take the additions of another for its own.
    this.#additions.set(isFull || adder === UNKNOWN ? NOBODY : adder, ++this.#events);
  }

  /** Returns a text after which the entries that follow this one begin. */
  #shown(entry: string): string {
    const { shownIdLength } = this.#records;
    return shownIdLength === undefined ? entry : termIn(entry) + SEPARATOR + idIn(entry).slice(0, shownIdLength) + LAST;
  }

  async #indexChanged(): Promise<void> {
    if (this.#changed === undefined || this.#changed.size === 0) return;
    const { op, read } = this.#records;
    const changed = [...this.#changed];
    this.#changed = new Set();
    try {
      const records = await read(op, changed);
      const areNew = await this.#addAll(
        op,
        records.filter((record) => record !== undefined),
      );
      if (areNew.includes(true)) this.#noteAddition();
    } catch (error) {
      this.changed(undefined);
      throw error;
    }
  }

  /** Resolves to whether entries of each record were missing; true for all of them if none could be added. */
  async #addAll(op: StoreOp, records: readonly R[]): Promise<readonly boolean[]> {
    const { connection, name, idOf, termsOf } = this.#records;
    const indexed = records.map((record) => ({ id: idOf(record), terms: termsOf(record) }));
    const withTerms = indexed.filter(({ terms }) => terms.length > 0);
    const commands = withTerms.map(
      ({ id, terms }) => ['zadd', name, ...terms.flatMap((term) => [0, term + SEPARATOR + id])] as const,
    );
    try {
      const replies = await sendAll(connection, op, commands);
      const added = new Map(withTerms.map(({ id }, at) => [id, replies[at] !== 0]));
      return indexed.map(({ id }) => added.get(id) ?? false);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError && isPermanentRefusal(error.cause))) throw error;
      this.changed(undefined);
      return records.map(() => true);
    }
  }

  #firstTerm(record: R, { ranges }: Search<R>): string | undefined {
    const terms = this.#records.termsOf(record);
    for (const { from, to = from } of ranges) {
      // Not by comparison alone: strings compare by UTF-16 here, and by UTF-8 in Redis.
      const isWithin = (term: string) => (term >= from && term < to) || term.startsWith(to);
      const [first] = terms.filter(isWithin).toSorted();
      if (first !== undefined) return first;
    }
    return undefined;
  }
}

function termIn(entry: string): string {
  return entry.slice(0, entry.lastIndexOf(SEPARATOR));
}

function idIn(entry: string): string {
  return entry.slice(entry.lastIndexOf(SEPARATOR) + 1);
}

function invalid(): never {
  throw new InvalidCursorError();
}
