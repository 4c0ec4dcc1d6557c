import type { Clock } from '../clock.ts';
import type { Connect } from './connect.ts';
import { ConnectionEndedError, PoolClosedError } from './failures.ts';
import { UpstreamConnection } from './upstream-connection.ts';
import { type InLine, WaitingLine } from './waiting-line.ts';

/** Wants a connection for one exchange. */
export interface Taker extends InLine<Taker> {
  /** A connection stands and is free. False: it was not used. */
  onConnection(connection: UpstreamConnection): boolean;
  /** There will be none. */
  onNoConnection(error: Error): void;
}

export interface ConnectionPoolOptions {
  readonly connect: Connect;
  readonly maxConnections: number;
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

/**
 * The connections to one upstream, and who waits for one, first come, first served. A waiter that gives up is gone at
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
  /** Being made, for takers who have not got theirs yet. */
  #connecting = 0;
  readonly #sweep: NodeJS.Timeout;
  #isClosed = false;
  #onIdle: (() => void)[] = [];

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#sweep = setInterval(() => this.#closeUnused(), SWEEP_MS).unref();
  }

  /** Exchanges under way and those who wait. */
  get load(): number {
    return this.#all.size - this.#connecting - this.#free.length + this.#waitingCount;
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
    } else if (!taker.onConnection(connection)) {
      this.#put(connection);
    }
  }

  /** Stops waiting. Does nothing for one that has got its answer. */
  withdraw(taker: Taker): void {
    this.#waiting.leave(taker);
    this.#wantingNew.leave(taker);
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
        this.#offer(connection, DEFAULT_KEEP_MS, this.#wantingNew.next() ?? this.#waiting.next());
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
        if (!isMade) {
          made();
          if (!this.#isClosed) this.#options.onConnect?.(failure);
          this.#disappoint(failure);
        }
        this.#connectIfNeeded();
        this.#tellIfIdle();
      },
    });
    this.#all.add(connection);
  }

  /** A connection could not be made: the first in line hears of it, unless there is one in the making for all. */
  #disappoint(error: Error): void {
    if (this.#connecting >= this.#waitingCount) return;
    (this.#wantingNew.next() ?? this.#waiting.next())?.onNoConnection(error);
  }

  #freed(connection: UpstreamConnection): void {
    const { keepAliveSeconds } = connection;
    const named =
      keepAliveSeconds === undefined || Number.isNaN(keepAliveSeconds) ? undefined : keepAliveSeconds * 1000;
    const keepMs = named === undefined ? DEFAULT_KEEP_MS : Math.min(named - KEEP_MARGIN_MS, LONGEST_KEEP_MS);
    if (keepMs > 0 && !connection.isRetired && !this.#isShortOfNew)
      this.#offer(connection, keepMs, this.#waiting.next());
    else connection.destroy();
  }

  /** To `first`, else to the next in line who has a use for it. It may be used for the first or next time within `keepMs`. */
  #offer(connection: UpstreamConnection, keepMs: number, first: Taker | undefined): void {
    connection.usableUntilMs = this.#options.clock.monotonicMs() + keepMs;
    for (let taker = first; taker !== undefined; taker = this.#waiting.next()) {
      if (taker.onConnection(connection)) return;
    }
    this.#put(connection);
  }

  #put(connection: UpstreamConnection): void {
    this.#free.push(connection);
    this.#tellIfIdle();
  }

  #closeUnused(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const connection of this.#free.filter(({ usableUntilMs }) => nowMs >= usableUntilMs)) connection.destroy();
  }

  #isIdle(): boolean {
    return this.#waitingCount === 0 && this.#free.length === this.#all.size;
  }

  #tellIfIdle(): void {
    if (this.#onIdle.length > 0 && this.#isIdle()) for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}
