/** Cursors of table pages: the key of the page's last row, in URL-safe characters. */
import { InvalidCursorError, type Page } from '../store.ts';

/**
 * Returns the page of the first `limit` rows; one more row means that there is a next page. Leaves out rows for which
 * `itemFrom` returns undefined.
 */
export function pageOf<Row, Item>(
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => string,
  itemFrom: (row: Row) => Item | undefined,
): Page<Item> {
  const listed = rows.slice(0, limit);
  const last = listed.at(-1);
  const next = rows.length > limit && last !== undefined ? cursorAfter(keyOf(last)) : undefined;
  return { items: listed.flatMap((row) => itemFrom(row) ?? []), next };
}

/** Returns the cursor of the page that begins after this key. */
export function cursorAfter(key: string): string {
  return Buffer.from(key).toString('base64url');
}

/** Returns the key after which the page begins. @throws InvalidCursorError when the cursor is malformed. */
export function keyBefore(cursor: string | undefined): string {
  if (cursor === undefined) return ''; // sorts before every key
  const key = Buffer.from(cursor, 'base64url').toString();
  if (key === '' || Buffer.from(key).toString('base64url') !== cursor) throw new InvalidCursorError();
  return key;
}
