/** Pages of a customer's keys, which the store gives all at once. Cut by value, so that keys may come and go between two. */
import { parseTimestamp } from '../keys/timestamp.ts';
import { InvalidCursorError, type KeyRecord, type Page } from '../store/store.ts';

/** Of wall time in ms: text that sorts as the time does. */
const TIME_DIGITS = 15;
const POSITION = /^\d{15} ./s;

/** Oldest first; keys of unknown age come before all others. @throws InvalidCursorError */
export function pageOfKeys(keys: readonly KeyRecord[], cursor: string | undefined, limit: number): Page<KeyRecord> {
  const after = cursor === undefined ? '' : decodePosition(cursor);
  const rest = keys
    .map((key) => ({ key, position: positionOf(key) }))
    .filter(({ position }) => position > after)
    .sort((a, b) => (a.position < b.position ? -1 : 1));
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  return {
    items: items.map(({ key }) => key),
    next: last !== undefined && items.length < rest.length ? encodePosition(last.position) : undefined,
  };
}

function positionOf({ id, createdAt }: KeyRecord): string {
  const createdAtMs = createdAt === undefined ? 0 : (parseTimestamp(createdAt) ?? 0);
  return `${String(Math.max(0, createdAtMs)).padStart(TIME_DIGITS, '0')} ${id}`;
}

function encodePosition(position: string): string {
  return Buffer.from(position).toString('base64url');
}

function decodePosition(cursor: string): string {
  const position = Buffer.from(cursor, 'base64url').toString();
  if (!POSITION.test(position)) throw new InvalidCursorError();
  return position;
}
