/**
 * The part of a gateway for operators: the ops and admin listeners, and reloads of the config file. A gateway has one
 * control plane, however many processes serve clients.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { dirname, resolve } from 'node:path';
import { systemClock, systemScheduler } from '../base/clock.ts';
import { watchFiles } from '../base/watch-files.ts';
import type { AdminJwtConfig, Config } from '../config/config.ts';
import { digestOfFiles, readConfigFile } from '../config/config-files.ts';
import type { Environment } from '../config/environment.ts';
import { compareInThread, PREVIEW_BOUNDS, parseWithoutStall, RELOAD_BOUNDS } from '../config/parser.ts';
import { createAdminApp } from '../control/admin/admin-app.ts';
import { createAccessCounters } from '../control/admin/authorize.ts';
import type { AdminDependencies, WorkerStatus } from '../control/admin/dependencies.ts';
import { createJwtVerifier, type JwtVerifier } from '../control/admin/jwt.ts';
import { RemoteKeySet } from '../control/admin/remote-key-set.ts';
import { createOpsApp, type OpsAppParts } from '../control/ops/ops-app.ts';
import { assessReadiness } from '../control/ops/readiness.ts';
import { createPortalApp } from '../control/portal/portal-app.ts';
import { createPortalCounters } from '../control/portal/session-access.ts';
import { CustomersWithoutPlanCounter } from '../control/reload/customers-without-plan.ts';
import { createPreviewer, POSTED_FILE } from '../control/reload/preview.ts';
import { Reloader } from '../control/reload/reloader.ts';
import type { CustomerQuota } from '../customers/quota/customer-quota.ts';
import { limitOrigins, planNameOf, planNamesOf } from '../customers/quota/effective-limit.ts';
import { identifyClient } from '../edge/client-address.ts';
import { AddressBlocks } from '../formats/address-block.ts';
import { createOperatorServer } from '../http/listener/operator-server.ts';
import { listenerOf } from '../http/listener/strict-app.ts';
import { limitExpositions } from '../observability/exposition-limit.ts';
import type { Metrics } from '../observability/metrics.ts';
import { lazyPageFiles } from '../pages/files.ts';
import type { Store } from '../store/store.ts';
import { type DataPlaneStatus, openListener } from './data-plane.ts';
import { openNotices } from './notices.ts';
import type { ProcessParts } from './observed-store.ts';

const CONFIG_POLL_MS = 5000;

/** The data plane as the control plane sees it: that of this process, or those of all workers combined. */
export interface DataPlaneView
  extends Pick<AdminDependencies, 'leaseState' | 'refusals'>,
    Pick<OpsAppParts, 'publicKeys'> {
  status(): Omit<DataPlaneStatus, 'configHash'>;
  /** Empty without workers. */
  workers(): readonly WorkerStatus[];
  /** Applies a config to every data plane; or rejects, and nothing has changed. */
  applyConfig(config: Config): Promise<void>;
}

interface ControlPlaneParts extends ProcessParts {
  readonly dataPlane: DataPlaneView;
  readonly store: Store;
  readonly quota: Pick<CustomerQuota, 'limitOf' | 'hourly' | 'clock'>;
  readonly metrics: Metrics;
  /** Returns the metrics that Prometheus scrapes. */
  expose(): Promise<string>;
  /** The environment variables for reloads of the config file. */
  readonly environment: Environment;
}

export type ControlPlane = Awaited<ReturnType<typeof openControlPlane>>;

/**
 * Opens the ops listener and, if configured, the admin listener.
 * @throws Error when an address is in use.
 */
export async function openControlPlane(config: Config, parts: ControlPlaneParts) {
  const { dataPlane, store, quota, metrics, log, clock, version, startedAtMs, environment } = parts;
  const { logger } = log;
  await using opened = new AsyncDisposableStack();
  const readers = { records: store.records, usages: store.usages, limitClock: quota.clock };
  let draining = false;

  const opsApp = createOpsApp({
    metrics: limitExpositions(parts.expose, systemClock, systemScheduler),
    readiness: () => {
      const { store, announced, upstreams } = dataPlane.status();
      return assessReadiness({
        draining,
        store: { ...store, reached: store.reached !== false && announced },
        backendsUp:
          config.backends.size === 0 ||
          (upstreams.length > 0 &&
            [...Map.groupBy(upstreams, ({ backend }) => backend).values()].every((of) => of.some(({ up }) => up))),
      });
    },
    publicKeys: () => dataPlane.publicKeys(),
    logger,
  });
  const openServer = (name: 'ops' | 'admin' | 'portal', app: Parameters<typeof listenerOf>[0]) =>
    openListener(createOperatorServer(listenerOf(app), clock, opened), name, config, opened);
  const opsUrl = await openServer('ops', () => opsApp);

  const reloader = new Reloader({
    running: config,
    runningSinceMs: startedAtMs,
    read: () => readConfigFile(config.file),
    digestOf: digestOfFiles,
    parse: (content, signal) =>
      parseWithoutStall({ file: config.file, content, environment }, { ...RELOAD_BOUNDS, signal }),
    async apply(next) {
      const nextApps = openApps(next);
      await dataPlane.applyConfig(next);
      ({ adminApp, portalApp } = nextApps);
      notices.applyConfig(next);
      withoutPlan.start(next);
    },
    ...readers,
    metrics,
    logger,
    clock,
  });
  const notices = openNotices(config, parts, opened);
  const withoutPlan = new CustomersWithoutPlanCounter({
    records: store.records,
    counted: metrics.customersWithoutPlanCounted,
    logger,
    scheduler: systemScheduler,
  });
  opened.defer(() => withoutPlan.close());
  const closing = new AbortController();
  opened.defer(() => closing.abort());
  const folder = dirname(resolve(config.file));
  const preview = createPreviewer({
    running: () => reloader.running,
    compare: (content, running) =>
      compareInThread({ file: POSTED_FILE, content, environment, folder }, running, {
        ...PREVIEW_BOUNDS,
        signal: closing.signal,
      }),
    ...readers,
  });
  const adminJwt = config.admin?.jwt && openAdminJwt(config.admin.jwt, parts, opened);
  const pageFiles = lazyPageFiles('console');
  const portalFiles = lazyPageFiles('portal');
  const adminCounters = createAccessCounters(clock);
  const portalCounters = createPortalCounters(clock);
  let { adminApp, portalApp } = openApps(config);
  const adminUrl = config.admin && (await openServer('admin', () => adminApp));
  const portalUrl = config.portal && (await openServer('portal', () => portalApp ?? neverListening()));

  function openApps(config: Config) {
    const { host = '', allowedHosts = [] } = config.admin ?? {};
    const { portal } = config;
    const [keyHeader = ''] = config.auth.keyHeaders;
    const trust = { trustedProxies: new AddressBlocks(config.listen.trustedProxies), trustForwardedHost: false };
    const clientAddress = (req: IncomingMessage) => identifyClient(req, trust).address;
    const dependencies: AdminDependencies = {
      portal,
      portalSessions: store.portalSessions,
      names: { host, allowedHosts },
      metrics,
      token: config.admin?.token,
      jwt: adminJwt,
      ...readers,
      keyUses: store.keyUses,
      notifySecrets: store.notifySecrets,
      maintenance: store.maintenance,
      audit: store.audit,
      planNames: new Set(config.plans.keys()),
      routes: config.routes,
      currentPlan: (plan) => planNameOf(plan, config),
      planNamesOf: (plan) => planNamesOf(plan, config),
      effectiveLimit: (customer) => quota.limitOf(customer),
      // From the last file read: an edit that changes no value may move lines.
      limitOrigins: (customer, limit) => limitOrigins(customer, limit, reloader.running.limitOrigins),
      runningConfig: () => config.disclosed,
      runningFile: () => reloader.running.disclosedFile,
      reload: () => reloader.reload('admin'),
      preview,
      announced: () => store.announced(),
      failedRequests: store.failedRequests,
      failedRequestHours: config.requests?.hours,
      notices: store.notices,
      testNotices: (customer) => notices.test(customer),
      history: store.usageHistory,
      periods: store.periods,
      usage: (customer, limits) => quota.hourly.usage(customer, limits),
      leaseState: (customer) => dataPlane.leaseState(customer),
      refusals: (customer) => dataPlane.refusals(customer),
      status: () => {
        const { store, instances, upstreams, maintenance } = dataPlane.status();
        return {
          version,
          startedAtMs,
          uptimeSeconds: (clock.nowMs() - startedAtMs) / 1000,
          config: {
            file: config.file,
            hash: reloader.running.hash,
            loadedAtMs: reloader.loadedAtMs,
            lastReload: reloader.last,
          },
          store,
          maintenance,
          instances,
          notices: notices.counts(),
          customersWithoutPlan: withoutPlan.last,
          check: config.check && {
            address: `${isIPv6(config.check.host) ? `[${config.check.host}]` : config.check.host}:${config.check.port}`,
            hasToken: config.check.token !== undefined,
          },
          upstreams,
          workers: dataPlane.workers(),
        };
      },
      pageFiles,
      logger,
      clock,
      randomBytes,
    };
    const { token: _, jwt: __, ...shared } = dependencies;
    return {
      adminApp: createAdminApp(dependencies, adminCounters),
      portalApp:
        portal &&
        createPortalApp({ ...shared, portal, keyHeader, pageFiles: portalFiles, clientAddress }, portalCounters),
    };
  }

  withoutPlan.start(config);

  const running = opened.move();
  return {
    addresses: { ops: opsUrl, admin: adminUrl, portal: portalUrl },
    reloader,
    /** Starts watching the config file. Resolves after the first check of it. */
    async watchConfigFile() {
      running.defer(() => reloader.close());
      const watch = new AbortController();
      running.defer(() => watch.abort());
      // The first check also records the file's current content, to recognise a truncated version of it later.
      await watchFiles({
        files: [config.file],
        pollMs: CONFIG_POLL_MS,
        check: () => reloader.reload('noticed'),
        onUnwatched: (error) =>
          logger.warn({ err: error }, 'the folder of the config file is not watched: the file is checked every 5 s'),
        signal: watch.signal,
      });
    },
    /** Makes the gateway not ready from now on. */
    drain() {
      draining = true;
    },
    close: () => running.disposeAsync(),
  };
}

function neverListening(): never {
  throw new Error('there is no portal, and only a restart adds one');
}

function openAdminJwt(
  jwt: AdminJwtConfig,
  { clock, log }: ControlPlaneParts,
  opened: AsyncDisposableStack,
): JwtVerifier {
  const keys = new RemoteKeySet({ url: jwt.jwksUrl, clock, scheduler: systemScheduler, logger: log.logger });
  opened.defer(() => keys.close());
  keys.start();
  return createJwtVerifier({ issuer: jwt.issuer, audience: jwt.audience, clock, keyFor: keys.keyFor });
}
