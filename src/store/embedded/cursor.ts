/** Where a page of a table ends: the last row's key, in URL-safe characters. */
import { InvalidCursorError, type Page } from '../store.ts';

/** Below every key. */
const START = '';

/** The page that these rows, one more than `limit` where there are more, make up; what is no item is left out. */
export function pageOf<Row, Item>(
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => string,
  itemFrom: (row: Row) => Item | undefined,
): Page<Item> {
  const given = rows.slice(0, limit);
  const last = given.at(-1);
  const next = rows.length > limit && last !== undefined ? Buffer.from(keyOf(last)).toString('base64url') : undefined;
  return { items: given.flatMap((row) => itemFrom(row) ?? []), next };
}

/** The key after which the page begins. @throws InvalidCursorError when it is none that was given. */
export function keyBefore(cursor: string | undefined): string {
  if (cursor === undefined) return START;
  const key = Buffer.from(cursor, 'base64url').toString();
  if (key === '' || Buffer.from(key).toString('base64url') !== cursor) throw new InvalidCursorError();
  return key;
}
