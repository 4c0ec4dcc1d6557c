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
 * Without traffic, a dead connection may go unnoticed by both ends. So a PING is sent at a regular interval.
 */
import { once } from 'node:events';
import { type Clock, systemScheduler } from '../../../base/clock.ts';
import { StoreUnavailableError } from '../../errors.ts';
import type { StoreObserver, StoreOp } from '../../observer.ts';
import { describe, isReply, isSecret, withoutArguments } from '../protocol/redis-errors.ts';
import type { RedisChannel, ScanPlan } from './channel.ts';
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
  /** Called whenever `isUsable` may have changed, and with the reason whenever something failed. */
  readonly onChange: (failure?: string) => void;
  /** Called when the server refuses writes as a replica: another server is the master by now. */
  readonly onReadOnly?: () => void;
  /** Accepts a replica, too. Default: false. */
  readonly anyRole?: boolean;
}

/** Sessions are numbered across all connections: in a cluster, those of two masters must differ. */
let lastSession = 0;

export class RedisConnection implements RedisChannel {
  readonly isCluster = false;
  readonly servers: readonly RedisChannel[] = [this];
  readonly #options: RedisConnectionOptions;
  /** Scripts must be defined on it before the first call. */
  readonly client: RedisClient;
  readonly #secrets: readonly string[];
  #session = ++lastSession;
  #attempts = 0;
  /** The database of the URL is selected, and the server's role is checked. */
  #isPrepared = false;
  #preparing: Promise<void> | undefined;
  #isSilent = false;
  #probe: NodeJS.Timeout | undefined;
  readonly #heartbeat: NodeJS.Timeout;
  /** Why there is no connection; unset while there is one. */
  #lossReason: string | undefined;
  #closed = false;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.#secrets = [options.server.password, options.server.sentinelPassword].filter(isSecret);
    this.client = new RedisClient({
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
    this.client.on('ready', () => {
      this.#preparing = this.#prepare();
    });
    this.client.on('connect', () => this.#expectHandshake());
    this.client.on('close', () => this.#lost());
    this.client.on('error', (error: Error) => {
      withoutArguments(error, this.#secrets);
      this.#lossReason = describe(error);
    });
    this.#heartbeat = setInterval(() => void this.#ping(), options.heartbeatMs ?? HEARTBEAT_MS).unref();
  }

  get sessions(): string | undefined {
    return this.connected ? String(this.#session) : undefined;
  }

  planScan(): Promise<ScanPlan> {
    return Promise.resolve({ servers: this.servers, layout: '' });
  }

  isUsable(): boolean {
    return this.connected && !this.#isSilent;
  }

  get connected(): boolean {
    return this.client.status === 'ready' && this.#isPrepared;
  }

  /** Connects. Resolves after the first attempt, whether it succeeded or failed. */
  async open(): Promise<void> {
    const connecting = this.client.connect().catch(() => undefined);
    // While no sentinel knows a master, ioredis retries without limit, so the first error ends the wait here.
    await (this.#options.server.sentinels === undefined ? connecting : Promise.race([connecting, this.#firstError()]));
    await this.#preparing;
  }

  run<T>(op: StoreOp, operation: (redis: RedisClient) => Promise<T>): Promise<T> {
    return observed(
      op,
      this.#options,
      () => this.attempt(operation),
      (error) => (isReply(error) || this.connected ? storeUnavailable(error) : this.#notConnected(error)),
    );
  }

  async attempt<T>(work: (redis: RedisClient) => Promise<T>): Promise<T> {
    this.#refuseUnlessUsable();
    try {
      const result = await this.#withTimeouts(work(this.client));
      this.#gotReply();
      return result;
    } catch (error) {
      this.#failed(error);
      throw error;
    }
  }

  /** Closes the connection and connects again, perhaps to another server. */
  reconnect(reason: string): void {
    if (this.connected) this.#destroySocket(reason);
  }

  /** Closes the connection after the outstanding replies, or after {@link CLOSE_MS}. Later calls reject. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#probe);
    clearInterval(this.#heartbeat);
    if (this.isUsable()) await withTimeout(this.client.quit(), CLOSE_MS).catch(() => undefined);
    this.client.disconnect();
    // ioredis only closes its side of the socket, and then waits for a server that may hang.
    this.client.stream?.destroy();
  }

  async #firstError(): Promise<void> {
    await once(this.client, 'error').catch(() => undefined);
    this.#options.onChange(this.#lossReason);
  }

  async #prepare(): Promise<void> {
    const session = this.#session;
    const fault = await this.#serverFault();
    if (session !== this.#session) return;
    if (fault !== undefined) {
      this.#lossReason = fault;
      // Reported at once: the caller of `open` needs the reason before the socket has closed.
      this.#options.onChange(fault);
      this.#destroySocket(fault);
      return;
    }
    this.#isPrepared = true;
    this.#lossReason = undefined;
    this.#attempts = 0;
    this.#options.onChange();
  }

  /** Selects the database and checks the server's role. Returns why the server cannot be used, if it cannot. */
  async #serverFault(): Promise<string | undefined> {
    const { db = 0 } = this.#options.server;
    try {
      // ioredis ignores a refusal and continues in database 0, where valid keys are unknown.
      if (db !== 0) await this.client.select(db);
    } catch (error) {
      withoutArguments(error, this.#secrets);
      return `database ${db} is refused: ${describe(error)}`;
    }
    if (this.#options.anyRole) return undefined;
    // A replica's data may be stale. Where INFO is forbidden, the role is not checked.
    const info = await this.client.info('replication').catch(() => '');
    return /^role:slave/m.test(info) ? 'this Redis is a replica, which refuses writes' : undefined;
  }

  #refuseUnlessUsable(): void {
    if (!this.connected) throw this.#notConnected();
    if (this.#isSilent && this.#options.commandTimeoutMs !== undefined) {
      throw new StoreUnavailableError('Redis did not reply in time and has not replied since');
    }
  }

  #notConnected(cause?: unknown): StoreUnavailableError {
    const reason = this.#lossReason ?? 'still connecting';
    return new StoreUnavailableError(`not connected to Redis: ${reason}`, { cause });
  }

  #failed(error: unknown): void {
    withoutArguments(error, this.#secrets);
    const failure = describe(error);
    if (isReply(error) && REDIRECTION.test(failure)) {
      this.#gotReply();
    } else if (isReply(error)) {
      this.#isSilent = false;
      this.#options.onChange(failure);
      if (failure.startsWith('READONLY')) this.#options.onReadOnly?.();
    } else if (this.connected) {
      this.#gotNoReply(failure);
    }
  }

  #gotReply(): void {
    if (!this.#isSilent) return;
    this.#isSilent = false;
    this.#options.onChange();
  }

  #gotNoReply(failure: string): void {
    this.#isSilent = true;
    this.#probe ??= this.#closed
      ? undefined
      : setTimeout(() => {
          this.#probe = undefined;
          if (this.#isSilent) void this.#ping();
        }, PROBE_INTERVAL_MS).unref();
    this.#options.onChange(failure);
  }

  #lost(): void {
    this.#session = ++lastSession;
    this.#isPrepared = false;
    this.#isSilent = false;
    this.#lossReason ??= 'the connection was closed';
    this.#options.onChange(this.#lossReason);
  }

  /**
   * Resolves to the reply, or rejects after `commandTimeoutMs`. Closes the connection when a reply is missing for
   * `socketTimeoutMs`. The timeouts of ioredis are not used: they would fire in a process that was busy for that long,
   * with the reply unread in its socket.
   */
  #withTimeouts<T>(reply: Promise<T>): Promise<T> {
    const { commandTimeoutMs, socketTimeoutMs } = this.#options;
    const silent = systemScheduler.deadline(socketTimeoutMs, () => {
      this.#destroySocket(`no reply within ${socketTimeoutMs} ms`);
    });
    const settled = () => {
      silent.cancel();
      this.#probeAtOnce();
    };
    reply.then(settled, settled);
    return withTimeout(reply, commandTimeoutMs);
  }

  /** Called at each reply: a silent Redis may reply in time again. The PING shows it; any reply may be a late one. */
  #probeAtOnce(): void {
    if (this.#probe === undefined) return;
    clearTimeout(this.#probe);
    this.#probe = undefined;
    if (this.#isSilent) void this.#ping();
  }

  /** Closes the connection if there is no handshake: ioredis would wait forever for a server that stays silent. */
  #expectHandshake(): void {
    const session = this.#session;
    systemScheduler.deadline(Math.max(CONNECT_TIMEOUT_MS, this.#options.socketTimeoutMs), () => {
      if (this.#session === session && !this.connected) this.#destroySocket('no handshake');
    });
  }

  /** Destroys the socket. `disconnect()` would wait for the other side to close as well. */
  #destroySocket(reason: string): void {
    if (!this.#closed) this.client.stream.destroy(new Error(reason));
  }

  async #ping(): Promise<void> {
    if (!this.connected) return;
    try {
      await this.#withTimeouts(this.client.ping());
      this.#gotReply();
    } catch (error) {
      // A lost connection is reported by its `close` event.
      if (this.connected) this.#gotNoReply(describe(error));
    }
  }
}

/** Returns an exponential delay with jitter, so that many gateways do not reconnect in step. */
function retryDelayMs(attempt: number): number {
  const ceilingMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** attempt);
  return Math.round(FIRST_RETRY_MS + Math.random() * (ceilingMs - FIRST_RETRY_MS));
}

/** Runs one operation and reports how long it took, unless it could not be sent. @throws StoreUnavailableError */
export async function observed<T>(
  op: StoreOp,
  { clock, observer }: { readonly clock: Clock; readonly observer: StoreObserver },
  operation: () => Promise<T>,
  unavailable: (error: unknown) => StoreUnavailableError = storeUnavailable,
): Promise<T> {
  const startedMs = clock.monotonicMs();
  const report = (hasFailed: boolean) => observer.called(op, (clock.monotonicMs() - startedMs) / 1000, hasFailed);
  try {
    const result = await operation();
    report(false);
    return result;
  } catch (error) {
    if (error instanceof StoreUnavailableError) throw error;
    report(true);
    throw unavailable(error);
  }
}

function storeUnavailable(error: unknown): StoreUnavailableError {
  withoutArguments(error);
  return new StoreUnavailableError(`Redis: ${describe(error)}`, { cause: error });
}

/** Rejects when the reply takes longer than `timeoutMs`. */
export function withTimeout<T>(reply: Promise<T>, timeoutMs: number | undefined): Promise<T> {
  if (timeoutMs === undefined) return reply;
  return new Promise((resolve, reject) => {
    const timeout = systemScheduler.deadline(timeoutMs, () => reject(new Error('Command timed out')));
    reply.then(resolve, reject).finally(() => timeout.cancel());
  });
}
