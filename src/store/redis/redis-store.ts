/**
 * The Redis store: one connection for records, one for windows, one on which Redis tells of changed records, and one for
 * the admin API's walks and notes.
 *
 * Records are read with a deadline. Windows are not: a grant that comes late is given back whole by who asked for it,
 * while a deadline here would lose it and leave its units counted for an hour. Lists may take longer than either, no
 * request waits behind them, and of what they read Redis need not tell.
 *
 * The store is up while the first two are usable. Without the third it works on, and changes are noticed later.
 */
import { randomBytes } from 'node:crypto';
import { ReplyError } from 'ioredis';
import type { Clock } from '../../clock.ts';
import type { AuditStore, Invalidations, KeyUseStore, Store, StoreObserver, StoreStatus } from '../store.ts';
import { redisAudit } from './audit.ts';
import { RedisConnection } from './connection.ts';
import { HourlyWindow } from './hourly-window.ts';
import { Installed } from './installed.ts';
import { redisInstances } from './instances.ts';
import { InvalidationPush } from './invalidation-push.ts';
import { redisKeyUses } from './key-uses.ts';
import { RedisRecords } from './records.ts';
import { checkServer } from './server-check.ts';

/** A silent connection is given up after this many times `timeoutMs`; a late grant has until then to arrive. */
const RECORDS_SOCKET_TIMEOUTS = 3;
const WINDOWS_SOCKET_TIMEOUTS = 10;
/** One step of a walk may take so many times `timeoutMs`. */
const WALKS_TIMEOUTS = 10;
const EPOCH_BYTES = 6;
const INSTALLED_BYTES = 16;

export interface RedisStoreOptions {
  /** `redis://` or `rediss://`, with the credentials. */
  readonly url: string;
  readonly keyPrefix: string;
  /** How long a record may take to be read or written. */
  readonly timeoutMs: number;
  /** How often an idle connection is tried. Default 5 s. */
  readonly heartbeatMs?: number;
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
  readonly keyUses: KeyUseStore;
  readonly audit: AuditStore;
  readonly windows: HourlyWindow;
  readonly announce: (instance: string) => Promise<number>;
  readonly #recordsConnection: RedisConnection;
  readonly #windowsConnection: RedisConnection;
  readonly #pushConnection: RedisConnection;
  readonly #walksConnection: RedisConnection;
  readonly #installed: Installed;
  readonly #push: InvalidationPush;
  readonly #observer: StoreObserver;
  readonly #warn: (message: string) => void;
  #up: boolean | undefined;
  #reached = false;
  #lastError: string | undefined;
  readonly #refusals = new Set<string>();
  #state: 'opening' | 'open' | 'closed' = 'opening';

  constructor({ url, keyPrefix, timeoutMs, heartbeatMs, clock, observer, warn }: RedisStoreOptions) {
    const common = { url, clock, observer, ...(heartbeatMs !== undefined && { heartbeatMs }) };
    const withDeadline = { commandTimeoutMs: timeoutMs, socketTimeoutMs: RECORDS_SOCKET_TIMEOUTS * timeoutMs };
    const onChange = (failure?: string) => this.#refresh(failure);
    this.#recordsConnection = new RedisConnection({ ...common, ...withDeadline, name: 'tollgate-records', onChange });
    this.#windowsConnection = new RedisConnection({
      ...common,
      name: 'tollgate-windows',
      socketTimeoutMs: WINDOWS_SOCKET_TIMEOUTS * timeoutMs,
      onChange,
    });
    this.#pushConnection = new RedisConnection({
      ...common,
      ...withDeadline,
      name: 'tollgate-push',
      onChange: () => this.#push.tend(),
    });
    this.#walksConnection = new RedisConnection({
      ...common,
      name: 'tollgate-walks',
      commandTimeoutMs: WALKS_TIMEOUTS * timeoutMs,
      socketTimeoutMs: WALKS_TIMEOUTS * timeoutMs,
      onChange,
    });
    this.#observer = observer;
    this.#warn = warn;
    this.#installed = new Installed({
      connection: this.#recordsConnection,
      keyPrefix,
      newId: () => randomBytes(INSTALLED_BYTES).toString('hex'),
      warn,
      onFailure: (error) => this.#warnOfRefusal('it cannot be noticed when the store loses its data', error),
    });
    this.#push = new InvalidationPush({
      records: this.#recordsConnection,
      subscriber: this.#pushConnection,
      keyPrefix,
      onInstalled: () => void this.#installed.lookAgain(),
      onFailure: (error) => this.#warnOfRefusal('changes to keys and customers are not pushed', error),
    });
    this.records = new RedisRecords({
      connection: this.#recordsConnection,
      walks: this.#walksConnection,
      installed: this.#installed,
      keyPrefix,
    });
    this.keyUses = redisKeyUses(this.#walksConnection, keyPrefix);
    this.audit = redisAudit(this.#walksConnection, keyPrefix);
    // Not on the records connection: what is read there is tracked, and every announcement would be pushed to everyone.
    this.announce = redisInstances(this.#windowsConnection, keyPrefix);
    this.windows = new HourlyWindow({
      connection: this.#windowsConnection,
      keyPrefix,
      newEpoch: () => randomBytes(EPOCH_BYTES).toString('base64url'),
    });
  }

  get invalidations(): Invalidations {
    return this.#push;
  }

  async open(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.open()));
    await Promise.all([this.#push.settled(), this.#installed.settled()]);
    this.#state = 'open';
    this.#refresh();
  }

  initialise(): Promise<void> {
    return this.#recordsConnection.run('initialise', () => this.#installed.initialise());
  }

  isUp(): boolean {
    return this.#state === 'open' && this.#recordsConnection.usable && this.#windowsConnection.usable;
  }

  status(): StoreStatus {
    return {
      kind: 'redis',
      up: this.#up === true,
      reached: this.#reached,
      ...(this.#lastError !== undefined && { lastError: this.#lastError }),
      invalidation: this.#push.connected ? 'connected' : 'disconnected',
      wiped: this.#installed.wiped,
    };
  }

  async close(): Promise<void> {
    this.#state = 'closed';
    this.#up = false;
    this.#push.close();
    this.#installed.close();
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  get #connections(): RedisConnection[] {
    return [this.#recordsConnection, this.#windowsConnection, this.#pushConnection, this.#walksConnection];
  }

  /** While opening and after closing nobody is told: neither is a change that an operator should see. */
  #refresh(failure?: string): void {
    this.#push.tend();
    this.#installed.tend();
    if (this.#state === 'closed') return;
    this.#lastError = failure ?? this.#lastError;
    if (this.#state === 'opening') return;
    const up = this.isUp();
    if (up === this.#up) return;
    this.#up = up;
    this.#observer.up(up, up ? undefined : this.#lastError);
    if (up && !this.#reached) {
      this.#reached = true;
      void checkServer(this.#recordsConnection.client).then((warnings) => warnings.forEach(this.#warn));
    }
  }

  /** What was not answered is tried again and needs no word; what Redis refuses, an operator must allow. */
  #warnOfRefusal(consequence: string, error: unknown): void {
    const isRefusal = error instanceof Error && error instanceof ReplyError;
    if (!isRefusal || this.#refusals.has(consequence)) return;
    this.#refusals.add(consequence);
    this.#warn(`Redis refuses a command, so ${consequence}: ${error.message}`);
  }
}
