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
import { once } from 'node:events';
import { ReplyError } from 'ioredis';
import { type Clock, systemScheduler } from '../../clock.ts';
import { type StoreObserver, type StoreOp, StoreUnavailableError } from '../store.ts';
import type { RedisChannel, WalkPlan } from './channel.ts';
import { type ClientOptions, RedisClient } from './client.ts';
import { UnexpectedReplyError } from './unexpected-reply.ts';

const CONNECT_TIMEOUT_MS = 1000;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1000;
const PROBE_INTERVAL_MS = 200;
const HEARTBEAT_MS = 5000;
/** How long closing waits for replies that are still due. */
const CLOSE_MS = 500;
/** What a member of a cluster answers when another one is to be asked: nothing has run. */
const REDIRECTION = /^(?:MOVED|ASK|TRYAGAIN) /;
/** How Redis repeats what it was sent with a command that it does not have: with AUTH, the password. */
const REPEATED_ARGUMENTS = /,? with args beginning with.*/is;
/** Replacing shorter ones would mangle every message. */
const SHORTEST_SECRET = 4;
/** What Redis before 7 puts before the refusal of a command within a script. */
const SCRIPT_PLACE = /^ERR Error running script \(call to \w+\): (?:@user_script: ?\d+: )+-?(?=[A-Z]+ )/;

export interface RedisConnectionOptions {
  /** Which server, and how it lets us in. */
  readonly server: ClientOptions;
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
  /** Called when the server turns out to take no writes: another one is the master by now. */
  readonly onReadOnly?: () => void;
  /** A replica will do, too. Default: no. */
  readonly anyRole?: boolean;
  /** A number that no connection was given before. Default: those of this connection alone. */
  readonly newSession?: () => number;
}

export class RedisConnection implements RedisChannel {
  readonly isCluster = false;
  readonly servers: readonly RedisChannel[] = [this];
  readonly #options: RedisConnectionOptions;
  readonly #redis: RedisClient;
  readonly #database: number;
  readonly #newSession: () => number;
  readonly #secrets: readonly string[];
  #session: number;
  #attempts = 0;
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
    this.#newSession = options.newSession ?? counter();
    this.#session = this.#newSession();
    this.#database = options.server.db ?? 0;
    this.#secrets = [options.server.password, options.server.sentinelPassword].filter(isSecret);
    this.#redis = new RedisClient({
      ...options.server,
      lazyConnect: true,
      protocol: 2,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      connectTimeout: CONNECT_TIMEOUT_MS,
      // Without a number ioredis would give up for good once the last of the sentinels has been asked.
      sentinelRetryStrategy: retryDelayMs,
      // Not by the count of ioredis, which starts anew with a server that lets us in and is then of no use.
      retryStrategy: () => retryDelayMs(++this.#attempts),
      connectionName: options.name,
      // Who subscribes does something else first on each new connection.
      autoResubscribe: false,
      disableClientInfo: true,
    });
    this.#redis.on('ready', () => {
      this.#selecting = this.#begin();
    });
    this.#redis.on('connect', () => this.#expectHandshake());
    this.#redis.on('close', () => this.#lost());
    this.#redis.on('error', (error: Error) => {
      withoutArguments(error, this.#secrets);
      this.#lossReason = describe(error);
    });
    this.#heartbeat = setInterval(() => void this.#ping(), options.heartbeatMs ?? HEARTBEAT_MS).unref();
  }

  /** The client, for defining commands before the first call. */
  get client(): RedisClient {
    return this.#redis;
  }

  /** A number that changes with every loss of the connection. */
  get session(): number {
    return this.#session;
  }

  get sessions(): string | undefined {
    return this.connected ? String(this.#session) : undefined;
  }

  sessionOf(): number {
    return this.#session;
  }

  planWalk(): Promise<WalkPlan> {
    return Promise.resolve({ servers: this.servers, layout: '' });
  }

  isUsable(): boolean {
    return this.usable;
  }

  get connected(): boolean {
    return this.#redis.status === 'ready' && this.#selected;
  }

  get usable(): boolean {
    return this.connected && !this.#unanswered;
  }

  /** Connects; settles with the first attempt, whatever came of it. */
  async open(): Promise<void> {
    const connecting = this.#redis.connect().catch(() => undefined);
    // While no sentinel knows a master, connecting goes on for ever.
    await (this.#options.server.sentinels === undefined ? connecting : Promise.race([connecting, this.#noSentinel()]));
    await this.#selecting;
  }

  /** What cannot be sent is refused at once and is no call. */
  async run<T>(op: StoreOp, operation: (redis: RedisClient) => Promise<T>): Promise<T> {
    const { clock, observer } = this.#options;
    this.#refuseUnlessUsable();
    const startedMs = clock.monotonicMs();
    const seconds = () => (clock.monotonicMs() - startedMs) / 1000;
    try {
      const result = await this.attempt(operation);
      observer.called(op, seconds(), false);
      return result;
    } catch (error) {
      observer.called(op, seconds(), true);
      throw this.#unavailable(error);
    }
  }

  /**
   * Part of an operation that is observed elsewhere. Rejects with StoreUnavailableError when it cannot be sent, and else
   * with what `work` rejects with.
   */
  async attempt<T>(work: (redis: RedisClient) => Promise<T>): Promise<T> {
    this.#refuseUnlessUsable();
    try {
      const result = await this.#inTime(work(this.#redis));
      this.#answered();
      return result;
    } catch (error) {
      this.#failed(error);
      throw error;
    }
  }

  /** Connects anew, perhaps to another server. */
  reconnect(reason: string): void {
    if (this.connected) this.#giveUp(reason);
  }

  /** Closes the connection after the replies that are still due, or after {@link CLOSE_MS}. Calls reject from now on. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#probe);
    clearInterval(this.#heartbeat);
    if (this.usable) await this.#quit();
    this.#redis.disconnect();
    // ioredis only ends its side of the socket and then waits for a server that may hang.
    this.#redis.stream?.destroy();
  }

  async #quit(): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const deadline = systemScheduler.deadline(CLOSE_MS, resolve);
    await Promise.race([this.#redis.quit().catch(() => undefined), late]);
    deadline.cancel();
  }

  async #noSentinel(): Promise<void> {
    await once(this.#redis, 'error').catch(() => undefined);
    this.#options.onChange(this.#lossReason);
  }

  async #begin(): Promise<void> {
    const session = this.#session;
    const fault = (await this.#selectDatabase()) ?? (await this.#roleFault());
    if (session !== this.#session) return;
    if (fault !== undefined) {
      this.#lossReason = fault;
      // Said at once: whoever opened the connection asks why before the socket has closed.
      this.#options.onChange(fault);
      this.#giveUp(fault);
      return;
    }
    this.#selected = true;
    this.#lossReason = undefined;
    this.#attempts = 0;
    this.#answered();
  }

  /** ioredis goes on in database 0 when another one is refused: good keys would be unknown there. */
  async #selectDatabase(): Promise<string | undefined> {
    try {
      if (this.#database !== 0) await this.#redis.select(this.#database);
      return undefined;
    } catch (error) {
      withoutArguments(error, this.#secrets);
      return `database ${this.#database} is refused: ${describe(error)}`;
    }
  }

  /** A replica answers reads with what the master may have changed since. Where INFO is forbidden, nobody can tell. */
  async #roleFault(): Promise<string | undefined> {
    if (this.#options.anyRole) return undefined;
    const info = await this.#redis.info('replication').catch(() => '');
    return /^role:slave/m.test(info) ? 'this Redis is a replica, which takes no writes' : undefined;
  }

  #refuseUnlessUsable(): void {
    if (!this.connected) throw this.#notConnected();
    if (this.#unanswered && this.#options.commandTimeoutMs !== undefined) {
      throw new StoreUnavailableError('Redis did not answer in time, and has not answered since');
    }
  }

  #notConnected(cause?: unknown): StoreUnavailableError {
    const reason = this.#lossReason ?? 'the connection is being made';
    return new StoreUnavailableError(`not connected to Redis: ${reason}`, { cause });
  }

  #unavailable(error: unknown): StoreUnavailableError {
    if (error instanceof StoreUnavailableError) return error;
    if (!isReply(error) && !this.connected) return this.#notConnected(error);
    return new StoreUnavailableError(`Redis: ${describe(error)}`, { cause: error });
  }

  #failed(error: unknown): void {
    withoutArguments(error, this.#secrets);
    const failure = describe(error);
    if (isReply(error) && REDIRECTION.test(failure)) {
      this.#answered();
    } else if (isReply(error)) {
      this.#unanswered = false;
      this.#options.onChange(failure);
      if (failure.startsWith('READONLY')) this.#options.onReadOnly?.();
    } else if (this.connected) {
      this.#notAnswered(failure);
    }
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
    this.#session = this.#newSession();
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

function counter(): () => number {
  let last = 0;
  return () => ++last;
}

function isReply(error: unknown): boolean {
  return error instanceof ReplyError || error instanceof UnexpectedReplyError;
}

export function describe(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(describe).join('; ');
  return error instanceof Error ? error.message.replace(SCRIPT_PLACE, '') || error.name : String(error);
}

/**
 * Removes from an error what was sent to Redis: digests of keys and a password of AUTH must not reach a log. ioredis hangs
 * the arguments of a command on its error, and Redis may repeat them in its reply.
 */
export function withoutArguments(error: unknown, secrets: readonly string[] = []): void {
  if (!(error instanceof Error)) return;
  if (error instanceof AggregateError) for (const inner of error.errors) withoutArguments(inner, secrets);
  if ('command' in error) delete error.command;
  const message = secrets.reduce(
    (text, secret) => text.replaceAll(secret, '***'),
    error.message.replace(REPEATED_ARGUMENTS, ''),
  );
  if (message === error.message) return;
  // The stack begins with the message.
  error.stack = (error.stack ?? '').replace(error.message, () => message);
  error.message = message;
}

function isSecret(text: string | null | undefined): text is string {
  return typeof text === 'string' && text.length >= SHORTEST_SECRET;
}
