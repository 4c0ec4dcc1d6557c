/**
 * Walks over the names of Redis keys that match a pattern, by SCAN: outside programs write records, and none of our
 * indexes.
 *
 * SCAN gives whole hash buckets. What it promises (that what is there from beginning to end is given) holds for whole
 * buckets only: the next page may find more or fewer names in the buckets that were cut, so it cannot know where to go
 * on. A page therefore takes what a step of SCAN gave as a whole, or leaves it to the next page and stays short. Only a
 * single bucket that is larger than a page is cut: at a digest, and its names are given in the order of their digests.
 */
import { hash } from 'node:crypto';
import { InvalidCursorError, type StoreOp } from '../store.ts';
import type { RedisConnection } from './connection.ts';

/** Names that Redis may look at in one step, in which it does nothing else: below a millisecond. */
const MAX_COUNT = 1000;
const MAX_ROUNDS = 32;
const CURSOR = /^(\d{1,20})(?:\.([0-9a-f]{16}))?$/;
const CURSORS = 2n ** 64n;
const DIGEST_LENGTH = 16;
const START = '0';

export interface NamePage {
  /** Without duplicates. */
  readonly names: readonly string[];
  readonly next: string | undefined;
}

interface Position {
  /** SCAN's own cursor. */
  readonly scan: string;
  /** Set when the bucket there was given up to this digest. */
  readonly after?: string;
}

/** @throws InvalidCursorError */
export async function scanPage(
  connection: RedisConnection,
  op: StoreOp,
  pattern: string,
  cursor: string | undefined,
  limit: number,
): Promise<NamePage> {
  let position = parseCursor(cursor);
  let count = position.after === undefined ? Math.min(limit, MAX_COUNT) : 1;
  const names = new Set<string>();
  for (let round = 0; round < MAX_ROUNDS && names.size < limit; round += 1) {
    const { scan } = position;
    const [next, found] = await connection.run(op, (redis) => redis.scan(scan, 'MATCH', pattern, 'COUNT', count));
    const fresh = after(position, found);
    const room = limit - names.size;
    if (fresh.length <= room) {
      for (const name of fresh) names.add(name);
      if (next === START) return { names: [...names], next: undefined };
      position = { scan: next };
      count = nextCount(count, fresh.length, room - fresh.length);
    } else if (names.size > 0) {
      break;
    } else if (count > 1) {
      count = Math.ceil(count / 2);
    } else {
      const given = fresh.toSorted(byDigest).slice(0, room);
      return { names: given, next: cursorOf({ scan: position.scan, after: digest(given.at(-1) ?? '') }) };
    }
  }
  return { names: [...names], next: cursorOf(position) };
}

/** All names, or those of Redis keys of one type, some of them perhaps twice, in pieces without an order. */
export async function* scanAll(
  connection: RedisConnection,
  op: StoreOp,
  pattern: string,
  type?: 'set',
): AsyncGenerator<string[]> {
  let cursor = START;
  do {
    const [next, names] = await connection.run(op, (redis) =>
      type === undefined
        ? redis.scan(cursor, 'MATCH', pattern, 'COUNT', MAX_COUNT)
        : redis.scan(cursor, 'MATCH', pattern, 'COUNT', MAX_COUNT, 'TYPE', type),
    );
    yield [...new Set(names)];
    cursor = next;
  } while (cursor !== START);
}

/** Half of what would fill the page if the rest were like this step; more and more while nothing is found. */
function nextCount(count: number, found: number, room: number): number {
  const wanted = found === 0 ? 2 * count : Math.floor((count * room) / (2 * found));
  return Math.max(1, Math.min(wanted, MAX_COUNT));
}

function after(position: Position, names: readonly string[]): string[] {
  const distinct = [...new Set(names)];
  const { after: last } = position;
  return last === undefined ? distinct : distinct.filter((name) => digest(name) > last);
}

/** Names of keys hold their SHA-256, which nobody is to see. */
function digest(name: string): string {
  return hash('sha256', name, 'hex').slice(0, DIGEST_LENGTH);
}

function byDigest(a: string, b: string): number {
  return digest(a) < digest(b) ? -1 : 1;
}

function cursorOf({ scan: cursor, after: last }: Position): string {
  return last === undefined ? cursor : `${cursor}.${last}`;
}

function parseCursor(cursor: string | undefined): Position {
  if (cursor === undefined) return { scan: START };
  const [, scanCursor = '', last] = CURSOR.exec(cursor) ?? [];
  if (scanCursor === '' || BigInt(scanCursor) >= CURSORS) throw new InvalidCursorError();
  return { scan: scanCursor, ...(last !== undefined && { after: last }) };
}
