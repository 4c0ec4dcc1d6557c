/** Sends commands in pipelines and checks the form of Redis' replies. */
import { ReplyError } from 'ioredis';
import type { Fields } from '../../record-fields.ts';
import { type StoreOp, StoreUnavailableError } from '../../store.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';
import type { RedisChannel } from './channel.ts';
import type { Command, RedisClient } from './client.ts';

/** The most commands that are sent at once: to build and to parse them takes about a millisecond. */
const PIPELINE_COMMANDS = 200;

/**
 * Sends the commands in pipelines of at most `size`. Resolves to the replies, in order; undefined for a Redis key of a
 * wrong type, which another program wrote. Rejects with any other error.
 */
export function sendAll(
  channel: RedisChannel,
  op: StoreOp,
  commands: readonly Command[],
  size?: number,
): Promise<unknown[]> {
  return inPieces(commands, (piece) => channel.run(op, (redis) => pipelined(redis, piece)), size);
}

/** Sends one command for each item, like {@link sendAll}. */
export function sendEach<Item>(
  channel: RedisChannel,
  op: StoreOp,
  items: readonly Item[],
  command: (item: Item) => Command,
): Promise<unknown[]> {
  return sendAll(channel, op, items.map(command));
}

/** Resolves to the store's time, wall time in ms. In a cluster it is the time of one of the servers. */
export async function storeTimeMs(channel: RedisChannel, op: StoreOp): Promise<number> {
  const [server] = channel.servers;
  if (server === undefined) throw new StoreUnavailableError('no Redis server is known');
  const [seconds, microseconds] = await server.run(op, (redis) => redis.time());
  const nowMs = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  if (!Number.isSafeInteger(nowMs)) throw new UnexpectedReplyError('TIME');
  return nowMs;
}

/** Reads these fields of Redis keys, in the order of `names`; undefined for a Redis key that is not a hash. */
export function readHashes<Field extends string>(
  channel: RedisChannel,
  op: StoreOp,
  names: readonly string[],
  fields: readonly Field[],
): Promise<(Fields<Field> | undefined)[]> {
  return inPieces(names, (piece) =>
    channel.run(op, async (redis) => {
      const replies = await pipelined(
        redis,
        piece.map((name) => ['hmget', name, ...fields]),
      );
      return replies.map((values) => (values === undefined ? undefined : named(fields, values)));
    }),
  );
}

/** Resolves to the replies to the commands, in order, in the form of {@link sendAll}. */
export async function pipelined(redis: RedisClient, commands: readonly Command[]): Promise<unknown[]> {
  const replies = await redis.batch(commands);
  return replies.map(([error, reply]) => {
    if (error === null) return reply;
    if (isWrongTypeError(error)) return undefined;
    throw error;
  });
}

/** Returns the pairs of a reply that alternates fields and values, or members and scores. */
export function pairsFrom(reply: readonly unknown[]): [string, string][] {
  return reply.flatMap((value, at) => (at % 2 === 0 ? [[String(value), String(reply[at + 1])]] : []));
}

/** Returns the fields of a hash from the reply to HGETALL in a pipeline. A key of another type has none. */
export function hashFrom(reply: unknown): ReadonlyMap<string, string> {
  if (Array.isArray(reply)) return new Map(pairsFrom(reply));
  return new Map(Object.entries((reply ?? {}) as Record<string, string>));
}

export function isWrongTypeError(error: unknown): boolean {
  return error instanceof Error && error instanceof ReplyError && error.message.startsWith('WRONGTYPE');
}

/** Calls `work` for pieces of at most `size` items, one after the other. Resolves to the results of all pieces. */
export async function inPieces<Item, Result>(
  items: readonly Item[],
  work: (piece: readonly Item[]) => Promise<readonly Result[]>,
  size = PIPELINE_COMMANDS,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let start = 0; start < items.length; start += size) {
    results.push(...(await work(items.slice(start, start + size))));
  }
  return results;
}

/** The cursor that starts a scan, and that Redis returns at its end. */
export const SCAN_START = '0';

/** Yields what each step of a scan finds, without duplicates within a step. */
export async function* scanSteps(
  step: (cursor: string) => Promise<[next: string, found: string[]]>,
): AsyncGenerator<string[]> {
  let cursor = SCAN_START;
  do {
    const [next, found] = await step(cursor);
    yield [...new Set(found)];
    cursor = next;
  } while (cursor !== SCAN_START);
}

/** Returns the values by field name. @throws UnexpectedReplyError when `values` does not fit `names`. */
export function named<Name extends string>(names: readonly Name[], values: unknown): Fields<Name> {
  const isFieldList =
    Array.isArray(values) &&
    values.length === names.length &&
    values.every((value) => value === null || typeof value === 'string');
  if (!isFieldList) throw new UnexpectedReplyError('HMGET');
  return Object.fromEntries(names.map((name, index) => [name, values[index]])) as Fields<Name>;
}

/** Returns the reply to GET. @throws UnexpectedReplyError */
export function textFrom(reply: unknown): string | null {
  if (reply !== null && typeof reply !== 'string') throw new UnexpectedReplyError('GET');
  return reply;
}
