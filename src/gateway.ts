/**
 * The composition root: builds every part from the configuration, passes it what it depends on, and closes all in the
 * reverse order. Nothing else in the program creates a part that another part uses.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import { dirname, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { createAdminApp } from './admin/admin-app.ts';
import { createJwtVerifier, type JwtVerifier } from './admin/jwt.ts';
import { RemoteKeySet } from './admin/remote-key-set.ts';
import { type Clock, systemClock, systemScheduler } from './clock.ts';
import type { AdminJwtConfig, Config, ListenConfig } from './config/config.ts';
import { processEnvironment } from './config/environment.ts';
import { parseConfig, readConfigFile } from './config/load.ts';
import type { Environment } from './config/substitute.ts';
import { TrustedProxies } from './edge/client-address.ts';
import { createConnections } from './edge/connections.ts';
import { createChallenges } from './edge/credentials.ts';
import { createDrain } from './edge/drain.ts';
import { createPublicApp, OWN_ANSWER_NAMES } from './edge/public-app.ts';
import { createPublicServer } from './edge/public-server.ts';
import { createRecorder } from './edge/recorder.ts';
import { refuseMethod } from './edge/refusals.ts';
import { createRouteTable, type RouteDefinition } from './edge/routes.ts';
import type { PublicSettings } from './edge/settings.ts';
import { FailedAttempts } from './failed-attempts.ts';
import { Assertions } from './identity/assertions.ts';
import { importSigningKeys } from './identity/signing-keys.ts';
import { createAuthenticator } from './keys/authenticator.ts';
import { KeyUses } from './keys/key-uses.ts';
import { listen } from './listen.ts';
import { createAccessLog } from './observability/access-log.ts';
import { openLogStream } from './observability/log-stream.ts';
import { createLogger, type LogDestination, type Logger } from './observability/logger.ts';
import { createMetrics, type Metrics } from './observability/metrics.ts';
import { createOpsApp } from './ops/ops-app.ts';
import { assessReadiness } from './ops/readiness.ts';
import { BurstLimiter } from './quota/burst.ts';
import { CustomerQuota } from './quota/customer-quota.ts';
import { Instances } from './quota/instances.ts';
import { LeasedQuota } from './quota/leased-quota.ts';
import { limitOrigin } from './quota/limit.ts';
import { createQuotaWithoutStore } from './quota/without-store.ts';
import { RecentRefusals } from './recent-refusals.ts';
import { watchConfig } from './reload/config-watch.ts';
import { POSTED_FILE, previewConfig } from './reload/preview.ts';
import { Reloader, type ReloadOutcome, type ReloadTrigger } from './reload/reloader.ts';
import { startSampleBackend } from './sample-backend/sample-backend.ts';
import { seed } from './seed.ts';
import { openStore } from './store/open-store.ts';
import type { Store, StoreObserver } from './store/store.ts';
import { tlsOptions } from './tls/tls-options.ts';
import { WatchedCertificate } from './tls/watched-certificate.ts';
import { createForwarder } from './upstream/forwarder.ts';
import type { UpstreamObserver } from './upstream/upstreams.ts';
import { readVersion } from './version.ts';

/** Where the listeners can be reached, as URLs without a path. */
export interface GatewayAddresses {
  readonly public: string;
  readonly ops: string;
  /** Undefined without an `admin` section. */
  readonly admin: string | undefined;
}

export interface Gateway {
  readonly addresses: GatewayAddresses;
  /** Reads the configuration file again; besides, every change of it is noticed. Never rejects. */
  reload(trigger: ReloadTrigger): Promise<ReloadOutcome>;
  /** Stops being ready, lets requests finish within `shutdown.drain_ms`, then closes everything. */
  close(): Promise<void>;
}

/** What tests put in place of the real thing. */
export interface GatewayOverrides {
  readonly clock?: Clock;
  /** Gets every log line; left out: standard output. */
  readonly logDestination?: LogDestination;
  /** For the file when it is read again; left out: the environment of the process. */
  readonly environment?: Environment;
}

/**
 * Starts all listeners. A Redis that is away is no reason to fail: the gateway is live, not ready, and heals.
 * @throws Error when an address is taken, or the embedded store's file is; the message says what to change.
 */
export async function startGateway(config: Config, overrides: GatewayOverrides = {}): Promise<Gateway> {
  const { clock = systemClock } = overrides;
  await using opened = new AsyncDisposableStack();
  const startedAtMs = clock.nowMs();
  const version = readVersion();

  const { destination, droppedLines } = openLog(opened, overrides.logDestination);
  const logger = createLogger({ level: config.logging.level, destination });
  const metrics = createMetrics({
    version,
    configHash: config.hash,
    configLoadedAtMs: startedAtMs,
    storeIsWiped: () => store.status().wiped,
    upstreams: () => forwarder.status(),
    highestUsage: (count) => quota.highestUsage(count),
    droppedLogLines: droppedLines,
    defaultMetrics: true,
  });
  let accessLog = createAccessLog(destination, config.logging.access, clock);
  const refusals = new RecentRefusals(clock);
  const recorder = createRecorder({
    metrics,
    accessLog: (record) => accessLog(record),
    refusals,
    logger,
    clock,
  });

  const store = await openStore(config.store, {
    clock,
    observer: observeStore(metrics, logger),
    warn: (message) => logger.warn(message),
  });
  opened.defer(() => store.close());
  if (config.seed) await seed(config.seed.customers, store.records, new Date(startedAtMs).toISOString());

  const upstreamUrls = await openUpstreams(config, opened);
  const forwarder = createForwarder({
    ...config.upstream,
    urls: upstreamUrls,
    maxHeaderBytes: config.limits.headerBytes,
    ownAnswerNames: OWN_ANSWER_NAMES,
    observer: observeUpstreams(metrics, logger),
    clock,
  });
  opened.defer(() => forwarder.close());

  const instance = randomUUID();
  const instances = new Instances({ announce: () => store.announce(instance), scheduler: systemScheduler });
  opened.defer(() => instances.close());
  const quota = openQuota(config, { store, instances, clock }, opened);
  const authenticator = createAuthenticator({
    records: store.records,
    invalidations: store.invalidations,
    clock,
    cacheMs: config.auth.cacheMs,
    entries: config.auth.cacheEntries,
    staleIfErrorMs: config.auth.staleIfErrorMs,
  });
  opened.defer(() => authenticator.close());
  const keyUses = new KeyUses({ store: store.keyUses, clock, scheduler: systemScheduler });
  opened.defer(() => keyUses.close());
  const audience = upstreamUrls[0].origin;
  let identity = await openIdentity(config, audience, clock);
  let draining = false;

  const opsApp = createOpsApp({
    metrics,
    readiness: () => {
      const { reached, up, wiped } = store.status();
      return assessReadiness({
        configLoaded: true,
        draining,
        store: { reached: reached && instances.announced, up, wiped },
        upstreamUp: forwarder.status().some((upstream) => upstream.up),
      });
    },
    publicKeys: () => identity?.publicKeys ?? { keys: [] },
    logger,
  });
  const opsUrl = await open(opened, createServer(opsApp), 'ops', config.ops);

  const env = overrides.environment ?? processEnvironment();
  const reloader = new Reloader({
    running: config,
    runningSinceMs: startedAtMs,
    read: () => readConfigFile(config.file),
    parse: (content) => parseConfig(config.file, content, env),
    apply,
    records: store.records,
    usages: store.usages,
    metrics,
    logger,
    clock,
  });
  const adminJwt = config.admin?.jwt && openAdminJwt(config.admin.jwt, { clock, logger }, opened);
  let adminApp = openAdmin(config);
  const adminServer = createServer((req, res) => adminApp(req, res));
  const adminUrl = config.admin && (await open(opened, adminServer, 'admin', config.admin));

  function openAdmin(config: Config) {
    return createAdminApp({
      token: config.admin?.token,
      jwt: adminJwt,
      records: store.records,
      keyUses: store.keyUses,
      audit: store.audit,
      planNames: new Set(config.plans.keys()),
      effectiveLimit: (customer) => quota.limitOf(customer),
      limitOrigin: (customer, limit) => limitOrigin(customer, limit, config.limitOrigins),
      runningConfig: () => config.disclosed,
      reload: () => reloader.reload('admin'),
      preview: async (content) => {
        const next = await parseConfig(POSTED_FILE, content, env, dirname(resolve(config.file)));
        return previewConfig(reloader.running, next, store);
      },
      usage: (customer, requestsPerHour) => quota.usage(customer, requestsPerHour),
      held: (customer) => quota.held(customer),
      refusals: (customer) => refusals.of(customer),
      status: () => ({
        version,
        startedAtMs,
        uptimeSeconds: (clock.nowMs() - startedAtMs) / 1000,
        config: {
          file: config.file,
          hash: reloader.running.hash,
          loadedAtMs: reloader.loadedAtMs,
          lastReload: reloader.last,
        },
        store: store.status(),
        instances: instances.count,
        upstreams: forwarder.status(),
      }),
      logger,
      clock,
      randomBytes,
    });
  }

  const failedKeys = new FailedAttempts(clock, config.auth.failuresPerMinute);
  const settings = { current: publicSettings(config, { failedKeys, assertions: identity?.assertions }) };

  /** Everything that may fail comes first; what then changes does so between two requests. */
  async function apply(next: Config): Promise<void> {
    const { auth, identity: before } = reloader.running;
    const nextIdentity = isDeepStrictEqual(before, next.identity)
      ? identity
      : await openIdentity(next, audience, clock);
    const failedKeys =
      auth.failuresPerMinute === next.auth.failuresPerMinute
        ? settings.current.failedKeys
        : new FailedAttempts(clock, next.auth.failuresPerMinute);
    const nextSettings = publicSettings(next, { failedKeys, assertions: nextIdentity?.assertions });
    const nextAdminApp = openAdmin(next);

    identity = nextIdentity;
    settings.current = nextSettings;
    adminApp = nextAdminApp;
    quota.follow(next);
    authenticator.follow(next.auth);
    accessLog = createAccessLog(destination, next.logging.access, clock);
    logger.level = next.logging.level;
  }

  const connections = createConnections({ limits: config.limits, clock, observer: metrics });
  opened.defer(() => connections.close());
  const certificate = config.listen.tls && watchCertificate(config.listen.tls, { metrics, logger, clock });
  opened.defer(() => certificate?.close());
  const publicApp = createPublicApp({
    settings,
    authenticator,
    keyUses,
    quota,
    forwarder,
    connections,
    recorder,
    clock,
  });
  const publicServer = createPublicServer({
    app: publicApp,
    connections,
    tls: await certificate?.start((keys) => {
      if (publicServer instanceof TlsServer) publicServer.setSecureContext(tlsOptions(keys));
    }),
    limits: { ...config.limits, keepAliveTimeoutMs: config.listen.keepAliveTimeoutMs },
    refuseMethod: (target) => refuseMethod(target, settings.current.routes),
    onUnparsed: recorder.unparsed,
  });
  const drain = createDrain(publicServer, connections);
  const publicUrl = await open(opened, publicServer, 'listen', config.listen);
  // Only now: a gateway that cannot listen serves nobody, and would make everybody's share smaller for an hour.
  await instances.start();
  opened.defer(() => reloader.close());
  const watching = watchConfig({
    file: config.file,
    look: () => void reloader.reload('noticed'),
    onUnwatched: (error) => logger.warn({ err: error }, 'the configuration is not watched, and is looked at every 5 s'),
  });
  opened.defer(() => watching.close());
  // Also learns what the file holds now, so that a part of it can be told from a new one.
  await reloader.reload('noticed');
  const addresses: GatewayAddresses = { public: publicUrl, ops: opsUrl, admin: adminUrl };
  logger.info({ version, config: config.file, config_hash: config.hash, ...addresses }, 'tollgate started');

  const running = opened.move();
  return {
    addresses,
    reload: (trigger) => reloader.reload(trigger),
    async close() {
      draining = true;
      const { shutdown } = reloader.running;
      logger.info({ ...shutdown }, 'tollgate stops: not ready any more, then drains');
      drain.begin();
      await setTimeout(shutdown.notReadyMs);
      await drain.finish(shutdown.drainMs);
      logger.info('tollgate stopped');
      await running.disposeAsync();
    },
  };
}

interface CertificateParts {
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** The certificate of the public listener; what becomes of it is said in log and metrics. */
function watchCertificate(files: NonNullable<ListenConfig['tls']>, { metrics, logger, clock }: CertificateParts) {
  return new WatchedCertificate({
    ...files,
    scheduler: systemScheduler,
    used(expiresAtMs) {
      metrics.certificateUsed(expiresAtMs);
      const expires = { expires_at: new Date(expiresAtMs).toISOString() };
      if (expiresAtMs > clock.nowMs()) logger.info(expires, 'the certificate of the public listener is in use');
      else logger.warn(expires, 'the certificate of the public listener has expired: renew it, callers refuse it');
    },
    changed: () => metrics.certificateReload('used'),
    refused(fault) {
      metrics.certificateReload('refused');
      logger.error({ fault }, 'the new certificate of the public listener cannot be used: the last good one stays');
    },
  });
}

/** What the backend is told in signed form; undefined where it is told nothing. */
async function openIdentity({ identity, auth }: Config, audience: string, clock: Clock) {
  if (!identity.assertion) return undefined;
  const { issuer, ttlSeconds, signingKeys } = identity.assertion;
  const keys = await importSigningKeys(signingKeys);
  const assertions = new Assertions({ keys, issuer, audience, ttlSeconds, clock, entries: auth.cacheEntries });
  return { assertions, publicKeys: keys.published };
}

interface JwtParts {
  readonly clock: Clock;
  readonly logger: Logger;
}

function openAdminJwt(jwt: AdminJwtConfig, { clock, logger }: JwtParts, opened: AsyncDisposableStack): JwtVerifier {
  const keys = new RemoteKeySet({ url: jwt.jwksUrl, clock, scheduler: systemScheduler, logger });
  opened.defer(() => keys.close());
  keys.start();
  return createJwtVerifier({ issuer: jwt.issuer, audience: jwt.audience, clock, keyFor: keys.keyFor });
}

/** Binds a listener that goes down with the rest. */
async function open(
  opened: AsyncDisposableStack,
  server: Server | TlsServer,
  name: string,
  address: { host: string; port: number },
): Promise<string> {
  const url = await listen(server, name, address);
  opened.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  return url;
}

type SettingsParts = Pick<PublicSettings, 'failedKeys' | 'assertions'>;

function publicSettings(config: Config, parts: SettingsParts): PublicSettings {
  const { auth, identity, limits, listen, upstream } = config;
  const { credentials, authorization, preserveHost } = upstream;
  return Object.freeze({
    ...parts,
    routes: createRouteTable(servedRoutes(config), config.aliases),
    guardLimits: limits,
    mostInFlight: limits.inFlight,
    challenges: createChallenges(auth.realm),
    trustedProxies: new TrustedProxies(listen.trustedProxies),
    browserKeys: auth.browserKeys,
    upstreamHeaders: { credentials, preserveHost, ...(authorization !== undefined && { authorization }) },
    identityHeaders: identity.headers,
  });
}

function servedRoutes({ routes, usagePath }: Config): RouteDefinition[] {
  const served: RouteDefinition[] = routes.map((route) => ({ ...route, purpose: 'forward' }));
  if (usagePath !== undefined) served.push({ path: usagePath, methods: ['GET', 'HEAD'], purpose: 'usage' });
  return served;
}

interface QuotaParts {
  readonly store: Store;
  readonly instances: Instances;
  readonly clock: Clock;
}

function openQuota(config: Config, { store, instances, clock }: QuotaParts, opened: AsyncDisposableStack) {
  const scheduler = systemScheduler;
  const common = { windows: store.windows, storeIsUp: (customer: string) => store.isUp(customer), clock, scheduler };
  const hourly = new LeasedQuota({
    ...common,
    timeoutMs: config.store.timeoutMs,
    accounts: config.auth.cacheEntries,
    withoutStore: createQuotaWithoutStore({
      ...common,
      onError: config.store.onError,
      instances: () => instances.count,
    }),
  });
  opened.defer(() => hourly.close());
  return new CustomerQuota({ limits: config, hourly, bursts: new BurstLimiter(clock, config.auth.cacheEntries) });
}

interface Log {
  readonly destination: LogDestination;
  /** Since the start. */
  droppedLines(): number;
}

function openLog(opened: AsyncDisposableStack, given: LogDestination | undefined): Log {
  if (given) return { destination: given, droppedLines: () => 0 };
  const destination = openLogStream(process.stdout);
  opened.defer(() => destination.close());
  return { destination, droppedLines: destination.droppedLines };
}

/** The backend's origins; starts the bundled one where the configuration asks for it. */
async function openUpstreams({ upstream }: Config, opened: AsyncDisposableStack): Promise<[URL, ...URL[]]> {
  if (upstream.target.kind === 'urls') {
    const [first, ...others] = upstream.target.urls;
    return [new URL(first), ...others.map((url) => new URL(url))];
  }
  const backend = await startSampleBackend({ host: '127.0.0.1', port: 0 });
  opened.defer(() => backend.close());
  return [backend.url];
}

/** The retries' metric, and one log line for each upstream that goes out of service or comes back. */
function observeUpstreams(metrics: Metrics, logger: Logger): UpstreamObserver {
  return {
    retry: metrics.upstreamRetry,
    changed({ url, up, reason, fault }) {
      if (up) logger.info({ upstream: url }, 'an upstream is back in service');
      else logger.error({ upstream: url, reason, fault }, 'an upstream is out of service');
    },
  };
}

/** The store's metrics, and one log line for each change between reachable and not. */
function observeStore(metrics: Metrics, logger: Logger): StoreObserver {
  let reached = false;
  return {
    called: metrics.called,
    up(up, reason) {
      metrics.up(up, reason);
      if (up) logger.info('the store is reachable');
      else if (reached)
        logger.error({ reason }, 'the store is not reachable: known keys go on, quotas by store.on_error');
      else
        logger.error({ reason }, 'the store is not reachable, and this gateway not ready until it is: see store.url');
      reached ||= up;
    },
  };
}
