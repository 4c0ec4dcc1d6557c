/** Failed requests in Redis: a sorted set of JSON texts by time in ms. */
import {
  type FailedRequest,
  type FailedRequestBounds,
  type FailedRequestStore,
  failedRequestPage,
  formatFailedRequest,
  parseFailedRequest,
  requestBefore,
  roomAfterDeletion,
  surplusOf,
} from '../failed-requests.ts';
import type { StoreOp } from '../observer.ts';
import { HOUR_MS } from '../usage-history.ts';
import { inPieces, type RedisChannel, sendAll, storeTimeMs } from './connection/channel.ts';
import { type Command, pairsFrom, scanSteps } from './connection/client.ts';
import type { RedisKeyNames } from './protocol/key-names.ts';

const ADD: StoreOp = 'add_failed_requests';
const READ: StoreOp = 'read_failed_requests';
/** Requests that are read at once: to parse them takes some milliseconds. */
const AT_ONCE = 1000;
const REMOVED_AT_ONCE = 200;
/** How many times the bound are read, at most, to delete what is too much. */
const MOST_READ = 4;
/** Deletions of one write. What others add during the last one is left to the next write. */
const ATTEMPTS = 3;
/** What a client may choose as a request id; none of these characters has a meaning in a pattern of Redis. */
const REQUEST_ID = /^[A-Za-z0-9._:=@+/-]{1,128}$/;
/** No gateway writes a later time than this one: other programs do, and the clock may have gone back. */
const MAX_AHEAD_MS = HOUR_MS;

/** `onFailure` is called with the error of a write that failed. */
export function redisFailedRequests(
  channel: RedisChannel,
  names: RedisKeyNames,
  onFailure: (error: unknown) => void,
): FailedRequestStore {
  const name = names.failedRequests;
  const nowMs = (op = READ) => storeTimeMs(channel, op);

  /** Reads all texts, the newest first. */
  const readAll = async () => {
    const read: { readonly text: string; readonly request: FailedRequest | undefined }[] = [];
    for (let start = 0; ; start += AT_ONCE) {
      const texts = await channel.run(ADD, (redis) => redis.zrevrange(name, start, start + AT_ONCE - 1));
      read.push(...texts.map((text) => ({ text, request: parseFailedRequest(text, 0) })));
      if (texts.length < AT_ONCE) return read;
    }
  };

  /** Deletes what is too much, and what no gateway has written. */
  const deleteSurplus = async (room: number) => {
    const read = await readAll();
    const valid = read.flatMap(({ text, request }) => (request === undefined ? [] : [{ text, ...request }]));
    const surplus = [...read.filter(({ request }) => request === undefined), ...surplusOf(valid, room)];
    await inPieces(
      surplus,
      async (piece) => [await channel.run(ADD, (redis) => redis.zrem(name, ...piece.map(({ text }) => text)))],
      REMOVED_AT_ONCE,
    );
  };

  /** Rejects if another program has written something else there, too. */
  const send = (commands: readonly Command[]) =>
    channel.run(ADD, async (redis) => {
      const replies = await redis.batch(commands);
      return replies.map(([error, reply]) => {
        if (error) throw error;
        return reply;
      });
    });

  async function add(requests: readonly FailedRequest[], bounds: FailedRequestBounds): Promise<void> {
    const storeMs = await nowMs(ADD);
    await inPieces(requests, (piece) =>
      send([['zadd', name, ...piece.flatMap((request) => [request.atMs, formatFailedRequest(request)])]]),
    );
    const keptMs = bounds.hours * HOUR_MS;
    await send([
      ['pexpire', name, keptMs],
      ['zremrangebyscore', name, '-inf', storeMs - keptMs],
      ['zremrangebyscore', name, storeMs + MAX_AHEAD_MS, '+inf'],
      // However much another program has written.
      ['zremrangebyrank', name, 0, -MOST_READ * bounds.entries - 1],
    ]);
    // Others add meanwhile. To delete the oldest of all in the end would push out what nobody else has in place of a flood.
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const [stored] = await send([['zcard', name]]);
      if (Number(stored) <= bounds.entries) return;
      await deleteSurplus(roomAfterDeletion(bounds));
    }
  }

  return {
    async add(requests, bounds) {
      try {
        await add(requests, bounds);
      } catch (error) {
        onFailure(error instanceof Error ? error.cause : error);
        throw error;
      }
    },

    async list({ sinceMs, customer, code }, cursor, limit) {
      const after = cursor === undefined ? undefined : requestBefore(cursor);
      const isWanted = (request: FailedRequest) =>
        (after === undefined || request.atMs < after.atMs || request.id < after.id) &&
        (customer === undefined || request.customer === customer) &&
        (code === undefined || request.code === code);
      const found: FailedRequest[] = [];
      for (let start = 0; found.length <= limit; start += AT_ONCE) {
        const max = after?.atMs ?? '+inf';
        const command = ['zrevrangebyscore', name, max, sinceMs, 'WITHSCORES', 'LIMIT', start, AT_ONCE] as const;
        const [reply] = await sendAll(channel, READ, [command]);
        const pairs = pairsFrom(Array.isArray(reply) ? reply : []);
        found.push(...pairs.flatMap(requestFrom).filter(isWanted));
        if (pairs.length < AT_ONCE) break;
      }
      return failedRequestPage(found, limit);
    },

    async find(requestId, sinceMs, limit) {
      if (!REQUEST_ID.test(requestId)) return [];
      const found = new Map<string, FailedRequest>();
      const pattern = `*"request_id":"${requestId}"*`;
      const steps = scanSteps(async (cursor) => {
        const [reply] = await sendAll(channel, READ, [['zscan', name, cursor, 'MATCH', pattern, 'COUNT', AT_ONCE]]);
        const [next, members] = Array.isArray(reply) ? reply : [];
        const requests = pairsFrom(Array.isArray(members) ? members : []).flatMap(requestFrom);
        for (const request of requests) found.set(request.id, request);
        return [String(next ?? 0), []];
      });
      for await (const _ of steps);
      return [...found.values()]
        .filter((request) => request.requestId === requestId && request.atMs >= sinceMs)
        .toSorted((a, b) => b.atMs - a.atMs || (a.id < b.id ? 1 : -1))
        .slice(0, limit);
    },

    nowMs,
  };
}

function requestFrom([text, score]: readonly [text: string, score: string]): FailedRequest | [] {
  return parseFailedRequest(text, Number(score)) ?? [];
}
