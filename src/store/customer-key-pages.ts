/**
 * Pages of one customer's API keys. Sorting by age requires reading all keys, so only a short list is sorted as a
 * whole, oldest first. Its cursor holds the sort position of the last key, not an index, because keys may be created or
 * deleted between two pages. A longer list is paged in the store's own order, and each page is sorted by itself.
 */
import type { KeyRecord } from './record-fields.ts';
import type { Page } from './store.ts';

/** A list with at most this many keys, or one that fits into one page, is sorted as a whole. */
const MAX_SORTED = 200;
/** Digits of a wall time in ms, zero-padded so that text order is time order. */
const TIME_DIGITS = 15;
const POSITION = /^\d{15} ./s;

export interface CustomerKeys {
  /** Resolves to all keys; undefined if there are more than `max`. */
  readonly readUpTo: (max: number) => Promise<readonly KeyRecord[] | undefined>;
  /** Resolves to a page in the store's own order. */
  readonly readPage: (cursor: string | undefined) => Promise<Page<KeyRecord>>;
}

/** Reads the page at `cursor`. A short list is read as a whole. */
export async function customerKeyPage(
  { readUpTo, readPage }: CustomerKeys,
  cursor: string | undefined,
  limit: number,
): Promise<Page<KeyRecord>> {
  const position = cursor === undefined ? undefined : positionIn(cursor);
  // A cursor without a position belongs to a list too long to sort. A sorted list that has since grown too long is listed
  // again from its start.
  const storeCursor = position === undefined ? cursor : undefined;
  const keys = storeCursor === undefined ? await readUpTo(Math.max(limit, MAX_SORTED)) : undefined;
  if (keys !== undefined) return sortedPage(keys, position, limit);
  const { items, next } = await readPage(storeCursor);
  return { items: oldestFirst(items), next };
}

/** Returns the page that follows the position `after`. Keys of unknown age come first. */
function sortedPage(keys: readonly KeyRecord[], after: string | undefined, limit: number): Page<KeyRecord> {
  const rest = oldestFirst(keys).filter((key) => after === undefined || positionOf(key) > after);
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  const next = last !== undefined && items.length < rest.length ? encode(positionOf(last)) : undefined;
  return { items, next };
}

function oldestFirst(keys: readonly KeyRecord[]): KeyRecord[] {
  return keys.toSorted((a, b) => (positionOf(a) < positionOf(b) ? -1 : 1));
}

/** Returns the position at which a sorted page ended, decoded from its cursor; undefined for any other cursor. */
function positionIn(cursor: string): string | undefined {
  const position = Buffer.from(cursor, 'base64url').toString();
  return POSITION.test(position) && encode(position) === cursor ? position : undefined;
}

function positionOf({ id, createdAt = '' }: KeyRecord): string {
  const createdAtMs = Math.max(0, Date.parse(createdAt) || 0);
  return `${String(createdAtMs).padStart(TIME_DIGITS, '0')} ${id}`;
}

function encode(position: string): string {
  return Buffer.from(position).toString('base64url');
}
