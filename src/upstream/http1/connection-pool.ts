/**
 * The main file of the HTTP/1.1 client. `ConnectionPool` gives each `ConnectionRequest` an `UpstreamConnection`, which
 * sends one request at a time and reports its response to a `ResponseHandler`. Failures are a `ConnectionError`, an
 * `InvalidResponseError` or an error of Node.js.
 */
import type { Clock } from '../../base/clock.ts';
import { type Connect, ConnectionError } from './connect.ts';
import { CustomerShares, type CustomerSharesOptions } from './customer-shares.ts';
import { type ConnectionRequest, RequestQueue, type Share } from './request-queue.ts';
import { UpstreamConnection } from './upstream-connection.ts';

export interface ConnectionPoolOptions extends CustomerSharesOptions {
  readonly connect: Connect;
  /** Limit for the head of a response, and for its trailer section. */
  readonly maxHeaderBytes: number;
  /** Whether a connection is used again after a request with a body. Default: true. */
  readonly reuseAfterBody?: boolean;
  readonly clock: Clock;
  /** Called when a connection was opened, or failed with `error`; before waiting requests are notified. */
  readonly onConnect?: (error: Error | undefined) => void;
}

/** How long a free connection is reused if the upstream names no timeout: servers close theirs after 5 s or more. */
const DEFAULT_KEEP_MS = 4_000;
/** Reuse stops this long before the upstream's timeout, or after half of a shorter one: it may be closing by then. */
const KEEP_MARGIN_MS = 2_000;
const MAX_KEEP_MS = 600_000;
/** The same as {@link DEFAULT_KEEP_MS} for requests that must not be sent twice. */
const UNREPEATABLE_KEEP_MS = 1_000;
const SWEEP_MS = 1_000;
/**
 * How long a connection must stay silent after a 204 or 304 that announces no content, before it is used again
 * (docs/dev/decisions/0015-connections-wait-after-204-and-304.md).
 */
const HOLD_BACK_MS = 50;
/** Customers whose share is kept between their requests; about 4 MB. */
const KEPT_SHARES = 20_000;

/**
 * The share of the connections is used up: the customer's queue is full, the request waited until its deadline, or it has
 * no key. Created once: a flood of such requests must cost little.
 */
export const SHARE_EXCEEDED = new ConnectionError(
  'SHARE_EXCEEDED',
  'the customer, or the requests without a key, use up their share of the connections',
);

/** The gateway itself closed a connection that was still being opened. */
const POOL_CLOSED = new ConnectionError('POOL_CLOSED', 'the connection pool is closed');

class PooledConnection extends UpstreamConnection {
  /** While the connection is free: monotonic ms from which on it must not be used. */
  usableUntilMs = 0;
  /** The same for requests that must not be sent twice. */
  usableUnrepeatedUntilMs = 0;
  /** While the connection is held back: monotonic ms until which it must stay silent. */
  heldBackUntilMs = 0;
  /** The connection must not be used again. */
  isRetired = false;
  /** The claim of the exchange in progress. */
  share: Share | undefined;
}

/**
 * The connections to one upstream, and the requests that wait for one. Requests are served in order of arrival, once
 * the customer's share allows it (see {@link CustomerShares}). A request that stops waiting leaves the queue at once:
 * while the upstream hangs, expired requests must not pile up in front of those that arrive after its recovery. The
 * connection used last is used next, so that surplus connections expire and are closed.
 */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #free: PooledConnection[] = [];
  /** Connections whose last response may be followed by content that it did not announce; oldest first. */
  readonly #heldBack: PooledConnection[] = [];
  #holdBackTimer: NodeJS.Timeout | undefined;
  /** Whether the upstream has sent content with a 204 or 304: other content may come later than {@link HOLD_BACK_MS}. */
  #sendsUnannounced = false;
  readonly #all = new Set<PooledConnection>();
  readonly #waiting = new RequestQueue();
  /** Requests that need a new connection; served before all others. */
  readonly #waitingForNew = new RequestQueue();
  readonly #shares: CustomerShares;
  /** Connections being opened, probes included. */
  #connecting = 0;
  readonly #sweep: NodeJS.Timeout;
  #isClosed = false;
  #onIdle: (() => void)[] = [];

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#shares = new CustomerShares(options);
    this.#sweep = setInterval(() => this.#closeUnused(), SWEEP_MS).unref();
  }

  /** Requests in progress and waiting. */
  get load(): number {
    const inProgress = this.#all.size - this.#connecting - this.#unusedCount;
    return inProgress + this.#waitingCount + this.#shares.waitingCount;
  }

  /** Number of open connections. */
  get openCount(): number {
    return this.#all.size - this.#connecting;
  }

  /**
   * Finds a connection for `request`: at once, or when one is opened or becomes free. `mustBeNew`: it must not have carried
   * a request, because the upstream closed a kept one and may be closing the others. A free one makes room for it.
   */
  take(request: ConnectionRequest, mustBeNew = false): void {
    const claim = this.#shares.claim(request, mustBeNew);
    if (claim === 'refused') request.onError(SHARE_EXCEEDED);
    if (claim !== 'claimed') return;
    if (mustBeNew) {
      this.#waitingForNew.add(request);
      this.#connectIfNeeded();
      while (this.#isShortOfNew && this.#free.length > 0) this.#free[0]?.destroy();
      return;
    }
    const connection = this.#takeFree(request);
    if (connection === undefined) {
      this.#waiting.add(request);
      this.#connectIfNeeded();
    } else {
      this.#offer(connection, request);
    }
  }

  /** Returns whether the request waits because its customer's share is used up. */
  isBeyondShare(request: ConnectionRequest): boolean {
    return this.#shares.isWaiting(request);
  }

  /** Removes a request from its queue. Does nothing if it no longer waits. */
  withdraw(request: ConnectionRequest): void {
    if (this.#shares.isWaiting(request)) {
      this.#shares.withdraw(request);
    } else if (this.#waiting.remove(request) || this.#waitingForNew.remove(request)) {
      this.#release(request);
      this.#serve();
    }
    this.#resolveIfIdle();
  }

  /** Opens a connection that no request waits for, to test whether the upstream is reachable. */
  probe(): void {
    if (!this.#isClosed) this.#connect();
  }

  /** Closes the connections to addresses that are no longer known (`isKnown`), once they are free. */
  retire(isKnown: (address: string) => boolean): void {
    for (const connection of [...this.#all]) {
      const { remoteAddress } = connection;
      if (remoteAddress === undefined || isKnown(remoteAddress)) continue;
      connection.isRetired = true;
      if (this.#free.includes(connection) || this.#heldBack.includes(connection)) connection.destroy();
    }
  }

  /**
   * Closes each connection as soon as no request needs it. Resolves when there is none. Later requests are still served:
   * a request that began before a reload may need its connection only after it.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweep);
    clearTimeout(this.#holdBackTimer);
    for (const connection of [...this.#free, ...this.#heldBack]) connection.destroy();
    if (!this.#isIdle()) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  get #waitingCount(): number {
    return this.#waiting.length + this.#waitingForNew.length;
  }

  /** Connections that carry no request. */
  get #unusedCount(): number {
    return this.#free.length + this.#heldBack.length;
  }

  /** Whether fewer connections are being opened than new ones are needed. */
  get #isShortOfNew(): boolean {
    return this.#connecting < this.#waitingForNew.length;
  }

  /** Removes and returns the connection used last that `request` may use. Connections too old for it stay free for others. */
  #takeFree({ isRepeatable }: ConnectionRequest): PooledConnection | undefined {
    const nowMs = this.#options.clock.monotonicMs();
    for (let at = this.#free.length - 1; at >= 0; at--) {
      const connection = this.#free[at];
      if (connection === undefined) break;
      if (nowMs >= (isRepeatable ? connection.usableUntilMs : connection.usableUnrepeatedUntilMs)) continue;
      this.#free.splice(at, 1);
      return connection;
    }
    return undefined;
  }

  /**
   * Opens a connection for each waiting request, up to the maximum. Connections make room that are held back, or that are
   * free and have not been used for longer than the waiting requests allow.
   */
  #connectIfNeeded(): void {
    while (this.#connecting < this.#waitingCount) {
      if (this.#all.size < this.#options.maxConnections) this.#connect();
      else if (this.#heldBack.length > 0) this.#heldBack.at(-1)?.reset();
      else if (this.#free.length > 0) this.#free[0]?.destroy();
      else return;
    }
  }

  #connect(): void {
    this.#connecting++;
    const { connect, maxHeaderBytes, onConnect } = this.#options;
    const connection: PooledConnection = new PooledConnection(connect, maxHeaderBytes, {
      onOpen: () => {
        this.#connecting--;
        onConnect?.(undefined);
        this.#keepFor(connection, undefined);
        this.#offer(connection, this.#waitingForNew.shift() ?? this.#waiting.shift());
      },
      onFree: () => this.#freed(connection),
      onGone: (error) => {
        this.#all.delete(connection);
        for (const unused of [this.#free, this.#heldBack]) {
          const at = unused.indexOf(connection);
          if (at >= 0) unused.splice(at, 1);
        }
        if (connection.response.hasContentFollowed) {
          this.#sendsUnannounced = true;
          for (const heldBack of [...this.#heldBack]) heldBack.reset();
        }
        this.#release(connection);
        if (!connection.isOpen) this.#connectFailed(error ?? POOL_CLOSED);
        this.#serve();
        this.#resolveIfIdle();
      },
    });
    this.#all.add(connection);
  }

  /** Notifies the first waiting request of the failure, unless a connection is being opened for each of them. */
  #connectFailed(error: Error): void {
    this.#connecting--;
    if (!this.#isClosed) this.#options.onConnect?.(error);
    if (this.#connecting >= this.#waitingCount) return;
    const request = this.#waitingForNew.shift() ?? this.#waiting.shift();
    if (request === undefined) return;
    this.#release(request);
    request.onError(error);
  }

  #freed(connection: PooledConnection): void {
    this.#release(connection);
    const { keepAliveSeconds, mayContentFollow } = connection.response;
    const keepMs = this.#keepFor(connection, keepAliveSeconds);
    if (keepMs === 0 || connection.isRetired || this.#isShortOfNew) connection.destroy();
    else if (connection.hasCarriedBody && this.#options.reuseAfterBody === false) connection.reset();
    else if (mayContentFollow && (this.#sendsUnannounced || this.#isClosed)) connection.reset();
    else if (mayContentFollow) this.#holdBack(connection);
    else this.#offer(connection, this.#waiting.shift());
  }

  /** Keeps the connection out of use for {@link HOLD_BACK_MS}; bytes that arrive meanwhile close it. */
  #holdBack(connection: PooledConnection): void {
    connection.heldBackUntilMs = this.#options.clock.monotonicMs() + HOLD_BACK_MS;
    this.#heldBack.push(connection);
    this.#holdBackTimer ??= this.#offerHeldBackIn(HOLD_BACK_MS);
    this.#connectIfNeeded();
  }

  /** Waits until the sockets were read: after a busy turn, bytes that arrived in time may not be read yet. */
  #offerHeldBackIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      const nowMs = this.#options.clock.monotonicMs();
      setImmediate(() => this.#offerHeldBack(nowMs));
    }, delayMs);
  }

  #offerHeldBack(nowMs: number): void {
    this.#holdBackTimer = undefined;
    for (let first = this.#heldBack[0]; first !== undefined; first = this.#heldBack[0]) {
      if (first.heldBackUntilMs > nowMs) {
        this.#holdBackTimer ??= this.#offerHeldBackIn(first.heldBackUntilMs - nowMs);
        return;
      }
      this.#heldBack.shift();
      this.#offer(first, this.#waiting.shift());
    }
  }

  /** Sets for how long the free connection may be used, and returns it. `namedSeconds`: the upstream's timeout. */
  #keepFor(connection: PooledConnection, namedSeconds: number | undefined): number {
    const namedMs = (namedSeconds ?? 0) * 1000;
    const safeMs = Math.min(Math.max(namedMs - KEEP_MARGIN_MS, namedMs / 2), MAX_KEEP_MS);
    const keepMs = namedSeconds === undefined ? DEFAULT_KEEP_MS : safeMs;
    const nowMs = this.#options.clock.monotonicMs();
    connection.usableUntilMs = nowMs + keepMs;
    connection.usableUnrepeatedUntilMs = nowMs + (namedSeconds === undefined ? UNREPEATABLE_KEEP_MS : safeMs);
    return keepMs;
  }

  /** Gives the connection to `first`, else to the next waiting request that can use it. */
  #offer(connection: PooledConnection, first: ConnectionRequest | undefined): void {
    for (let request = first; request !== undefined; request = this.#waiting.shift()) {
      connection.share = request.share;
      request.share = undefined;
      if (request.onConnection(connection)) return;
      this.#release(connection);
    }
    if (this.#isClosed) {
      connection.destroy();
      return;
    }
    this.#free.push(connection);
  }

  /** Releases the claim of a waiting request or of a connection. The request that gets a claim joins the queue. */
  #release(holder: { share: Share | undefined }): void {
    const { share } = holder;
    if (share === undefined) return;
    holder.share = undefined;
    const next = this.#shares.release(share);
    if (next !== undefined) this.#waiting.add(next);
  }

  /** Finds connections for waiting requests after a connection was lost or a claim was released. */
  #serve(): void {
    for (let first = this.#waiting.first; first !== undefined; first = this.#waiting.first) {
      const connection = this.#takeFree(first);
      if (connection === undefined) break;
      this.#offer(connection, this.#waiting.shift());
    }
    this.#connectIfNeeded();
  }

  #closeUnused(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const connection of this.#free.filter(({ usableUntilMs }) => nowMs >= usableUntilMs)) connection.destroy();
    this.#shares.sweep(KEPT_SHARES);
  }

  #isIdle(): boolean {
    return this.#waitingCount === 0 && this.#unusedCount === this.#all.size;
  }

  #resolveIfIdle(): void {
    if (this.#onIdle.length > 0 && this.#isIdle()) for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}
