/**
 * The composition root: builds every part from the configuration, passes it what it depends on, and closes all in the
 * reverse order. Nothing else in the program creates a part that another part uses.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { createAdminApp } from './admin/admin-app.ts';
import { type Clock, systemClock } from './clock.ts';
import type { Config } from './config/config.ts';
import { TrustedProxies } from './edge/client-address.ts';
import { createChallenges } from './edge/credentials.ts';
import { createDrain } from './edge/drain.ts';
import { createPublicApp, OWN_ANSWER_NAMES } from './edge/public-app.ts';
import { createPublicServer } from './edge/public-server.ts';
import { createRecorder } from './edge/recorder.ts';
import { createRouteTable } from './edge/routes.ts';
import { createAuthenticator } from './keys/authenticator.ts';
import { listen } from './listen.ts';
import { createAccessLog } from './observability/access-log.ts';
import { openLogStream } from './observability/log-stream.ts';
import { createLogger, type LogDestination, type Logger } from './observability/logger.ts';
import { createMetrics, type Metrics } from './observability/metrics.ts';
import { createOpsApp } from './ops/ops-app.ts';
import { assessReadiness } from './ops/readiness.ts';
import { createHourlyQuota } from './quota/hourly-quota.ts';
import { effectiveLimit } from './quota/limit.ts';
import { startSampleBackend } from './sample-backend/sample-backend.ts';
import { seed } from './seed.ts';
import { openStore } from './store/open-store.ts';
import type { StoreObserver } from './store/store.ts';
import { createForwarder } from './upstream/forwarder.ts';
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
  /** Stops being ready, lets requests finish within `shutdown.drain_ms`, then closes everything. */
  close(): Promise<void>;
}

/** What tests put in place of the real thing. */
export interface GatewayOverrides {
  readonly clock?: Clock;
  /** Gets every log line; left out: standard output. */
  readonly logDestination?: LogDestination;
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

  const logger = createLogger({ level: config.logging.level, destination: openLog(opened, overrides.logDestination) });
  const metrics = createMetrics({
    version,
    configHash: config.hash,
    configLoadedAtMs: startedAtMs,
    defaultMetrics: true,
  });
  const accessLog = createAccessLog(logger, config.logging.access);
  const recorder = createRecorder({ metrics, accessLog, logger, clock });

  const store = await openStore(config.store, {
    clock,
    observer: observeStore(metrics, logger),
    warn: (message) => logger.warn(message),
  });
  opened.defer(() => store.close());
  if (config.seed) await seed(config.seed.customers, store.records, new Date(startedAtMs).toISOString());

  const upstreamUrl = await openUpstream(config, opened);
  const forwarder = createForwarder({
    ...config.upstream,
    url: upstreamUrl,
    maxHeaderBytes: config.limits.headerBytes,
    ownAnswerNames: OWN_ANSWER_NAMES,
    clock,
  });
  opened.defer(() => forwarder.close());

  const quota = createHourlyQuota({ windows: store.windows, clock, timeoutMs: config.store.timeoutMs });
  let draining = false;

  const opsApp = createOpsApp({
    metrics,
    readiness: () => assessReadiness({ configLoaded: true, draining, store: store.status() }),
    logger,
  });
  const opsUrl = await open(opened, createServer(opsApp), 'ops', config.ops);

  const adminUrl =
    config.admin && (await open(opened, createServer(openAdmin(config.admin.token)), 'admin', config.admin));

  function openAdmin(token: string | undefined) {
    return createAdminApp({
      token,
      records: store.records,
      effectiveLimit: (customer) => effectiveLimit(customer, config),
      usage: quota.usage,
      status: () => ({
        version,
        startedAtMs,
        uptimeSeconds: (clock.nowMs() - startedAtMs) / 1000,
        config: { file: config.file, hash: config.hash, loadedAtMs: startedAtMs },
        store: store.status(),
        upstream: { url: upstreamUrl.origin },
      }),
      logger,
      clock,
      randomBytes,
    });
  }

  const publicApp = createPublicApp({
    routes: createRouteTable(config.routes, config.aliases),
    guardLimits: config.limits,
    challenges: createChallenges(config.auth.realm),
    trustedProxies: new TrustedProxies(config.listen.trustedProxies),
    authenticator: createAuthenticator(store.records, clock),
    limits: config,
    quota,
    forwarder,
    upstreamHeaders: config.upstream,
    identityHeaders: config.identity.headers,
    recorder,
    clock,
  });
  const publicServer = createPublicServer(
    publicApp,
    { ...config.limits, keepAliveTimeoutMs: config.listen.keepAliveTimeoutMs },
    recorder.unparsed,
  );
  const drain = createDrain(publicServer);
  const publicUrl = await open(opened, publicServer, 'listen', config.listen);
  const addresses: GatewayAddresses = { public: publicUrl, ops: opsUrl, admin: adminUrl };
  logger.info({ version, config: config.file, config_hash: config.hash, ...addresses }, 'tollgate started');

  const running = opened.move();
  return {
    addresses,
    async close() {
      draining = true;
      logger.info({ ...config.shutdown }, 'tollgate stops: not ready any more, then drains');
      drain.begin();
      await setTimeout(config.shutdown.notReadyMs);
      await drain.finish(config.shutdown.drainMs);
      logger.info('tollgate stopped');
      await running.disposeAsync();
    },
  };
}

/** Binds a listener that goes down with the rest. */
async function open(
  opened: AsyncDisposableStack,
  server: Server,
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

function openLog(opened: AsyncDisposableStack, given: LogDestination | undefined): LogDestination {
  if (given) return given;
  const destination = openLogStream(process.stdout);
  opened.defer(() => destination.close());
  return destination;
}

/** The backend's origin; starts the bundled one where the configuration asks for it. */
async function openUpstream({ upstream }: Config, opened: AsyncDisposableStack): Promise<URL> {
  if (upstream.target.kind === 'url') return new URL(upstream.target.url);
  const backend = await startSampleBackend({ host: '127.0.0.1', port: 0 });
  opened.defer(() => backend.close());
  return backend.url;
}

/** The store's metrics, and one log line for each change between reachable and not. */
function observeStore(metrics: Metrics, logger: Logger): StoreObserver {
  return {
    called: metrics.called,
    up(up, reason) {
      metrics.up(up, reason);
      if (up) logger.info('the store is reachable');
      else logger.error({ reason }, 'the store is not reachable: keys and quotas cannot be checked');
    },
  };
}
