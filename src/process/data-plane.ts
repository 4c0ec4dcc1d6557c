/**
 * The part of a gateway that serves clients: the public listener, and all that its requests pass through. A
 * single-process gateway has one data plane, a gateway with workers has one in each worker.
 */
import { hash, randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import { type Clock, systemScheduler } from '../base/clock.ts';
import { StoreBoundedClock } from '../base/store-bounded-clock.ts';
import type { Config, ListenerName, Section } from '../config/config.ts';
import { portVariable } from '../config/environment.ts';
import { Authenticator } from '../customers/keys/authenticator.ts';
import { KeyUses } from '../customers/keys/key-uses.ts';
import { LevelObserver } from '../customers/notices/level-observer.ts';
import { BurstLimiter } from '../customers/quota/burst.ts';
import { ConcurrencyLimiter } from '../customers/quota/concurrency.ts';
import { CustomerQuota } from '../customers/quota/customer-quota.ts';
import { Instances } from '../customers/quota/instances.ts';
import { LeasedQuota } from '../customers/quota/leased-quota.ts';
import { RecentUsage } from '../customers/quota/recent-usage.ts';
import { createQuotaWithoutStore } from '../customers/quota/without-store.ts';
import { FailedRequestCollector } from '../customers/usage/failed-request-collector.ts';
import { HistoryCollector } from '../customers/usage/history-collector.ts';
import { RecentHistory } from '../customers/usage/recent-history.ts';
import { type CheckSettings, createCheckApp, isNginxCall } from '../edge/check/check-app.ts';
import { UNKNOWN_METHOD } from '../edge/check/check-refusals.ts';
import { createKeyHeaders } from '../edge/credentials.ts';
import { MaintenanceWatch } from '../edge/maintenance.ts';
import { createPublicApp, OWN_HEADER_NAMES } from '../edge/public-app.ts';
import { createPublicServer } from '../edge/public-server.ts';
import { createRecorder } from '../edge/recorder.ts';
import { refuseMethod } from '../edge/refusals.ts';
import { routeLife } from '../edge/route-life.ts';
import { createRouteTable, type RouteDefinition, type RouteDestination } from '../edge/routes.ts';
import type { PublicSettings } from '../edge/settings.ts';
import { AddressBlocks } from '../formats/address-block.ts';
import { type Connections, createConnections } from '../http/listener/connections.ts';
import { FailedAttempts } from '../http/listener/failed-attempts.ts';
import { listen } from '../http/listener/listen.ts';
import { type TlsKeys, tlsOptions } from '../http/tls/tls-options.ts';
import { type CertificateFiles, type UsableCertificate, watchCertificate } from '../http/tls/watch-certificate.ts';
import { createAccessLog } from '../observability/access-log.ts';
import type { Logger } from '../observability/logger.ts';
import type { Metrics } from '../observability/metrics.ts';
import { RecentRefusals } from '../observability/recent-refusals.ts';
import { Tracing } from '../observability/tracing/tracing.ts';
import type { Store } from '../store/store.ts';
import { Backends } from '../upstream/backends.ts';
import { createForwarder } from '../upstream/forwarder.ts';
import { Assertions } from '../upstream/identity/assertions.ts';
import { importSigningKeys } from '../upstream/identity/signing-keys.ts';
import { headerPolicy } from '../upstream/request-headers.ts';
import { openObservedStore, type ProcessParts } from './observed-store.ts';

/** Time at a shutdown to export the last spans: what is left of the drain, within these bounds. */
const MIN_FLUSH_MS = 1000;
const MAX_FLUSH_MS = 5000;

export type DataPlane = Awaited<ReturnType<typeof openDataPlane>>;
export type DataPlaneStatus = ReturnType<DataPlane['status']>;

/** The URLs of the listeners for clients, without a path. */
export interface ClientAddresses {
  /** Undefined without a backend. */
  readonly public: string | undefined;
  /** Undefined without a `check` section. */
  readonly check: string | undefined;
}

interface ClientListener {
  readonly name: 'listen' | 'check';
  readonly server: Server | TlsServer;
  readonly connections: Connections;
}

interface DataPlaneParts extends ProcessParts {
  /** Called with the address block of each failed key, to share it with other workers. Omitted without workers. */
  readonly keyFailed?: (block: string) => void;
}

/**
 * Opens everything except the listener.
 * @throws Error when the certificate cannot be used, or the embedded store's file is in use.
 */
export async function openDataPlane(config: Config, parts: DataPlaneParts) {
  const { log, clock, version, startedAtMs, keyFailed } = parts;
  const { logger, destination } = log;
  await using opened = new AsyncDisposableStack();
  const upstreams = () => backends.status();
  const highestUsage = (count: number) => quota.hourly.highestUsage(count);
  const inForce = () => maintenance.current;
  const observed = { ...parts, upstreams, highestUsage, maintenance: inForce };
  const { store, metrics } = await openObservedStore(config, observed, opened);
  let current = config;
  const accessLog = createAccessLog({ destination, mode: config.logging.access, clock, scheduler: systemScheduler });
  opened.defer(() => accessLog.close());
  const refusals = new RecentRefusals(clock);
  const { usageHistory } = store;
  const history =
    usageHistory &&
    new HistoryCollector({
      history: usageHistory,
      storeIsUp: () => store.isUp(),
      dropped: (count) =>
        logger.warn(
          { count },
          'too many customers sent requests: these refusals and requests are not in the usage history',
        ),
      clock,
      scheduler: systemScheduler,
    });
  opened.defer(() => history?.close());
  const failedRequests = new FailedRequestCollector({
    store: store.failedRequests,
    storeIsUp: () => store.isUp(),
    bounds: config.requests,
    dropped: metrics.failedRequestsDropped,
    clock,
    scheduler: systemScheduler,
  });
  opened.defer(() => failedRequests.close());
  const instance = randomUUID();
  const tracing = new Tracing({
    version,
    instanceId: instance,
    spansDropped: metrics.traceSpansDropped,
    logger,
    clock,
    random: Math.random,
  });
  opened.defer(() => tracing.close(0));
  await tracing.apply(config.tracing);
  const recorder = createRecorder({ metrics, accessLog, refusals, history, failedRequests, logger, clock });

  const backends = new Backends({
    maxInFlight: () => current.limits.inFlight,
    observer: {
      retry: metrics.upstreamRetry,
      changed({ backend, url, up, reason, fault }) {
        if (up) logger.info({ backend, upstream: url }, 'an upstream is back in service');
        else logger.error({ backend, upstream: url, reason, fault }, 'an upstream is out of service');
      },
    },
    clock,
  });
  backends.apply(config.backends);
  opened.defer(() => backends.close());
  const forwarder = createForwarder({ ownHeaderNames: OWN_HEADER_NAMES, clock });

  const storeClock = new StoreBoundedClock(clock);
  const told = { host: hostname(), pid: process.pid, version, startedAtMs };
  const instances = new Instances({
    async announce() {
      const sentAtMs = clock.monotonicMs();
      const announced = await store.announce(instance, { ...told, configHash: current.hash });
      storeClock.learn(announced.storeTimeMs, sentAtMs);
      return announced.instances;
    },
    withdraw: () => store.withdraw(instance),
    timeoutMs: config.store.timeoutMs,
    clock,
    scheduler: systemScheduler,
  });
  opened.defer(() => instances.close());
  const levels = new LevelObserver(
    {
      notices: store.notices,
      usages: store.usages,
      periods: store.periods,
      created: metrics.noticeCreated,
      customers: config.auth.cacheEntries,
      clock,
      scheduler: systemScheduler,
    },
    config.notices?.levels,
  );
  const quota = openQuota(config, { store, instances, levels, clock, storeClock }, opened);
  const authenticator = new Authenticator({
    records: store.records,
    invalidations: store.invalidations,
    clock,
    entries: config.auth.cacheEntries,
    ...cacheTimes(config),
  });
  opened.defer(() => authenticator.close());
  const maintenance = new MaintenanceWatch({
    store: store.maintenance,
    invalidations: store.invalidations,
    clock: storeClock,
    scheduler: systemScheduler,
  });
  opened.defer(() => maintenance.close());
  await maintenance.start();
  const keyUses = new KeyUses({ store: store.keyUses, clock, scheduler: systemScheduler });
  opened.defer(() => keyUses.close());
  let identity = await openIdentity(config, clock);

  const failedKeys = new FailedAttempts(clock, config.auth.failuresPerMinute, keyFailed);
  const shared = { backends, tracing, history: usageHistory && new RecentHistory(usageHistory, clock) };
  const settings = { current: publicSettings(config, { ...shared, failedKeys, assertions: identity.assertions }) };
  const checkSettings = { current: settingsOfChecks(config, settings.current) };
  const openConnections = (observer: Parameters<typeof createConnections>[0]['observer']) => {
    const connections = createConnections({ limits: config.limits, clock, observer });
    opened.defer(() => connections.close());
    return connections;
  };
  const serverParts = {
    limits: { ...config.limits, keepAliveTimeoutMs: config.listen.keepAliveTimeoutMs },
    documentationUrl: () => settings.current.documentationUrl,
  };
  const client = { authenticator, keyUses, quota, maintenance, recorder, clock };
  const listeners: ClientListener[] = [];
  if (config.backends.size > 0) {
    const connections = openConnections(metrics);
    const app = createPublicApp({ ...client, settings, connections, forwarder });
    const certificate =
      config.listen.tls &&
      (await openCertificate(config.listen.tls, { metrics, logger, clock }, opened, (keys) => {
        if (server instanceof TlsServer) server.setSecureContext(tlsOptions(keys));
      }));
    const server = createPublicServer({
      ...serverParts,
      app,
      connections,
      tls: certificate,
      refuseMethod: (target) => refuseMethod(target, settings.current.routes),
      onUnparsed: recorder.unparsed.bind(undefined, 'gateway'),
    });
    listeners.push({ name: 'listen', server, connections });
  }
  if (config.check !== undefined) {
    // Counted apart: proxies keep connections for all their clients.
    const connections = openConnections({ connection() {}, connectionClosed: metrics.connectionClosed });
    const app = createCheckApp({ ...client, settings: checkSettings, connections, logger });
    const server = createPublicServer({
      ...serverParts,
      app,
      connections,
      refuseMethod: () => UNKNOWN_METHOD,
      onUnparsed: recorder.unparsed.bind(undefined, 'check'),
    });
    listeners.push({ name: 'check', server, connections });
  }

  const running = opened.move();
  return {
    store,
    metrics,
    quota,
    /** Plain data, so that a worker can send it to the primary. */
    status: () => ({
      configHash: current.hash,
      store: store.status(),
      /** Other instances can count this one. */
      announced: instances.announced,
      /** Instances announced within the last hour. */
      instances: instances.count,
      upstreams: backends.status(),
      maintenance: maintenance.current,
    }),
    leaseState: (customer: string) => quota.hourly.leaseState(customer),
    refusals: (customer: string | undefined) => refusals.of(customer),
    /** The keys that verify assertions. */
    publicKeys: () => identity.publicKeys,
    /** Adds failed keys that another worker counted, by address block. */
    learnFailures(counts: readonly (readonly [block: string, failures: number])[]): void {
      for (const [block, failures] of counts) settings.current.failedKeys.learn(block, failures);
    },

    /**
     * Applies a config from the next request on; or rejects, and nothing has changed. Everything that may fail comes
     * first.
     */
    async applyConfig(next: Config) {
      const nextIdentity = isDeepStrictEqual(current.identity, next.identity)
        ? identity
        : await openIdentity(next, clock);
      const failedKeys =
        current.auth.failuresPerMinute === next.auth.failuresPerMinute
          ? settings.current.failedKeys
          : new FailedAttempts(clock, next.auth.failuresPerMinute, keyFailed);
      await tracing.apply(next.tracing);
      backends.apply(next.backends);
      const nextSettings = publicSettings(next, { ...shared, failedKeys, assertions: nextIdentity.assertions });

      current = next;
      identity = nextIdentity;
      settings.current = nextSettings;
      checkSettings.current = settingsOfChecks(next, nextSettings);
      quota.applyLimits(next);
      levels.applyLevels(next.notices?.levels);
      authenticator.applyCacheTimes(cacheTimes(next));
      accessLog.setMode(next.logging.access);
      failedRequests.applyBounds(next.requests);
      logger.level = next.logging.level;
      instances.announceNow();
    },

    /**
     * Starts accepting requests, and announces this instance to the others. Resolves to the URLs, without a path.
     * @throws Error when an address is in use.
     */
    async listen(): Promise<ClientAddresses> {
      const urls: Partial<Record<ListenerName, string>> = {};
      for (const { name, server } of listeners) urls[name] = await openListener(server, name, config, running);
      // Not earlier: a gateway that cannot listen would reduce the shares of the others for an hour.
      await instances.start();
      return { public: urls.listen, check: urls.check };
    },
    /** `beginDrain` and `drain` are the two steps of a shutdown. */
    beginDrain(): void {
      for (const { connections } of listeners) connections.beginDrain();
    },
    async drain(deadlineMs: number): Promise<void> {
      const startedAtMs = clock.monotonicMs();
      await Promise.all(listeners.map(({ connections }) => connections.finishDrain(deadlineMs)));
      const leftMs = deadlineMs - (clock.monotonicMs() - startedAtMs);
      await tracing.close(Math.min(MAX_FLUSH_MS, Math.max(MIN_FLUSH_MS, leftMs)));
    },
    /** Refunds unused quota units, and writes the recorded uses of keys. Then closes the store. */
    close: () => running.disposeAsync(),
  };
}

/** Binds a listener, and registers its close with `opened`. Resolves and rejects like {@link listen}. */
export async function openListener(
  server: Server | TlsServer,
  name: ListenerName,
  config: Config,
  opened: AsyncDisposableStack,
): Promise<string> {
  const address = config[name];
  if (address === undefined) throw new Error(`the configuration has no section ${name}`);
  const { host, port } = address;
  const url = await listen(server, name, { host, port, portVariable: portVariable(config, name) });
  opened.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  return url;
}

/**
 * Returns the certificate of the public listener, then watches it: `use` gets each replacement. Log and metrics tell
 * which one is in use. @throws Error if the certificate cannot be used.
 */
async function openCertificate(
  files: CertificateFiles,
  { metrics, logger, clock }: { metrics: Metrics; logger: Logger; clock: Clock },
  opened: AsyncDisposableStack,
  use: (keys: TlsKeys) => void,
): Promise<TlsKeys> {
  const watch = new AbortController();
  opened.defer(() => watch.abort());
  const report = ({ expiresAtMs }: UsableCertificate) => {
    metrics.certificateUsed(expiresAtMs);
    const expires = { expires_at: new Date(expiresAtMs).toISOString() };
    if (expiresAtMs > clock.nowMs()) logger.info(expires, 'the certificate of the public listener is in use');
    else logger.warn(expires, 'the certificate of the public listener has expired: renew it, clients refuse it');
  };
  const certificate = await watchCertificate({
    ...files,
    signal: watch.signal,
    onReplaced(replacement) {
      use(replacement.keys);
      metrics.certificateReload('used');
      report(replacement);
    },
    onRefused(fault) {
      metrics.certificateReload('refused');
      logger.error(
        { fault },
        'the new certificate of the public listener cannot be used: the last valid one stays in use',
      );
    },
  });
  report(certificate);
  return certificate.keys;
}

/** Creates the signer of assertions for the upstream, and its public keys; undefined and none if not configured. */
export async function openIdentity({ identity, auth }: Config, clock: Clock) {
  if (!identity.assertion) return { assertions: undefined, publicKeys: { keys: [] } };
  const { issuer, ttlSeconds, signingKeys } = identity.assertion;
  const keys = await importSigningKeys(signingKeys);
  const assertions = new Assertions({ keys, issuer, ttlSeconds, clock, entries: auth.cacheEntries });
  return { assertions, publicKeys: keys.published };
}

function cacheTimes({ auth }: Config) {
  return { cacheMs: 1000 * auth.cacheSeconds, staleIfErrorMs: 1000 * auth.staleIfErrorSeconds };
}

type SettingsParts = Pick<PublicSettings, 'failedKeys' | 'assertions' | 'tracing'> & {
  readonly backends: Backends;
  readonly history: RecentHistory | undefined;
};

function publicSettings(config: Config, { tracing, backends, history, ...parts }: SettingsParts): PublicSettings {
  const { auth, documentationUrl, identity, limits, listen } = config;
  return Object.freeze({
    ...parts,
    tracing: config.tracing && tracing,
    routes: createRouteTable(servedRoutes(config, backends, history), config.aliases),
    guardLimits: limits,
    requestTimeoutMs: limits.requestTimeoutMs,
    bodyStallTimeoutMs: limits.bodyStallTimeoutMs,
    maxInFlight: limits.inFlight,
    keyHeaders: createKeyHeaders(auth.keyHeaders, auth.realm),
    trustedProxies: new AddressBlocks(listen.trustedProxies),
    trustForwardedHost: listen.trustForwardedHost,
    browserKeys: auth.browserKeys,
    identityHeaders: identity.headers,
    documentationUrl,
  });
}

/** Checks obey the settings of the public listener, but other proxies name the client. */
function settingsOfChecks({ check, identity, usagePath }: Config, settings: PublicSettings): CheckSettings {
  const { token, trustedProxies = [] } = check ?? {};
  return Object.freeze({
    ...settings,
    via: 'check',
    isUnlisted: isNginxCall,
    trustedProxies: new AddressBlocks(trustedProxies),
    trustForwardedHost: false,
    tokenHash: token === undefined ? undefined : hash('sha256', token, 'buffer'),
    usagePath,
    audience: identity.assertion?.audience ?? '',
  });
}

/** Returns where a route's requests are sent; undefined without a backend, where the gateway only decides checks. */
function destinationOf(route: Section<'routes'>[number], config: Config, backends: Backends) {
  const settings = config.backends.get(route.upstream);
  if (settings === undefined) return undefined;
  const { audience = config.identity.assertion?.audience ?? new URL(settings.urls[0]).origin } = settings;
  const destination: RouteDestination = {
    backend: backends.get(route.upstream),
    responseTimeoutMs: route.responseTimeoutMs ?? settings.responseTimeoutMs,
    idleTimeoutMs: route.idleTimeoutMs ?? settings.idleTimeoutMs,
    totalTimeoutMs: route.totalTimeoutMs ?? settings.totalTimeoutMs,
    headers: headerPolicy(settings, config.auth.keyHeaders),
    audience,
  };
  return destination;
}

function servedRoutes(config: Config, backends: Backends, history: RecentHistory | undefined): RouteDefinition[] {
  const { routes, usagePath } = config;
  const served: RouteDefinition[] = routes.map((route) => {
    return {
      ...route,
      purpose: 'forward',
      destination: destinationOf(route, config, backends),
      life: routeLife(route),
    };
  });
  const methods = ['GET', 'HEAD'];
  if (usagePath === undefined) return served;
  served.push({ path: usagePath, methods, purpose: 'usage' });
  if (history) served.push({ path: `${usagePath}/history`, methods, purpose: 'usage_history', history });
  return served;
}

interface QuotaParts {
  readonly store: Store;
  readonly instances: Pick<Instances, 'countForShare'>;
  /** Omitted in the primary, which admits no request. */
  readonly levels?: LevelObserver;
  readonly clock: Clock;
  /** Omitted in the primary, which never reads the store's clock. */
  readonly storeClock?: StoreBoundedClock;
}

/** Creates the customer quota, which admits or refuses requests and reports usage. */
export function openQuota(
  config: Config,
  { store, instances, levels, clock, storeClock }: QuotaParts,
  opened: AsyncDisposableStack,
) {
  const scheduler = systemScheduler;
  const common = { windows: store.windows, storeIsUp: (customer: string) => store.isUp(customer), clock, scheduler };
  const hourly = new LeasedQuota({
    ...common,
    ...(levels && { levels }),
    timeoutMs: config.store.timeoutMs,
    customers: config.auth.cacheEntries,
    withoutStore: createQuotaWithoutStore({
      ...common,
      // A charge to a store that is silent is lost with the connection, and not repeated.
      storeIsUp: (customer) => hourly.storeResponds(customer),
      onError: config.store.onError,
      instances: () => instances.countForShare(),
    }),
  });
  opened.defer(() => hourly.close());
  return new CustomerQuota({
    limits: config,
    clock: storeClock ?? clock,
    hourly,
    bursts: new BurstLimiter(clock, config.auth.cacheEntries),
    concurrency: new ConcurrencyLimiter(),
    recentUsage: new RecentUsage({ ...common, hourly, customers: config.auth.cacheEntries }),
  });
}
