/** Cursors of table pages: the id of the page's last row, in URL-safe characters. */
import { InvalidCursorError } from '../errors.ts';
import type { Page } from '../records.ts';

/**
 * Returns the page of the first `limit` rows; one more row means that there is a next page. Leaves out rows for which
 * `itemFrom` returns undefined.
 */
export function pageOf<Row extends { readonly id: string | number }, Item>(
  rows: readonly Row[],
  limit: number,
  itemFrom: (row: Row) => Item | undefined,
): Page<Item> {
  const listed = rows.slice(0, limit);
  const last = listed.at(-1);
  const next = rows.length > limit && last !== undefined ? cursorAfter(String(last.id)) : undefined;
  return { items: listed.flatMap((row) => itemFrom(row) ?? []), next };
}

/** Returns the cursor of the page that begins after this id. */
export function cursorAfter(id: string): string {
  return Buffer.from(id).toString('base64url');
}

/** Returns the id after which the page begins. @throws InvalidCursorError when the cursor is malformed. */
export function idBefore(cursor: string | undefined): string {
  if (cursor === undefined) return ''; // sorts before every id
  const id = Buffer.from(cursor, 'base64url').toString();
  if (id === '' || cursorAfter(id) !== cursor) throw new InvalidCursorError();
  return id;
}
