/**
 * One connection to Redis that fails fast and recovers by itself.
 *
 * The options turn off everything that makes ioredis wait or retry. Otherwise requests would hang during an outage, and
 * a command whose reply was lost would be sent again and counted twice. Only connecting is retried, without limit.
 *
 * The connection is usable while it is ready and its last call got a reply. After a call without a timely reply, PINGs
 * detect when Redis replies again. Until then further calls are refused at once, so that a silent store delays one
 * request and not every one.
 *
 * A connection without traffic may be dead unnoticed by both ends. So a PING is sent at a regular interval.
 */
import { once } from 'node:events';
import { ReplyError } from 'ioredis';
import { type Clock, systemScheduler } from '../../../base/clock.ts';
import { type StoreObserver, type StoreOp, StoreUnavailableError } from '../../store.ts';
import { UnexpectedReplyError } from '../protocol/unexpected-reply.ts';
import type { RedisChannel, WalkPlan } from './channel.ts';
import { type ClientOptions, RedisClient } from './client.ts';

const CONNECT_TIMEOUT_MS = 1000;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1000;
const PROBE_INTERVAL_MS = 200;
const HEARTBEAT_MS = 5000;
/** How long closing waits for outstanding replies. */
const CLOSE_MS = 500;
/** Replies with which a cluster member refers to another one, or asks for a retry: the command has not run. */
const REDIRECTION = /^(?:MOVED|ASK|TRYAGAIN) /;
/** Redis repeats the arguments of a command that it does not know: for AUTH, the password. */
const REPEATED_ARGUMENTS = /,? with args beginning with.*/is;
/** Shorter secrets are not masked, because that would mangle every message. */
const SHORTEST_SECRET = 4;
/** The prefix that Redis before 7 puts before the error of a command within a script. */
const SCRIPT_PLACE = /^ERR Error running script \(call to \w+\): (?:@user_script: ?\d+: )+-?(?=[A-Z]+ )/;

export interface RedisConnectionOptions {
  /** The server, its TLS options and the credentials. */
  readonly server: ClientOptions;
  /** Shown in Redis' CLIENT LIST. */
  readonly name: string;
  /**
   * Calls that take longer reject, and so do later ones until Redis replies. Without it, calls end only with the
   * connection.
   */
  readonly commandTimeoutMs?: number;
  /** A connection on which a call gets no reply for this long is closed. */
  readonly socketTimeoutMs: number;
  /** Interval of the PINGs that check the connection. Default 5 s. */
  readonly heartbeatMs?: number;
  readonly clock: Clock;
  readonly observer: StoreObserver;
  /** Called whenever `usable` may have changed, and with the reason whenever something failed. */
  readonly onChange: (failure?: string) => void;
  /** Called when the server refuses writes as a replica: another server is the master by now. */
  readonly onReadOnly?: () => void;
  /** Accepts a replica, too. Default: false. */
  readonly anyRole?: boolean;
  /** Returns a number that no connection has had. Default: unique only within this connection. */
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
  /** The database of the URL is selected, and the server's role is checked. */
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
      // Must return a number: otherwise ioredis stops for good once the last sentinel has failed.
      sentinelRetryStrategy: retryDelayMs,
      // Not the count of ioredis, which restarts at a server that accepts the connection but then proves unusable.
      retryStrategy: () => retryDelayMs(++this.#attempts),
      connectionName: options.name,
      // InvalidationPush subscribes: it must send CLIENT ID first on each new connection.
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

  /** Connects. Resolves after the first attempt, whether it succeeded or failed. */
  async open(): Promise<void> {
    const connecting = this.#redis.connect().catch(() => undefined);
    // While no sentinel knows a master, ioredis tries without end. The first error ends the wait here.
    await (this.#options.server.sentinels === undefined ? connecting : Promise.race([connecting, this.#noSentinel()]));
    await this.#selecting;
  }

  /** Runs an operation and reports it to the observer. What cannot be sent is refused at once and not reported. */
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
   * Runs part of an operation that is reported elsewhere. Rejects with StoreUnavailableError when it cannot be sent,
   * else with the error of `work`.
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

  /** Closes the connection and connects again, perhaps to another server. */
  reconnect(reason: string): void {
    if (this.connected) this.#giveUp(reason);
  }

  /** Closes the connection after the outstanding replies, or after {@link CLOSE_MS}. Later calls reject. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#probe);
    clearInterval(this.#heartbeat);
    if (this.usable) await this.#quit();
    this.#redis.disconnect();
    // ioredis only closes its side of the socket, and then waits for a server that may hang.
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
      // Reported at once: the caller of `open` needs the reason before the socket has closed.
      this.#options.onChange(fault);
      this.#giveUp(fault);
      return;
    }
    this.#selected = true;
    this.#lossReason = undefined;
    this.#attempts = 0;
    this.#answered();
  }

  /**
   * Selects the database and returns the error, if any. ioredis would continue in database 0, where valid keys are
   * unknown.
   */
  async #selectDatabase(): Promise<string | undefined> {
    try {
      if (this.#database !== 0) await this.#redis.select(this.#database);
      return undefined;
    } catch (error) {
      withoutArguments(error, this.#secrets);
      return `database ${this.#database} is refused: ${describe(error)}`;
    }
  }

  /**
   * Returns an error if the server is a replica, whose data may be stale. Where INFO is forbidden, the role is not
   * checked.
   */
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
   * Resolves to the reply, or rejects after `commandTimeoutMs`. Closes the connection when a reply is missing for
   * `socketTimeoutMs`. The timeouts of ioredis are not used: they would fire in a process that was busy for that long,
   * with the reply unread in its socket.
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

  /**
   * Closes the connection if there is no handshake: ioredis would wait forever for a server that accepts the connection
   * and then stays silent.
   */
  #expectHandshake(): void {
    const { session } = this;
    systemScheduler.deadline(Math.max(CONNECT_TIMEOUT_MS, this.#options.socketTimeoutMs), () => {
      if (this.session === session && !this.connected) this.#giveUp('no handshake');
    });
  }

  /** Destroys the socket. `disconnect()` would wait for the other side to close as well. */
  #giveUp(reason: string): void {
    if (!this.#closed) this.#redis.stream.destroy(new Error(reason));
  }

  async #ping(): Promise<void> {
    if (!this.connected) return;
    try {
      await this.#inTime(this.#redis.ping());
      this.#answered();
    } catch (error) {
      // A lost connection is reported by its `close` event.
      if (this.connected) this.#notAnswered(describe(error));
    }
  }
}

/** Returns an exponential delay with jitter, so that many gateways do not reconnect in step. */
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
 * Removes the data sent to Redis from an error: key digests and the password of AUTH must not reach a log. ioredis
 * attaches a command's arguments to its error, and Redis may repeat them in its reply.
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
