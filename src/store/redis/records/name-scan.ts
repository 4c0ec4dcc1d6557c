/**
 * Scans the names of Redis keys that match a pattern, with SCAN, because other programs write records without index
 * entries. Also scans the members of one set with SSCAN, which has the same cursors and guarantees.
 *
 * SCAN returns whole hash-table buckets. It guarantees that a name that exists throughout the scan is returned, but
 * only if every bucket is taken whole. A page therefore takes all names of a SCAN step, or leaves them to the next page
 * and stays short. Only a single bucket larger than a page is split: its names are returned in the order of their
 * digests, and the cursor holds the last digest and where the bucket ends, because Redis may resize its table between
 * two pages. Buckets follow each other in the order of their reversed bits, so a bucket of a table that has grown is a
 * range of smaller ones.
 *
 * In a cluster the masters are scanned one after the other. A SCAN cursor is valid only on the server that issued it,
 * and a name may move from a master not scanned yet to one already scanned. So when the masters or their slots change
 * before the end of a page, the scan starts again with the next page.
 */
import { hash } from 'node:crypto';
import { InvalidCursorError, StoreUnavailableError } from '../../errors.ts';
import type { StoreOp } from '../../observer.ts';
import { type RedisChannel, readHashes, type ScanPlan, sendEach } from '../connection/channel.ts';
import { type RedisClient, SCAN_START, scanSteps } from '../connection/client.ts';

/** Names that Redis may visit in one step, which blocks it for less than a millisecond. */
const MAX_COUNT = 1000;
const MAX_ROUNDS = 32;
/** Steps through what one step read before the table has grown. */
const MAX_PARTS = 32;
/** In a cluster the cursor begins with the layout and the index of the master. */
const CURSOR = /^(?:([0-9a-f]{8})-(\d{1,4})-)?(\d{1,20})(?:\.([0-9a-f]{16})\.(\d{1,20}))?$/;
const CURSORS = 2n ** 64n;
const DIGEST_LENGTH = 16;

const START = { layout: '', server: 0, scan: SCAN_START };

interface NamePage {
  /** Without duplicates. */
  readonly names: readonly string[];
  readonly next: string | undefined;
}

/** Runs one scan step from a cursor. Resolves to the next cursor and the names found. */
type Scan = (redis: RedisClient, cursor: string, count: number) => Promise<[cursor: string, found: string[]]>;

interface Position {
  /** Index of the server, in the channel's order. */
  readonly server: number;
  /** SCAN's own cursor. */
  readonly scan: string;
  /** Set when the names from `scan` to the cursor `end` were returned up to this digest. */
  readonly split?: SplitBucket;
}

interface SplitBucket {
  readonly after: string;
  readonly end: string;
}

/** Reads a page of the names that match `pattern`. @throws InvalidCursorError */
export async function scanPage(
  connection: RedisChannel,
  op: StoreOp,
  pattern: string,
  cursor: string | undefined,
  limit: number,
): Promise<NamePage> {
  const start = checkedCursor(cursor);
  const plan = await connection.planScan(op);
  const scan: Scan = (redis, at, count) => redis.scan(at, 'MATCH', pattern, 'COUNT', count);
  const page = await scanPlanned(plan, op, scan, positionIn(plan, start), limit);
  const { layout } = await connection.planScan(op);
  return layout === plan.layout ? page : { names: page.names, next: cursorOf(START, plan.layout) };
}

/** Reads a page of the members of the set `name`. @throws InvalidCursorError */
export async function scanSetPage(
  connection: RedisChannel,
  op: StoreOp,
  name: string,
  cursor: string | undefined,
  limit: number,
): Promise<NamePage> {
  const plan = { layout: '', servers: [connection] };
  const scan: Scan = (redis, at, count) => redis.sscan(name, at, 'COUNT', count);
  return scanPlanned(plan, op, scan, positionIn(plan, checkedCursor(cursor)), limit);
}

async function scanPlanned(
  { layout, servers }: ScanPlan,
  op: StoreOp,
  scanStep: Scan,
  start: Position,
  limit: number,
): Promise<NamePage> {
  let position = start;
  let count = position.split === undefined ? Math.min(limit, MAX_COUNT) : 1;
  const names = new Set<string>();
  for (let round = 0; round < MAX_ROUNDS && names.size < limit; round += 1) {
    const { server, scan } = position;
    const step = (at: string, size = count) => serverAt(servers, server).run(op, (redis) => scanStep(redis, at, size));
    const [next, found] = await (position.split === undefined ? step(scan) : readRest(step, scan, position.split));
    const fresh = [...new Set(found)];
    const room = limit - names.size;
    if (fresh.length <= room) {
      for (const name of fresh) names.add(name);
      if (next === SCAN_START && server + 1 >= servers.length) return { names: [...names], next: undefined };
      position = next === SCAN_START ? { server: server + 1, scan: SCAN_START } : { server, scan: next };
      count = nextCount(count, fresh.length, room - fresh.length);
    } else if (names.size > 0) {
      break;
    } else if (count > 1) {
      count = Math.ceil(count / 2);
    } else {
      const part = fresh.toSorted(byDigest).slice(0, room);
      const split = { after: digest(part.at(-1) ?? ''), end: next };
      return { names: part, next: cursorOf({ server, scan, split }, layout) };
    }
  }
  return { names: [...names], next: cursorOf(position, layout) };
}

/** Yields all matching names, or those of Redis keys of one type, in unordered batches; some names may appear twice. */
export async function* scanAll(
  connection: RedisChannel,
  op: StoreOp,
  pattern: string,
  type?: 'set',
): AsyncGenerator<string[]> {
  const scan = (redis: RedisClient, cursor: string) =>
    type === undefined
      ? redis.scan(cursor, 'MATCH', pattern, 'COUNT', MAX_COUNT)
      : redis.scan(cursor, 'MATCH', pattern, 'COUNT', MAX_COUNT, 'TYPE', type);
  let scanned: string;
  do {
    const { layout, servers } = await connection.planScan(op);
    scanned = layout;
    for (const server of servers) {
      yield* scanSteps((cursor) => server.run(op, (redis) => scan(redis, cursor)));
    }
  } while (scanned !== (await connection.planScan(op)).layout);
}

/** Yields these fields of all hashes with matching names; undefined for another type. Some may appear twice. */
export async function* scanHashes<Field extends string>(
  connection: RedisChannel,
  op: StoreOp,
  pattern: string,
  fields: readonly Field[],
) {
  for await (const names of scanAll(connection, op, pattern)) {
    const read = await readHashes(connection, op, names, fields);
    const found = names.map((name, i) => ({ name, fields: read[i] }));
    // A hash without any of the fields looks like one that was deleted after the scan, so its name is checked again.
    const empty = found.filter((each) => each.fields && Object.values(each.fields).every((value) => value === null));
    const replies = await sendEach(connection, op, empty, ({ name }) => ['exists', name]);
    const deleted = new Set(empty.filter((_, i) => replies[i] === 0));
    yield found.filter((each) => !deleted.has(each));
  }
}

function serverAt(servers: readonly RedisChannel[], index: number): RedisChannel {
  const server = servers[index];
  if (server === undefined) throw new StoreUnavailableError('not connected to Redis: no master is known');
  return server;
}

/** Returns half the COUNT that would fill the page if this step is typical. Doubles it while nothing is found. */
function nextCount(count: number, found: number, room: number): number {
  const wanted = found === 0 ? 2 * count : Math.floor((count * room) / (2 * found));
  return Math.max(1, Math.min(wanted, MAX_COUNT));
}

/**
 * Reads what earlier pages left of a split bucket. Where the first step ends behind the bucket, the table has shrunk or
 * the bucket is empty: all names are returned, better twice than not at all. A cursor that was made up may say that all of
 * Redis is one bucket; of that, about a thousand names are read.
 */
async function readRest(
  step: (cursor: string, count: number) => Promise<[next: string, found: string[]]>,
  scan: string,
  { after, end }: SplitBucket,
): Promise<[next: string, found: string[]]> {
  let [at, names] = await step(scan, 1);
  if (isBefore(end, at)) return [at, names];
  let count = 1;
  for (let part = 1; part < MAX_PARTS && at !== end && names.length < MAX_COUNT; part += 1) {
    const [next, found] = await step(at, count);
    if (!isBefore(end, next)) {
      names = [...names, ...found];
      at = next;
      count = Math.min(2 * count, MAX_COUNT);
    } else if (count > 1) {
      count = Math.ceil(count / 2);
    } else {
      break;
    }
  }
  return [at, names.filter((name) => digest(name) > after)];
}

/** Whether SCAN reaches one cursor before another. The start is also the end. */
function isBefore(cursor: string, other: string): boolean {
  if (cursor === SCAN_START) return false;
  return other === SCAN_START || reversedBits(cursor) < reversedBits(other);
}

function reversedBits(cursor: string): string {
  return [...BigInt(cursor).toString(2).padStart(64, '0')].reverse().join('');
}

/** A digest, because names of key records contain the key's SHA-256, which cursors must not reveal. */
function digest(name: string): string {
  return hash('sha256', name, 'hex').slice(0, DIGEST_LENGTH);
}

function byDigest(a: string, b: string): number {
  return digest(a) < digest(b) ? -1 : 1;
}

function cursorOf({ server, scan, split }: Position, layout: string): string {
  const inServer = split === undefined ? scan : `${scan}.${split.after}.${split.end}`;
  return layout === '' ? inServer : `${layout}-${server}-${inServer}`;
}

/** Where a page begins according to its cursor, in the scan of one layout. */
interface CursorPosition extends Position {
  readonly layout: string;
}

/** @throws InvalidCursorError */
function checkedCursor(cursor: string | undefined): CursorPosition {
  if (cursor === undefined) return START;
  const [, layout = '', server = '0', scan = '', after, end = SCAN_START] = CURSOR.exec(cursor) ?? [];
  if (scan === '' || BigInt(scan) >= CURSORS || BigInt(end) >= CURSORS) throw new InvalidCursorError();
  return { layout, server: Number(server), scan, ...(after !== undefined && { split: { after, end } }) };
}

/** Returns where a page begins: at the start, if the layout has changed since the cursor was issued. */
function positionIn({ layout, servers }: ScanPlan, start: CursorPosition): Position {
  return start.layout === layout && start.server < servers.length ? start : START;
}
