/**
 * Pages of one customer's keys. Sorting by age needs all of them, so only a list that is short enough is sorted as a whole,
 * oldest first, and cut by value: keys may come and go between two pages. The pages of a longer list are in the store's own
 * order, and each is sorted by itself.
 */
import type { KeyRecord, Page } from './store.ts';

/** A list is sorted as a whole when it has at most so many keys, or fits into one page. */
const MOST_SORTED = 200;
/** Of wall time in ms: text that sorts as the time does. */
const TIME_DIGITS = 15;
const POSITION = /^\d{15} ./s;

/** How many keys a customer may have for its list to be sorted as a whole. */
export function mostSorted(limit: number): number {
  return Math.max(limit, MOST_SORTED);
}

/** Keys of unknown age come before all others. `after`: of {@link positionIn}. */
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

/** Where a sorted page ended, by its cursor; undefined for any other cursor. */
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
