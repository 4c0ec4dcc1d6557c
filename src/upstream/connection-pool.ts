import type { Clock } from '../clock.ts';
import type { Connect } from './connect.ts';
import { type Claimant, CustomerShares, type CustomerSharesOptions, type Share } from './customer-shares.ts';
import { ConnectionEndedError, PoolClosedError, ShareExceededError } from './failures.ts';
import { UpstreamConnection } from './upstream-connection.ts';
import { WaitingLine } from './waiting-line.ts';

/** Wants a connection for one exchange. */
export interface Taker extends Claimant<Taker> {
  /** A connection stands and is free. False: it was not used. */
  onConnection(connection: UpstreamConnection): boolean;
  /** There will be none. */
  onNoConnection(error: Error): void;
}

export interface ConnectionPoolOptions extends CustomerSharesOptions {
  readonly connect: Connect;
  /** Of the upstream's header fields. */
  readonly maxHeaderBytes: number;
  readonly clock: Clock;
  /** A connection was made; or was not, because of `error`. Told before those who wait hear of it. */
  readonly onConnect?: (error: Error | undefined) => void;
}

/** A free connection is used again for so long where the upstream says nothing: servers close theirs after 5 s or more. */
const DEFAULT_KEEP_MS = 4_000;
/** Before the end that the upstream names: a request must not meet the closing of its connection half way. */
const KEEP_MARGIN_MS = 2_000;
const LONGEST_KEEP_MS = 600_000;
const SWEEP_MS = 1_000;

/** Made once: a flood of requests beyond a customer's share should cost little. */
const SHARE_EXCEEDED = new ShareExceededError();

/**
 * The connections to one upstream, and who waits for one, first come, first served once the customer's share allows it
 * (see {@link CustomerShares}). A waiter that gives up is gone at
 * once: while the upstream hangs, requests whose time is long over must not pile up before those that come after it has
 * recovered. The connection that was used last is used next, so that those beyond need grow old and close.
 */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #free: UpstreamConnection[] = [];
  readonly #all = new Set<UpstreamConnection>();
  readonly #waiting = new WaitingLine<Taker>();
  /** Those that want a new connection; served before all others. */
  readonly #wantingNew = new WaitingLine<Taker>();
  readonly #shares: CustomerShares<Taker>;
  /** Being made, for takers who have not got theirs yet. */
  #connecting = 0;
  readonly #sweep: NodeJS.Timeout;
  #isClosed = false;
  #onIdle: (() => void)[] = [];

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#shares = new CustomerShares(options);
    this.#sweep = setInterval(() => this.#closeUnused(), SWEEP_MS).unref();
  }

  /** Exchanges under way and those who wait. */
  get load(): number {
    return this.#all.size - this.#connecting - this.#free.length + this.#waitingCount + this.#shares.waitingCount;
  }

  /** Connections that stand. */
  get standing(): number {
    return this.#all.size - this.#connecting;
  }

  /**
   * Finds `taker` a connection: now, or when one is made or becomes free. `mustBeNew`: one that has carried no request,
   * because the upstream closed a kept one and may be closing the others; a free one is closed where there is no room.
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

  /** Whether the request waits because its customer uses its share up. */
  isBeyondShare(taker: Taker): boolean {
    return this.#shares.isWaiting(taker);
  }

  /** Stops waiting. Does nothing for one that has got its answer. */
  withdraw(taker: Taker): void {
    if (this.#shares.isWaiting(taker)) {
      this.#shares.withdraw(taker);
    } else if (this.#waiting.leave(taker) || this.#wantingNew.leave(taker)) {
      this.#release(taker);
      this.#serve();
    }
    this.#tellIfIdle();
  }

  /** Begins a connection for nobody, to learn whether it can be made. */
  probe(): void {
    if (!this.#isClosed) this.#connect();
  }

  /** Closes the connections to addresses that are not `isKnown` any more, once they are free. */
  retire(isKnown: (address: string) => boolean): void {
    for (const connection of [...this.#all]) {
      const { remoteAddress } = connection;
      if (remoteAddress === undefined || isKnown(remoteAddress)) continue;
      connection.isRetired = true;
      if (this.#free.includes(connection)) connection.destroy();
    }
  }

  /** Resolves when nobody waits and all connections have come back; takers that come later get none. */
  async close(): Promise<void> {
    if (!this.#isIdle()) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    this.#isClosed = true;
    clearInterval(this.#sweep);
    for (const connection of [...this.#all]) connection.destroy();
  }

  get #waitingCount(): number {
    return this.#waiting.length + this.#wantingNew.length;
  }

  /** Whether fewer connections are being made than new ones are wanted. */
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

  /** One connection in the making for each who waits, as far as there may be more. */
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

  /** A connection could not be made: the first in line hears of it, unless there is one in the making for all. */
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

  /** To `first`, else to the next in line who has a use for it. */
  #offer(connection: UpstreamConnection, first: Taker | undefined): void {
    for (let taker = first; taker !== undefined; taker = this.#waiting.next()) {
      connection.share = taker.share;
      taker.share = undefined;
      if (taker.onConnection(connection)) return;
      this.#release(connection);
    }
    this.#put(connection);
  }

  /** Gives up the claim of a waiting request, or of the one on a connection. The request that gets it waits in line. */
  #release(holder: { share?: Share<Taker> | undefined }): void {
    const { share } = holder;
    if (share === undefined) return;
    holder.share = undefined;
    const next = this.#shares.release(share);
    if (next !== undefined) this.#waiting.join(next);
  }

  /** Finds connections for those who wait, after one was lost or a claim was given up. */
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
