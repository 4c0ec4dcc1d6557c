import type { Clock } from '../../base/clock.ts';
import type { Connect } from './connect.ts';
import { WaitingLine } from './connection-queue.ts';
import { type Claimant, CustomerShares, type CustomerSharesOptions, type Share } from './customer-shares.ts';
import { ConnectionEndedError, PoolClosedError, ShareExceededError } from './errors.ts';
import { UpstreamConnection } from './upstream-connection.ts';

/** A request that needs a connection for one exchange. */
export interface Taker extends Claimant<Taker> {
  /** A connection is open and free. Returns false if it was not used. */
  onConnection(connection: UpstreamConnection): boolean;
  /** No connection will become available. */
  onNoConnection(error: Error): void;
}

export interface ConnectionPoolOptions extends CustomerSharesOptions {
  readonly connect: Connect;
  /** Limit for the head of a response, and for its trailer section. */
  readonly maxHeaderBytes: number;
  readonly clock: Clock;
  /** Called when a connection was opened, or failed with `error`; before waiting requests are notified. */
  readonly onConnect?: (error: Error | undefined) => void;
}

/** How long a free connection is reused if the upstream names no timeout: servers close theirs after 5 s or more. */
const DEFAULT_KEEP_MS = 4_000;
/** Reuse stops this long before the upstream's timeout, so that no request is sent just as the connection is closed. */
const KEEP_MARGIN_MS = 2_000;
const LONGEST_KEEP_MS = 600_000;
const SWEEP_MS = 1_000;

/** Created once: a flood of requests beyond a customer's share must cost little. */
const SHARE_EXCEEDED = new ShareExceededError();

/**
 * The connections to one upstream, and the requests that wait for one. Requests are served in order of arrival, once
 * the customer's share allows it (see {@link CustomerShares}). A request that stops waiting leaves the queue at once:
 * while the upstream hangs, expired requests must not pile up in front of those that arrive after its recovery. The
 * connection used last is used next, so that surplus connections expire and are closed.
 */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #free: UpstreamConnection[] = [];
  readonly #all = new Set<UpstreamConnection>();
  readonly #waiting = new WaitingLine<Taker>();
  /** Requests that need a new connection; served before all others. */
  readonly #wantingNew = new WaitingLine<Taker>();
  readonly #shares: CustomerShares<Taker>;
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
    return this.#all.size - this.#connecting - this.#free.length + this.#waitingCount + this.#shares.waitingCount;
  }

  /** Number of open connections. */
  get standing(): number {
    return this.#all.size - this.#connecting;
  }

  /**
   * Finds `taker` a connection: at once, or when one is opened or becomes free. `mustBeNew`: the connection must not
   * have carried a request, because the upstream closed a kept one and may be closing the others. If the pool is full,
   * a free connection is closed to make room.
   */
  take(taker: Taker, mustBeNew = false): void {
    if (this.#isClosed) {
      taker.onNoConnection(new PoolClosedError());
      return;
    }
    const claim = this.#shares.claim(taker, mustBeNew);
    if (claim === 'refused') taker.onNoConnection(SHARE_EXCEEDED);
    if (claim !== 'claimed') return;
    if (mustBeNew) {
      this.#wantingNew.join(taker);
      this.#connectIfNeeded();
      while (this.#isShortOfNew && this.#free.length > 0) this.#free[0]?.destroy();
      return;
    }
    const connection = this.#takeFree();
    if (connection === undefined) {
      this.#waiting.join(taker);
      this.#connectIfNeeded();
    } else {
      this.#offer(connection, taker);
    }
  }

  /** Returns whether the request waits because its customer's share is used up. */
  isBeyondShare(taker: Taker): boolean {
    return this.#shares.isWaiting(taker);
  }

  /** Removes a request from its queue. Does nothing if it no longer waits. */
  withdraw(taker: Taker): void {
    if (this.#shares.isWaiting(taker)) {
      this.#shares.withdraw(taker);
    } else if (this.#waiting.leave(taker) || this.#wantingNew.leave(taker)) {
      this.#release(taker);
      this.#serve();
    }
    this.#tellIfIdle();
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
      if (this.#free.includes(connection)) connection.destroy();
    }
  }

  /** Closes the pool once no request waits and all connections are free. Until then, requests are still served. */
  async close(): Promise<void> {
    if (!this.#isIdle()) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    this.#isClosed = true;
    clearInterval(this.#sweep);
    for (const connection of [...this.#all]) connection.destroy();
  }

  get #waitingCount(): number {
    return this.#waiting.length + this.#wantingNew.length;
  }

  /** Whether fewer connections are being opened than new ones are needed. */
  get #isShortOfNew(): boolean {
    return this.#connecting < this.#wantingNew.length;
  }

  #takeFree(): UpstreamConnection | undefined {
    const nowMs = this.#options.clock.monotonicMs();
    for (;;) {
      const connection = this.#free.pop();
      if (connection === undefined || nowMs < connection.usableUntilMs) return connection;
      connection.destroy();
    }
  }

  /** Opens a connection for each waiting request, up to the maximum. */
  #connectIfNeeded(): void {
    while (this.#connecting < this.#waitingCount && this.#all.size < this.#options.maxConnections) this.#connect();
  }

  #connect(): void {
    let isMade = false;
    const made = (): void => {
      isMade = true;
      this.#connecting--;
    };
    this.#connecting++;
    const socket = this.#options.connect({
      onConnected: () => {
        made();
        connection.opened();
        this.#options.onConnect?.(undefined);
        this.#keepFor(connection, DEFAULT_KEEP_MS);
        this.#offer(connection, this.#wantingNew.next() ?? this.#waiting.next());
      },
      onBytes: (bytes, length) => connection.receive(bytes, length),
    });
    let failure: Error = new ConnectionEndedError();
    socket.once('error', (error: Error) => {
      failure = error;
    });
    const connection: UpstreamConnection = new UpstreamConnection(socket, this.#options.maxHeaderBytes, {
      onFree: () => this.#freed(connection),
      onGone: () => {
        this.#all.delete(connection);
        const at = this.#free.indexOf(connection);
        if (at >= 0) this.#free.splice(at, 1);
        this.#release(connection);
        if (!isMade) {
          made();
          if (!this.#isClosed) this.#options.onConnect?.(failure);
          this.#disappoint(failure);
        }
        this.#serve();
        this.#tellIfIdle();
      },
    });
    this.#all.add(connection);
  }

  /** A connection failed: notifies the first waiting request, unless a connection is being opened for each of them. */
  #disappoint(error: Error): void {
    if (this.#connecting >= this.#waitingCount) return;
    const taker = this.#wantingNew.next() ?? this.#waiting.next();
    if (taker === undefined) return;
    this.#release(taker);
    taker.onNoConnection(error);
  }

  #freed(connection: UpstreamConnection): void {
    const { keepAliveSeconds } = connection;
    const named =
      keepAliveSeconds === undefined || Number.isNaN(keepAliveSeconds) ? undefined : keepAliveSeconds * 1000;
    const keepMs = named === undefined ? DEFAULT_KEEP_MS : Math.min(named - KEEP_MARGIN_MS, LONGEST_KEEP_MS);
    this.#release(connection);
    this.#keepFor(connection, keepMs);
    if (keepMs > 0 && !connection.isRetired && !this.#isShortOfNew) this.#offer(connection, this.#waiting.next());
    else connection.destroy();
  }

  #keepFor(connection: UpstreamConnection, keepMs: number): void {
    connection.usableUntilMs = this.#options.clock.monotonicMs() + keepMs;
  }

  /** Gives the connection to `first`, else to the next waiting request that can use it. */
  #offer(connection: UpstreamConnection, first: Taker | undefined): void {
    for (let taker = first; taker !== undefined; taker = this.#waiting.next()) {
      connection.share = taker.share;
      taker.share = undefined;
      if (taker.onConnection(connection)) return;
      this.#release(connection);
    }
    this.#put(connection);
  }

  /** Releases the claim of a waiting request or of a connection. The request that gets a claim joins the queue. */
  #release(holder: { share?: Share<Taker> | undefined }): void {
    const { share } = holder;
    if (share === undefined) return;
    holder.share = undefined;
    const next = this.#shares.release(share);
    if (next !== undefined) this.#waiting.join(next);
  }

  /** Finds connections for waiting requests after a connection was lost or a claim was released. */
  #serve(): void {
    while (this.#waiting.length > 0) {
      const connection = this.#takeFree();
      if (connection === undefined) break;
      this.#offer(connection, this.#waiting.next());
    }
    this.#connectIfNeeded();
  }

  #put(connection: UpstreamConnection): void {
    this.#free.push(connection);
    this.#tellIfIdle();
  }

  #closeUnused(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const connection of this.#free.filter(({ usableUntilMs }) => nowMs >= usableUntilMs)) connection.destroy();
    this.#shares.sweep();
  }

  #isIdle(): boolean {
    return this.#waitingCount === 0 && this.#free.length === this.#all.size;
  }

  #tellIfIdle(): void {
    if (this.#onIdle.length > 0 && this.#isIdle()) for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}
