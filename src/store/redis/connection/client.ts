/**
 * The Redis client of a connection: ioredis with fewer socket writes, and with batches of commands. Checks of the form of
 * Redis' replies.
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { Redis, type RedisOptions, ReplyError } from 'ioredis';
import type { Fields } from '../../record-fields.ts';
import { UnexpectedReplyError } from '../protocol/redis-errors.ts';

export type Command = readonly [name: string, ...args: (string | number)[]];

export type BatchReply = readonly [error: Error | null, reply: unknown];

/** Without `replyMapping`: replies keep the default (RESP2) form. */
export type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

/** Runs a script with the names of its Redis keys, then its arguments. */
export type RunScript = (...namesAndArguments: (string | number)[]) => Promise<unknown>;

const PRELUDE = readFileSync(new URL('./prelude.lua', import.meta.url), 'utf8');

/** Returns a Lua file as a script: after the lines with which every script begins. */
export function scriptText(file: URL): string {
  return PRELUDE + readFileSync(file, 'utf8');
}

export class RedisClient extends Redis {
  #holdsWrites = false;
  readonly #actions: (() => void)[] = [];

  constructor(options: ClientOptions) {
    super(options);
  }

  /** Sends the commands of one event-loop turn in a single write at its end: writes are the largest cost of a call. */
  override sendCommand(...args: Parameters<Redis['sendCommand']>): unknown {
    this.#holdWrites();
    return super.sendCommand(...args);
  }

  /** Runs `action` at the end of this turn of the event loop, before the turn's commands are written. */
  atEndOfTurn(action: () => void): void {
    this.#actions.push(action);
    this.#holdWrites();
  }

  #holdWrites(): void {
    if (this.#holdsWrites) return;
    this.#holdsWrites = true;
    const { stream } = this;
    stream?.cork();
    setImmediate(() => {
      for (const action of this.#actions.splice(0)) action();
      this.#holdsWrites = false;
      stream?.uncork();
    });
  }

  /** Defines the script in a Lua file, see {@link scriptText}. Must be called before the first command is sent. */
  defineScript(file: URL, numberOfKeys: number): RunScript {
    return this.defineText(basename(file.pathname), scriptText(file), numberOfKeys);
  }

  /** The same for a whole script. */
  defineText(script: string, lua: string, numberOfKeys: number): RunScript {
    const name = `tollgate ${script}`;
    this.defineCommand(name, { numberOfKeys, lua });
    return (Reflect.get(this, name) as RunScript).bind(this);
  }

  /** Sends the commands together, in order. Resolves to the error or reply of each; rejects when there are no replies. */
  async batch(commands: readonly Command[]): Promise<readonly BatchReply[]> {
    if (commands.length === 0) return [];
    const replies = await this.pipeline(commands.map((command) => [...command])).exec();
    if (replies?.length !== commands.length) throw new UnexpectedReplyError('a pipeline');
    return replies;
  }
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
