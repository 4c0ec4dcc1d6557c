/** The client of a connection: ioredis with fewer writes, and several commands at once. */
import { Redis, type RedisOptions } from 'ioredis';
import { UnexpectedReplyError } from './unexpected-reply.ts';

export type Command = readonly [name: string, ...args: (string | number)[]];

export type BatchReply = readonly [error: Error | null, reply: unknown];

/** Replies are of the form that they have had from the start. */
export type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

export class RedisClient extends Redis {
  constructor(options: ClientOptions) {
    super(options);
  }

  /** What is asked within one turn of the event loop leaves in one write, at its end: writes are what a call costs most. */
  override sendCommand(...args: Parameters<Redis['sendCommand']>): unknown {
    const { stream } = this;
    if (stream?.writableCorked === 0) {
      stream.cork();
      setImmediate(() => stream.uncork());
    }
    return super.sendCommand(...args);
  }

  /** Sends the commands together, in their order. What each was answered; rejects when nothing was. */
  async batch(commands: readonly Command[]): Promise<readonly BatchReply[]> {
    if (commands.length === 0) return [];
    const replies = await this.pipeline(commands.map((command) => [...command])).exec();
    if (replies?.length !== commands.length) throw new UnexpectedReplyError('a pipeline');
    return replies;
  }
}
