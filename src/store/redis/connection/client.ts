/** The Redis client of a connection: ioredis with fewer socket writes, and with batches of commands. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
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
    const name = `tollgate ${basename(file.pathname)}`;
    this.defineCommand(name, { numberOfKeys, lua: scriptText(file) });
    return (Reflect.get(this, name) as RunScript).bind(this);
  }

  /**
   * Sends the commands together, in order. Resolves to the error or reply of each; rejects when there are no replies.
   */
  async batch(commands: readonly Command[]): Promise<readonly BatchReply[]> {
    if (commands.length === 0) return [];
    const replies = await this.pipeline(commands.map((command) => [...command])).exec();
    if (replies?.length !== commands.length) throw new UnexpectedReplyError('a pipeline');
    return replies;
  }
}
