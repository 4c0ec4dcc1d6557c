/**
 * One connection to Redis that fails fast and heals by itself.
 *
 * The options turn off everything that makes ioredis wait or repeat. Without them an outage becomes hanging requests, and
 * a command whose reply was lost is sent again and counts twice. Only the handshake reconnects, for ever.
 *
 * The connection is usable while it is ready and its last call was answered. After a call that was not answered in time,
 * a PING finds out when Redis answers again; until then further calls are refused at once, so that a silent store makes
 * one request wait and not every one.
 *
 * A connection that carries nothing may be dead without either end knowing. So an idle one is sent a PING now and then.
 */
import { Redis, ReplyError } from 'ioredis';
import { type Clock, systemScheduler } from '../../clock.ts';
import { type StoreObserver, type StoreOp, StoreUnavailableError } from '../store.ts';
import { UnexpectedReplyError } from './unexpected-reply.ts';

const CONNECT_TIMEOUT_MS = 1000;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1000;
const PROBE_INTERVAL_MS = 200;
const HEARTBEAT_MS = 5000;

export interface RedisConnectionOptions {
  /** `redis://` or `rediss://`. */
  readonly url: string;
  /** Shown in Redis' CLIENT LIST. */
  readonly name: string;
  /** Calls that take longer reject, and so do those after them; without it they end with the connection. */
  readonly commandTimeoutMs?: number;
  /** A connection that leaves a call unanswered for so long is given up. */
  readonly socketTimeoutMs: number;
  /** How often it is made sure that Redis still answers on this connection. Default 5 s. */
  readonly heartbeatMs?: number;
  readonly clock: Clock;
  readonly observer: StoreObserver;
  /** Called whenever `usable` may have changed, and with the reason whenever something failed. */
  readonly onChange: (failure?: string) => void;
}

export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  readonly #redis: Redis;
  readonly #database: number;
  #session = 1;
  /** In the database that the URL names. */
  #selected = false;
  #selecting: Promise<void> | undefined;
  #unanswered = false;
  #probe: NodeJS.Timeout | undefined;
  readonly #heartbeat: NodeJS.Timeout;
  /** Why there is no connection; unset while there is one. */
  #lossReason: string | undefined;
  #closed = false;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.#database = Number(new URL(options.url).pathname.slice(1));
    this.#redis = new Redis(options.url, {
      lazyConnect: true,
      protocol: 2,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      connectTimeout: CONNECT_TIMEOUT_MS,
      retryStrategy: retryDelayMs,
      connectionName: options.name,
      // Who subscribes does something else first on each new connection.
      autoResubscribe: false,
      disableClientInfo: true,
    });
    this.#redis.on('ready', () => {
      this.#selecting = this.#selectDatabase();
    });
    this.#redis.on('connect', () => this.#expectHandshake());
    this.#redis.on('close', () => this.#lost());
    this.#redis.on('error', (error: Error) => {
      this.#lossReason = describe(error);
    });
    this.#heartbeat = setInterval(() => void this.#ping(), options.heartbeatMs ?? HEARTBEAT_MS).unref();
  }

  /** The client, for defining commands before the first call. */
  get client(): Redis {
    return this.#redis;
  }

  /** A number that changes with every loss of the connection. */
  get session(): number {
    return this.#session;
  }

  get connected(): boolean {
    return this.#redis.status === 'ready' && this.#selected;
  }

  get usable(): boolean {
    return this.connected && !this.#unanswered;
  }

  /** Connects; settles with the first attempt, whatever came of it. */
  async open(): Promise<void> {
    await this.#redis.connect().catch(() => undefined);
    await this.#selecting;
  }

  /**
   * Runs one operation and tells the observer. What cannot be sent is refused at once and is no call.
   * @throws StoreUnavailableError for whatever `operation` rejects with.
   */
  async run<T>(op: StoreOp, operation: (redis: Redis) => Promise<T>): Promise<T> {
    const { clock, observer, commandTimeoutMs } = this.#options;
    if (!this.connected) throw this.#notConnected();
    if (this.#unanswered && commandTimeoutMs !== undefined) {
      throw new StoreUnavailableError('Redis did not answer in time, and has not answered since');
    }
    const startedMs = clock.monotonicMs();
    const seconds = () => (clock.monotonicMs() - startedMs) / 1000;
    try {
      const result = await this.#inTime(operation(this.#redis));
      this.#answered();
      observer.called(op, seconds(), false);
      return result;
    } catch (error) {
      observer.called(op, seconds(), true);
      throw this.#unavailable(error);
    }
  }

  /** Ends the connection after the replies that are still due. Calls reject from now on. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#probe);
    clearInterval(this.#heartbeat);
    if (this.connected) await this.#redis.quit().catch(() => undefined);
    this.#redis.disconnect();
  }

  /** ioredis goes on in database 0 when another one is refused: good keys would be unknown there. */
  async #selectDatabase(): Promise<void> {
    try {
      if (this.#database !== 0) await this.#redis.select(this.#database);
    } catch (error) {
      withoutArguments(error);
      this.#lossReason = `database ${this.#database} is refused: ${describe(error)}`;
      // Said at once: whoever opened the connection asks why before the socket has closed.
      this.#options.onChange(this.#lossReason);
      this.#giveUp(this.#lossReason);
      return;
    }
    this.#selected = true;
    this.#lossReason = undefined;
    this.#answered();
  }

  #notConnected(cause?: unknown): StoreUnavailableError {
    const reason = this.#lossReason ?? 'the connection is being made';
    return new StoreUnavailableError(`not connected to Redis: ${reason}`, { cause });
  }

  #unavailable(error: unknown): StoreUnavailableError {
    withoutArguments(error);
    const isReply = error instanceof ReplyError || error instanceof UnexpectedReplyError;
    if (!isReply && !this.connected) return this.#notConnected(error);
    const failure = describe(error);
    if (isReply) {
      this.#unanswered = false;
      this.#options.onChange(failure);
    } else {
      this.#notAnswered(failure);
    }
    return new StoreUnavailableError(`Redis: ${failure}`, { cause: error });
  }

  #answered(): void {
    this.#unanswered = false;
    this.#options.onChange();
  }

  #notAnswered(failure: string): void {
    this.#unanswered = true;
    this.#probe ??= this.#closed
      ? undefined
      : setTimeout(() => {
          this.#probe = undefined;
          if (this.#unanswered) void this.#ping();
        }, PROBE_INTERVAL_MS).unref();
    this.#options.onChange(failure);
  }

  #lost(): void {
    this.#session += 1;
    this.#selected = false;
    this.#unanswered = false;
    this.#lossReason ??= 'the connection was closed';
    this.#options.onChange(this.#lossReason);
  }

  /**
   * The reply, or an error once it is late. A connection on which a reply is missing for `socketTimeoutMs` is given up.
   * The timeouts of ioredis would fire in a process that was busy for so long, with the reply unread in its socket.
   */
  #inTime<T>(reply: Promise<T>): Promise<T> {
    const { commandTimeoutMs, socketTimeoutMs } = this.#options;
    const silent = systemScheduler.deadline(socketTimeoutMs, () => {
      this.#giveUp(`no reply within ${socketTimeoutMs} ms`);
    });
    return new Promise((resolve, reject) => {
      const late =
        commandTimeoutMs === undefined
          ? undefined
          : systemScheduler.deadline(commandTimeoutMs, () => reject(new Error('Command timed out')));
      reply.then(resolve, reject).finally(() => {
        late?.cancel();
        silent.cancel();
      });
    });
  }

  /** ioredis waits for ever for a server that accepts the connection and then says nothing. */
  #expectHandshake(): void {
    const { session } = this;
    systemScheduler.deadline(Math.max(CONNECT_TIMEOUT_MS, this.#options.socketTimeoutMs), () => {
      if (this.session === session && !this.connected) this.#giveUp('no handshake');
    });
  }

  /** Not by `disconnect()`: that waits for the other side to close as well. */
  #giveUp(reason: string): void {
    if (!this.#closed) this.#redis.stream.destroy(new Error(reason));
  }

  async #ping(): Promise<void> {
    if (!this.connected) return;
    try {
      await this.#inTime(this.#redis.ping());
      this.#answered();
    } catch (error) {
      // A connection that is gone says so itself.
      if (this.connected) this.#notAnswered(describe(error));
    }
  }
}

/** Exponential, and spread out so that many gateways do not come back in step. */
function retryDelayMs(attempt: number): number {
  const ceilingMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** attempt);
  return Math.round(FIRST_RETRY_MS + Math.random() * (ceilingMs - FIRST_RETRY_MS));
}

function describe(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(describe).join('; ');
  return error instanceof Error ? error.message || error.name : String(error);
}

/** ioredis hangs a command's arguments on its error: digests of keys and a password of AUTH must not reach a log. */
function withoutArguments(error: unknown): void {
  if (error instanceof Error && 'command' in error) delete error.command;
}
