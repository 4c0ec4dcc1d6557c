/**
 * How the store's parts send commands to Redis, one by one or in pipelines. A channel is one connection, or in a cluster
 * one to each master. There, each command is sent to the master that holds its Redis key (called name here).
 */
import { StoreUnavailableError } from '../../errors.ts';
import type { StoreOp } from '../../observer.ts';
import type { Fields } from '../../record-fields.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';
import { type Command, named, pipelined, type RedisClient } from './client.ts';

/** The most commands that are sent at once: to build and to parse them takes about a millisecond. */
const PIPELINE_COMMANDS = 200;

export interface ScanPlan {
  /** In the order in which they must be scanned: a name that moves meanwhile moves to a later server. */
  readonly servers: readonly RedisChannel[];
  /** Changes when other servers hold the names, or names are moved: then a scan must start again. */
  readonly layout: string;
}

export interface RedisChannel {
  /** For defining commands before the first call, and for calls outside `run` and `attempt`. */
  readonly client: RedisClient;
  /**
   * Identifies the present connections to all servers of the channel; undefined while one is missing. Changes with each
   * loss.
   */
  readonly sessions: string | undefined;
  /** Returns whether calls are possible now: to every server, or to the one that holds `name`. */
  isUsable(name?: string): boolean;
  /**
   * Runs one operation and reports it to the observer. Rejects at once what cannot be sent.
   * @throws StoreUnavailableError when `operation` rejects.
   */
  run<T>(op: StoreOp, operation: (redis: RedisClient) => Promise<T>): Promise<T>;
  /**
   * Like `run`, but does not report to the observer. Rejects with StoreUnavailableError when the operation cannot be
   * sent, else with the error of `operation`.
   */
  attempt<T>(operation: (redis: RedisClient) => Promise<T>): Promise<T>;
  /** For commands that every server must run: in a cluster one channel to each master. */
  readonly servers: readonly RedisChannel[];
  /** Resolves to a plan for scanning all names, from the servers' own present view. Rejects with StoreUnavailableError. */
  planScan(op: StoreOp): Promise<ScanPlan>;
  /** Whether there are several servers, each of which can lose data unnoticed by the others. */
  readonly isCluster: boolean;
}

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
