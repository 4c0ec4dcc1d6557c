/**
 * The Redis store: one connection for records, one for windows.
 *
 * Records are read with a deadline. Windows are not: a grant that comes late is given back whole by who asked for it,
 * while a deadline here would lose it and leave its units counted for an hour.
 *
 * The store is up while both connections are usable.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import type { Store, StoreObserver, StoreStatus } from '../store.ts';
import { RedisConnection } from './connection.ts';
import { HourlyWindow } from './hourly-window.ts';
import { RedisRecords } from './records.ts';
import { checkServer } from './server-check.ts';

/** A silent connection is given up after this many times `timeoutMs`; a late grant has until then to arrive. */
const RECORDS_SOCKET_TIMEOUTS = 3;
const WINDOWS_SOCKET_TIMEOUTS = 10;
const EPOCH_BYTES = 6;

export interface RedisStoreOptions {
  /** `redis://` or `rediss://`, with the credentials. */
  readonly url: string;
  readonly keyPrefix: string;
  /** How long a record may take to be read or written. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly observer: StoreObserver;
  /** Told once, in sentences, what about the server is not as it should be. */
  readonly warn: (message: string) => void;
}

/** Resolves after the first attempt to connect, whatever came of it: an absent Redis is not an error, the store heals. */
export async function openRedisStore(options: RedisStoreOptions): Promise<Store> {
  const store = new RedisStore(options);
  await store.open();
  return store;
}

class RedisStore implements Store {
  readonly records: RedisRecords;
  readonly windows: HourlyWindow;
  readonly #recordsConnection: RedisConnection;
  readonly #windowsConnection: RedisConnection;
  readonly #observer: StoreObserver;
  readonly #warn: (message: string) => void;
  #up: boolean | undefined;
  #reached = false;
  #lastError: string | undefined;
  #state: 'opening' | 'open' | 'closed' = 'opening';

  constructor({ url, keyPrefix, timeoutMs, clock, observer, warn }: RedisStoreOptions) {
    const common = { url, clock, observer, onChange: (failure?: string) => this.#refresh(failure) };
    this.#recordsConnection = new RedisConnection({
      ...common,
      name: 'tollgate-records',
      commandTimeoutMs: timeoutMs,
      socketTimeoutMs: RECORDS_SOCKET_TIMEOUTS * timeoutMs,
    });
    this.#windowsConnection = new RedisConnection({
      ...common,
      name: 'tollgate-windows',
      socketTimeoutMs: WINDOWS_SOCKET_TIMEOUTS * timeoutMs,
    });
    this.#observer = observer;
    this.#warn = warn;
    this.records = new RedisRecords(this.#recordsConnection, keyPrefix);
    this.windows = new HourlyWindow({
      connection: this.#windowsConnection,
      keyPrefix,
      newEpoch: () => randomBytes(EPOCH_BYTES).toString('base64url'),
    });
  }

  async open(): Promise<void> {
    await Promise.all([this.#recordsConnection.open(), this.#windowsConnection.open()]);
    this.#state = 'open';
    this.#refresh();
  }

  status(): StoreStatus {
    return {
      kind: 'redis',
      up: this.#up === true,
      reached: this.#reached,
      ...(this.#lastError !== undefined && { lastError: this.#lastError }),
    };
  }

  async close(): Promise<void> {
    this.#state = 'closed';
    this.#up = false;
    await Promise.all([this.#recordsConnection.close(), this.#windowsConnection.close()]);
  }

  /** While opening and after closing nobody is told: neither is a change that an operator should see. */
  #refresh(failure?: string): void {
    if (this.#state === 'closed') return;
    this.#lastError = failure ?? this.#lastError;
    if (this.#state === 'opening') return;
    const up = this.#recordsConnection.usable && this.#windowsConnection.usable;
    if (up === this.#up) return;
    this.#up = up;
    this.#observer.up(up, up ? undefined : this.#lastError);
    if (up && !this.#reached) {
      this.#reached = true;
      void checkServer(this.#recordsConnection.client).then((warnings) => warnings.forEach(this.#warn));
    }
  }
}
