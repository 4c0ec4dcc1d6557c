/**
 * The Redis store. It has one connection for records, one for windows, one on which Redis pushes changed records, and
 * one for lists, admin writes, last uses, the audit log and usage reports (`background`).
 *
 * Record reads have a deadline. Window calls have none: a late grant is refunded whole by the code that requested it. A
 * deadline here would lose the grant and leave its units counted for an hour. Lists may take longer than either, so
 * they use the fourth connection, on which no request waits. It needs no tracking of changes.
 *
 * The store is up while the records and windows connections are usable; that it is up again is reported when the
 * background connection is back, too. Without the push connection it keeps working, but notices changes later.
 *
 * With Sentinel, each connection goes to the server that is the master at the time of connecting. In a cluster there
 * are four connections to each master: see cluster.ts.
 */
import { setTimeout } from 'node:timers/promises';
import { ReplyError } from 'ioredis';
import type { Clock } from '../../base/clock.ts';
import { Throttle } from '../../base/throttle.ts';
import { parseStoreUrl } from '../../formats/store-address.ts';
import type { StoreObserver, StoreOp } from '../observer.ts';
import type { Store } from '../store.ts';
import type { UsageRetention } from '../usage-history.ts';
import { redisAudit } from './audit.ts';
import { RedisCluster, type Role } from './cluster/cluster.ts';
import type { ClientOptions } from './connection/client.ts';
import { RedisConnection, type RedisConnectionOptions } from './connection/connection.ts';
import { InvalidationPush, type InvalidationPushOptions } from './connection/invalidation-push.ts';
import { checkServer } from './connection/server-check.ts';
import { memberOptions, type RedisSecurity, serverOptions } from './connection/server-options.ts';
import { redisFailedRequests } from './failed-requests.ts';
import { DataLossDetection } from './installation/data-loss-detection.ts';
import { redisInstances } from './instances.ts';
import { redisKeyUses } from './key-uses.ts';
import { redisNotices } from './notices/notices.ts';
import { redisNotifySecrets } from './notices/notify-secrets.ts';
import { checkPermissions } from './permission-check.ts';
import { redisPortalSessions } from './portal/portal-sessions.ts';
import { type RedisKeyNames, redisKeyNames } from './protocol/key-names.ts';
import { withoutArguments } from './protocol/redis-errors.ts';
import { DamagedRecords } from './records/damaged-records.ts';
import { redisMaintenance } from './records/maintenance.ts';
import { redisRecords } from './records/records.ts';
import { redisPeriodReader } from './usage/period-reader.ts';
import { redisPresentPeriods } from './usage/present-periods.ts';
import { redisUsageHistory } from './usage/usage-history.ts';
import { HourlyWindow } from './window/hourly-window.ts';
import { redisUsages } from './window/usages.ts';

/** A silent connection is closed after this many times `timeoutMs`; a late grant must arrive by then. */
const RECORDS_SOCKET_TIMEOUTS = 3;
const WINDOWS_SOCKET_TIMEOUTS = 10;
/** One call on the background connection may take this many times `timeoutMs`. */
const BACKGROUND_TIMEOUTS = 10;
/** Minimum interval between reconnects because a server is no longer the master. */
const RECONNECT_MS = 1000;
/** Temporary refusals: the server is starting or is a replica, or the cluster is incomplete. */
const TEMPORARY = /^(?:CLUSTERDOWN|LOADING|MASTERDOWN|READONLY|NOREPLICAS) /;
/** How long opening waits for the push and the installation marks. */
const OPEN_MS = 2000;

export interface RedisStoreOptions extends RedisSecurity {
  /** For the syntax see src/formats/store-address.ts. */
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
  /** How long the usage history is kept. Undefined: none is written. */
  readonly usage?: UsageRetention | undefined;
  /** Opening writes nothing, not even the installation mark. Default: false. */
  readonly readOnly?: boolean;
}

/**
 * Opens the store. Resolves after the first attempt to connect, even if it failed: the store keeps trying to connect.
 */
export async function openRedisStore(options: RedisStoreOptions): Promise<Store> {
  const { clock, observer, warn, readOnly = false } = options;
  const names = redisKeyNames(options.keyPrefix);
  let state: 'opening' | 'open' | 'closed' = 'opening';
  let wasUp: boolean | undefined;
  let reached = false;
  let lastError: string | undefined;
  const reconnects = new Throttle(clock, RECONNECT_MS, 1);
  const warnedOf = new Set<string>();

  const connections = createConnections(options, names, {
    onChange: (failure) => refresh(failure),
    onReadOnly: () => reconnect(),
    onPush: (pushed) => dataLoss.pushed(pushed),
    onFailure: (error) => warnOfRefusal('changes to keys and customers are not pushed', error),
  });
  const { records, windows, background, push } = connections;
  const dataLoss = new DataLossDetection({
    connection: records,
    names,
    warn,
    onFailure: (error) => warnOfRefusal('the gateway cannot detect that the store lost its data', error),
    readOnly,
  });
  const tasks = () => [...push.tasks, ...dataLoss.tasks];
  const damaged = new DamagedRecords({ names, clock, observer });
  const instances = redisInstances(windows, background, names);

  const isUp = (customer?: string): boolean => {
    if (state !== 'open') return false;
    if (customer !== undefined) return windows.isUsable(names.window(customer));
    return records.isUsable() && windows.isUsable();
  };

  /**
   * Updates the store's state. Does not notify the observer while opening or after closing: operators need not see
   * that.
   */
  const refresh = (failure?: string) => {
    for (const task of tasks()) task.startIfDue();
    if (state === 'closed') return;
    lastError = failure ?? lastError;
    if (state === 'opening') return;
    // Reported once admin writes and lists work again, too. Later, a loss of their connection alone is no outage.
    const up = isUp() && (wasUp === true || background.sessions !== undefined);
    if (up === wasUp) return;
    wasUp = up;
    observer.up(up, up ? undefined : lastError);
    if (up && !reached) {
      reached = true;
      void checkServers();
    }
  };

  const checkServers = async () => {
    const found = await Promise.all([
      ...records.servers.map(async ({ client }) => (await checkServer(client)).warnings),
      readOnly ? [] : checkPermissions(windows.client, names),
    ]);
    for (const warning of new Set(found.flat())) warn(warning);
  };

  /** Reconnects all connections: one that only reads would not notice that its server has become a replica. */
  const reconnect = () => {
    if (reconnects.isDue('')) connections.reconnect('the server refuses writes as a replica');
  };

  /**
   * Warns once of each consequence of a refusal, which only an operator can fix. Other failures are retried without a
   * warning.
   */
  const warnOfRefusal = (consequence: string, error: unknown) => {
    const isRefusal = error instanceof Error && error instanceof ReplyError;
    if (!isRefusal || TEMPORARY.test(error.message) || warnedOf.has(consequence)) return;
    warnedOf.add(consequence);
    withoutArguments(error);
    warn(`Redis refuses a command, so ${consequence}: ${error.message}`);
  };

  // Scripts are defined before the first command is sent.
  const usage = options.usage && redisUsageHistory(background, names, options.usage);
  const forgetUsage = async (op: StoreOp, customer: string) => usage?.forget(op, customer);
  const hourlyWindow = new HourlyWindow({ connection: windows, names, clock, observer, retention: options.usage });
  const store: Store = {
    records: redisRecords({ connection: records, background, dataLoss, damaged, pushed: push, forgetUsage, names }),
    keyUses: redisKeyUses(background, names),
    notifySecrets: redisNotifySecrets(background, names),
    portalSessions: redisPortalSessions(background, names),
    maintenance: redisMaintenance({ connection: records, background, dataLoss, names }),
    audit: redisAudit(background, names),
    windows: hourlyWindow,
    usages: { ...redisUsages(background, names), ...redisPresentPeriods(background, names) },
    periods: redisPeriodReader(background, names),
    failedRequests: redisFailedRequests(background, names, (error) =>
      warnOfRefusal('refused and failed requests are not recorded', error),
    ),
    notices: redisNotices(background, names),
    usageHistory: usage,
    invalidations: push,
    ...instances,

    async announce(instance, state) {
      dataLoss.checkEvictions();
      try {
        return await hourlyWindow.ofAnnouncement(instances.announce(instance, state));
      } catch (error) {
        if (error instanceof Error) warnOfRefusal('this instance cannot announce itself', error.cause);
        throw error;
      }
    },

    initialise: () => records.run('initialise', () => dataLoss.initialise()),

    isUp,

    status: () => ({
      kind: 'redis',
      up: wasUp === true,
      reached,
      ...(lastError !== undefined && { lastError }),
      invalidation: push.connected ? 'connected' : 'disconnected',
      wiped: dataLoss.wiped,
      empty: wasUp === true && dataLoss.empty,
      evicted: dataLoss.evicted,
      refusing: hourlyWindow.refusing,
    }),

    async close() {
      state = 'closed';
      wasUp = false;
      for (const task of tasks()) task.close();
      await connections.close();
    },
  };

  await connections.open();
  // In a Redis with millions of other names, the search for a record may take longer.
  const tasksRun = Promise.all(tasks().map((task) => task.whenIdle()));
  await Promise.race([tasksRun, setTimeout(OPEN_MS, undefined, { ref: false })]);
  state = 'open';
  refresh();
  return store;
}

type StoreConnectionEvents = Required<Pick<RedisConnectionOptions, 'onChange' | 'onReadOnly'>> &
  Pick<InvalidationPushOptions, 'onPush' | 'onFailure'>;

/** Returns the connections of a store, to one server or to each master of a cluster. */
function createConnections(options: RedisStoreOptions, names: RedisKeyNames, events: StoreConnectionEvents) {
  const address = parseStoreUrl(options.url);
  // The message omits the URL, which may contain a password.
  if (address.kind === 'invalid' || address.kind === 'sqlite') throw new Error('store.url does not name a Redis');
  const { timeoutMs, heartbeatMs, clock, observer } = options;
  const { onChange, onReadOnly, onPush, onFailure } = events;
  const checks = { clock, ...(heartbeatMs !== undefined && { heartbeatMs }) };
  const withDeadline = { commandTimeoutMs: timeoutMs, socketTimeoutMs: RECORDS_SOCKET_TIMEOUTS * timeoutMs };
  const backgroundTimeoutMs = BACKGROUND_TIMEOUTS * timeoutMs;
  const timeouts = {
    records: withDeadline,
    windows: { socketTimeoutMs: WINDOWS_SOCKET_TIMEOUTS * timeoutMs },
    push: withDeadline,
    background: { commandTimeoutMs: backgroundTimeoutMs, socketTimeoutMs: backgroundTimeoutMs },
    members: { ...withDeadline, anyRole: true },
  };
  const connection = (role: Role, server: ClientOptions) =>
    new RedisConnection({
      ...checks,
      ...timeouts[role],
      observer,
      onChange,
      onReadOnly,
      name: `tollgate-${role}`,
      server,
    });
  const newPush = (records: RedisConnection, subscriber: RedisConnection) =>
    new InvalidationPush({ ...checks, records, subscriber, names, onPush, onFailure });

  if (address.kind === 'cluster') {
    return new RedisCluster({
      seeds: address.seeds,
      connection: (role, member) => connection(role, memberOptions(member, address, options)),
      push: newPush,
      timeoutsMs: { records: timeoutMs, background: backgroundTimeoutMs },
      clock,
      observer,
      onChange,
    });
  }

  const server = serverOptions(address, options);
  const [records, windows] = [connection('records', server), connection('windows', server)];
  const [subscriber, background] = [connection('push', server), connection('background', server)];
  const all = [records, windows, subscriber, background];
  return {
    records,
    windows,
    background,
    push: newPush(records, subscriber),
    open: () => Promise.all(all.map((each) => each.open())),
    reconnect: (reason: string) => {
      for (const each of all) each.reconnect(reason);
    },
    close: () => Promise.all(all.map((each) => each.close())),
  };
}
