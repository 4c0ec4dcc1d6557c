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

/** Returns the most keys that a list sorted as a whole may have. `limit`: the page size. */
export function maxSorted(limit: number): number {
  return Math.max(limit, MAX_SORTED);
}

/** Returns the page that follows the position `after` (see {@link positionIn}). Keys of unknown age come first. */
export function sortedPage(keys: readonly KeyRecord[], after: string | undefined, limit: number): Page<KeyRecord> {
  const rest = oldestFirst(keys).filter((key) => after === undefined || positionOf(key) > after);
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  const next = last !== undefined && items.length < rest.length ? encode(positionOf(last)) : undefined;
  return { items, next };
}

export function oldestFirst(keys: readonly KeyRecord[]): KeyRecord[] {
  return keys.toSorted((a, b) => (positionOf(a) < positionOf(b) ? -1 : 1));
}

/** Returns the position at which a sorted page ended, decoded from its cursor; undefined for any other cursor. */
export function positionIn(cursor: string): string | undefined {
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
