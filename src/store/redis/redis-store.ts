/**
 * The Redis store. It has one connection for records, one for windows, one on which Redis pushes changed records, and
 * one for lists, admin writes, last uses, the audit log and usage reports (`walks`).
 *
 * Record reads have a deadline. Window calls have none: a late grant is refunded whole by the code that requested it. A
 * deadline here would lose the grant and leave its units counted for an hour. Lists may take longer than either, so
 * they use the fourth connection, on which no request waits. It needs no tracking of changes.
 *
 * The store is up while the records and windows connections are usable. Without the push connection it keeps working,
 * but notices changes later.
 *
 * With Sentinel, each connection goes to the server that is the master at the time of connecting. In a cluster there
 * are four connections to each master: see cluster.ts.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { ReplyError } from 'ioredis';
import type { Clock } from '../../base/clock.ts';
import type {
  AuditStore,
  Invalidations,
  KeyUseStore,
  RecordStore,
  Store,
  StoreObserver,
  StoreStatus,
  UsageReader,
} from '../store.ts';
import { type HostAndPort, parseStoreUrl, type RedisAddress } from '../store-address.ts';
import { RedisCluster, type Role } from './cluster/cluster.ts';
import type { RedisChannel } from './connection/channel.ts';
import { RedisConnection } from './connection/connection.ts';
import { InvalidationPush } from './connection/invalidation-push.ts';
import { checkServer } from './connection/server-check.ts';
import { memberOptions, type RedisSecurity, serverOptions } from './connection/server-options.ts';
import { Installed } from './installation/installed.ts';
import { checkPermissions } from './permission-check.ts';
import { windowName } from './protocol/key-names.ts';
import { withoutArguments } from './protocol/redis-errors.ts';
import { redisAudit } from './records/audit.ts';
import { DamagedRecords } from './records/damaged-records.ts';
import { redisKeyUses } from './records/key-uses.ts';
import { redisRecords } from './records/records.ts';
import { HourlyWindow } from './window/hourly-window.ts';
import { redisInstances } from './window/instances.ts';
import { ReservationFaults } from './window/reservation-faults.ts';
import { redisUsages } from './window/usages.ts';

/** A silent connection is closed after this many times `timeoutMs`; a late grant must arrive by then. */
const RECORDS_SOCKET_TIMEOUTS = 3;
const WINDOWS_SOCKET_TIMEOUTS = 10;
/** One call on the walks connection may take this many times `timeoutMs`. */
const WALKS_TIMEOUTS = 10;
/** Minimum interval between reconnects because a server is no longer the master. */
const RECONNECT_MS = 1000;
/** Temporary refusals: the server is starting or is a replica, or the cluster is incomplete. */
const PASSING = /^(?:CLUSTERDOWN|LOADING|MASTERDOWN|READONLY|NOREPLICAS) /;
/** How long opening waits for the push and the installation marks. */
const OPEN_MS = 2000;
const EPOCH_BYTES = 6;
const INSTALLED_BYTES = 16;

export interface RedisStoreOptions extends RedisSecurity {
  /** A Redis URL. For the syntax see src/store/store-address.ts. */
  readonly url: string;
  readonly keyPrefix: string;
  /** How long a record may take to be read or written. */
  readonly timeoutMs: number;
  /** Interval of the PINGs that check each connection. Default 5 s. */
  readonly heartbeatMs?: number;
  readonly clock: Clock;
  readonly observer: StoreObserver;
  /** Receives warnings about the server and its data, as sentences. */
  readonly warn: (message: string) => void;
  /** Opening writes nothing, not even the installation mark. Default: false. */
  readonly readOnly?: boolean;
}

/**
 * Opens the store. Resolves after the first attempt to connect, even if it failed: the store keeps trying to connect.
 */
export async function openRedisStore(options: RedisStoreOptions): Promise<Store> {
  const store = new RedisStore(options);
  await store.open();
  return store;
}

class RedisStore implements Store {
  readonly records: RecordStore;
  readonly keyUses: KeyUseStore;
  readonly audit: AuditStore;
  readonly windows: HourlyWindow;
  readonly usages: UsageReader;
  readonly announce: (instance: string) => Promise<number>;
  readonly withdraw: (instance: string) => Promise<void>;
  readonly #links: Links;
  readonly #installed: Installed;
  readonly #faults: ReservationFaults;
  readonly #keyPrefix: string;
  readonly #clock: Clock;
  readonly #observer: StoreObserver;
  readonly #warn: (message: string) => void;
  readonly #readOnly: boolean;
  #up: boolean | undefined;
  #reached = false;
  #lastError: string | undefined;
  #reconnectedMs = Number.NEGATIVE_INFINITY;
  readonly #refusals = new Set<string>();
  #state: 'opening' | 'open' | 'closed' = 'opening';

  constructor(options: RedisStoreOptions) {
    const { keyPrefix, clock, observer, warn, readOnly = false } = options;
    this.#readOnly = readOnly;
    this.#keyPrefix = keyPrefix;
    this.#clock = clock;
    this.#observer = observer;
    this.#warn = warn;
    this.#links = openLinks(options, {
      onChange: (failure) => this.#refresh(failure),
      onReadOnly: () => this.#reconnect(),
      onInstalled: () => this.#installed.lookAgain(),
      onRecord: (name) => this.#installed.recordChanged(name),
      onDisturbed: () => this.#installed.disturbed(),
      onPushRefused: (error) => this.#warnOfRefusal('changes to keys and customers are not pushed', error),
    });
    const { records, windows, walks } = this.#links;
    this.#installed = new Installed({
      connection: records,
      keyPrefix,
      newId: () => randomBytes(INSTALLED_BYTES).toString('hex'),
      warn,
      onFailure: (error) => this.#warnOfRefusal('it cannot be noticed when the store loses its data', error),
      readOnly,
    });
    const damaged = new DamagedRecords({ keyPrefix, clock, observer });
    this.records = redisRecords({ connection: records, walks, installed: this.#installed, damaged, keyPrefix });
    this.keyUses = redisKeyUses(walks, keyPrefix);
    this.audit = redisAudit(walks, keyPrefix);
    this.usages = redisUsages(walks, keyPrefix);
    this.#faults = new ReservationFaults({ clock, observer });
    const { announce, withdraw } = redisInstances(windows, keyPrefix);
    this.withdraw = withdraw;
    this.announce = async (instance) => {
      this.#installed.lookForEvictions();
      try {
        return await this.#faults.ofAnnouncement(announce(instance));
      } catch (error) {
        if (error instanceof Error) this.#warnOfRefusal('this instance cannot announce itself', error.cause);
        throw error;
      }
    };
    this.windows = new HourlyWindow({
      connection: windows,
      keyPrefix,
      newEpoch: () => randomBytes(EPOCH_BYTES).toString('base64url'),
      faults: this.#faults,
    });
  }

  get invalidations(): Invalidations {
    return this.#links.push;
  }

  async open(): Promise<void> {
    await this.#links.open();
    // In a Redis with millions of other names, the search for a record may take longer.
    const settled = Promise.all([this.#links.push.settled(), this.#installed.settled()]);
    await Promise.race([settled, setTimeout(OPEN_MS, undefined, { ref: false })]);
    this.#state = 'open';
    this.#refresh();
  }

  initialise(): Promise<void> {
    return this.#links.records.run('initialise', () => this.#installed.initialise());
  }

  isUp(customer?: string): boolean {
    const { records, windows } = this.#links;
    if (this.#state !== 'open') return false;
    if (customer !== undefined) return windows.isUsable(windowName(this.#keyPrefix, customer));
    return records.isUsable() && windows.isUsable();
  }

  status(): StoreStatus {
    return {
      kind: 'redis',
      up: this.#up === true,
      reached: this.#reached,
      ...(this.#lastError !== undefined && { lastError: this.#lastError }),
      invalidation: this.#links.push.connected ? 'connected' : 'disconnected',
      wiped: this.#installed.wiped,
      empty: this.#up === true && this.#installed.empty,
      evicted: this.#installed.evicted,
      refusing: this.#faults.refusing,
    };
  }

  async close(): Promise<void> {
    this.#state = 'closed';
    this.#up = false;
    this.#links.push.close();
    this.#installed.close();
    await this.#links.close();
  }

  /**
   * Updates the store's state. Does not notify the observer while opening or after closing: operators need not see
   * that.
   */
  #refresh(failure?: string): void {
    this.#links.push.tend();
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
      void this.#checkServers();
    }
  }

  async #checkServers(): Promise<void> {
    const { records, windows } = this.#links;
    const found = await Promise.all([
      ...records.servers.map(async ({ client }) => (await checkServer(client)).warnings),
      this.#readOnly ? [] : checkPermissions(windows.client, this.#keyPrefix),
    ]);
    for (const warning of new Set(found.flat())) this.#warn(warning);
  }

  /** Reconnects all connections: one that only reads would not notice that its server has become a replica. */
  #reconnect(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#reconnectedMs < RECONNECT_MS) return;
    this.#reconnectedMs = nowMs;
    this.#links.reconnect('the server takes no writes any more');
  }

  /**
   * Warns once of each consequence of a refusal, which only an operator can fix. Other failures are retried without a
   * warning.
   */
  #warnOfRefusal(consequence: string, error: unknown): void {
    const isRefusal = error instanceof Error && error instanceof ReplyError;
    if (!isRefusal || PASSING.test(error.message) || this.#refusals.has(consequence)) return;
    this.#refusals.add(consequence);
    withoutArguments(error);
    this.#warn(`Redis refuses a command, so ${consequence}: ${error.message}`);
  }
}

/** The connections of a store, to one server or to many. */
interface Links {
  readonly records: RedisChannel;
  readonly windows: RedisChannel;
  readonly walks: RedisChannel;
  readonly push: Invalidations & Pick<InvalidationPush, 'tend' | 'settled' | 'close'>;
  /** Connects. Resolves after the first attempt, whether it succeeded or failed. */
  open(): Promise<unknown>;
  /** Reconnects to the current master. */
  reconnect(reason: string): void;
  close(): Promise<unknown>;
}

interface LinkEvents {
  readonly onChange: (failure?: string) => void;
  readonly onReadOnly: () => void;
  readonly onInstalled: () => void;
  readonly onRecord: (name: string) => void;
  readonly onDisturbed: () => void;
  readonly onPushRefused: (error: unknown) => void;
}

function openLinks(options: RedisStoreOptions, events: LinkEvents): Links {
  const address = redisAddress(options.url);
  const { timeoutMs, heartbeatMs, keyPrefix, clock, observer } = options;
  const common = {
    clock,
    observer,
    ...(heartbeatMs !== undefined && { heartbeatMs }),
    onChange: events.onChange,
  };
  const withDeadline = { commandTimeoutMs: timeoutMs, socketTimeoutMs: RECORDS_SOCKET_TIMEOUTS * timeoutMs };
  const walksTimeoutMs = WALKS_TIMEOUTS * timeoutMs;
  const timeouts = {
    records: withDeadline,
    windows: { socketTimeoutMs: WINDOWS_SOCKET_TIMEOUTS * timeoutMs },
    push: withDeadline,
    walks: { commandTimeoutMs: walksTimeoutMs, socketTimeoutMs: walksTimeoutMs },
    members: { ...withDeadline, anyRole: true },
  };
  const newPush = (records: RedisConnection, subscriber: RedisConnection) =>
    new InvalidationPush({
      records,
      subscriber,
      keyPrefix,
      onInstalled: events.onInstalled,
      onRecord: events.onRecord,
      onDisturbed: events.onDisturbed,
      onFailure: events.onPushRefused,
    });

  if (address.kind === 'cluster') {
    const connection = (role: Role, member: HostAndPort) =>
      new RedisConnection({
        ...common,
        ...timeouts[role],
        name: `tollgate-${role}`,
        server: memberOptions(member, address, options),
      });
    const { seeds } = address;
    const timeoutsMs = { records: timeoutMs, walks: walksTimeoutMs };
    const { onChange } = events;
    return new RedisCluster({ seeds, connection, push: newPush, timeoutsMs, clock, observer, onChange });
  }

  const server = serverOptions(address, options);
  const { onReadOnly } = events;
  const connection = (role: Exclude<Role, 'members'>) =>
    new RedisConnection({ ...common, ...timeouts[role], onReadOnly, name: `tollgate-${role}`, server });
  const [records, windows] = [connection('records'), connection('windows')];
  const [subscriber, walks] = [connection('push'), connection('walks')];
  const all = [records, windows, subscriber, walks];
  return {
    records,
    windows,
    walks,
    push: newPush(records, subscriber),
    open: () => Promise.all(all.map((each) => each.open())),
    reconnect: (reason) => {
      for (const each of all) each.reconnect(reason);
    },
    close: () => Promise.all(all.map((each) => each.close())),
  };
}

function redisAddress(url: string): RedisAddress {
  const address = parseStoreUrl(url);
  // The message omits the URL, which may contain a password.
  if (address.kind === 'invalid') throw new Error(`store.url ${address.fault}`);
  if (address.kind === 'sqlite') throw new Error('store.url is none of Redis');
  return address;
}
