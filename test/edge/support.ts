import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { Authentication } from '../../src/customers/keys/authenticator.ts';
import { NEVER_NOTED } from '../../src/customers/keys/key-uses.ts';
import { BurstLimiter } from '../../src/customers/quota/burst.ts';
import { ConcurrencyLimiter } from '../../src/customers/quota/concurrency.ts';
import { CustomerQuota } from '../../src/customers/quota/customer-quota.ts';
import { ceilingOf } from '../../src/customers/quota/key-ceiling.ts';
import type { LeasedQuota } from '../../src/customers/quota/leased-quota.ts';
import { RecentUsage } from '../../src/customers/quota/recent-usage.ts';
import { createKeyHeaders } from '../../src/edge/credentials.ts';
import { createPublicApp, OWN_HEADER_NAMES, type PublicAppParts } from '../../src/edge/public-app.ts';
import { createRecorder } from '../../src/edge/recorder.ts';
import { createRouteTable } from '../../src/edge/routes.ts';
import type { PublicSettings } from '../../src/edge/settings.ts';
import { AddressBlocks } from '../../src/formats/address-block.ts';
import type { KeyRestrictions } from '../../src/formats/key-restrictions.ts';
import { FailedAttempts } from '../../src/http/listener/failed-attempts.ts';
import type { AccessRecord } from '../../src/observability/access-log.ts';
import { createLogger } from '../../src/observability/logger.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import type { CustomerRecord } from '../../src/store/record-fields.ts';
import { Backends } from '../../src/upstream/backends.ts';
import { createForwarder } from '../../src/upstream/forwarder.ts';
import { headerPolicy } from '../../src/upstream/request-headers.ts';
import { type Backend, startBackend } from '../support/backend.ts';

const CONNECTIONS = {
  balance: 'least_loaded',
  connectTimeoutMs: 5000,
  maxConnections: 8,
  maxConnectionsPerCustomer: 8,
  responseHeaderBytes: 16_384,
} as const;

const PLANS = new Map([['starter', { requestsPerHour: 1000 }]]);

export interface Edge {
  /** Asks for the conversations. */
  send(key: string, headers?: Record<string, string>): Promise<Response>;
  readonly backend: Backend;
  readonly accessRecords: readonly AccessRecord[];
  /** Units of quota that are taken: those given back are not among them. */
  unitsTaken(): number;
}

export interface EdgeSettings {
  /** What is known of a token; of any other one nothing. */
  readonly known?: Readonly<Record<string, Authentication>>;
  readonly parts?: Partial<PublicAppParts>;
  readonly settings?: Partial<PublicSettings>;
  /** What a key needs for the route. */
  readonly scope?: string | undefined;
  /** The quota waits for it, as for a reply of the store. */
  readonly storeReply?: () => Promise<void>;
}

/** What the authenticator says of a good key. */
export function goodKey(
  keyId: string,
  customer: Partial<CustomerRecord> = {},
  restrictions: KeyRestrictions = {},
): Authentication {
  const record = { id: 'acme', plan: 'starter', suspended: false, ...customer };
  const key = { id: keyId, customer: record.id, ...restrictions };
  const addresses = restrictions.allowedAddresses && new AddressBlocks(restrictions.allowedAddresses);
  const use = { sha256: keyId, flushesWhenNoted: NEVER_NOTED };
  return {
    outcome: 'known',
    key,
    expiresAtMs: undefined,
    addresses,
    ceiling: ceilingOf(key),
    customer: record,
    ...use,
  };
}

/**
 * The public app with a real backend behind it. What it knows of keys is given, and its quota admits everything: both have
 * tests of their own. Closed when the test that called this ends.
 */
export async function startEdge({
  known = {},
  parts = {},
  settings = {},
  scope,
  storeReply,
}: EdgeSettings): Promise<Edge> {
  const clock = systemClock;
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const backends = new Backends({ maxInFlight: () => 100, observer: { changed() {}, retry() {} }, clock });
  backends.apply(new Map([['default', { ...CONNECTIONS, urls: [backend.url] }]]));
  onTestFinished(() => backends.close());
  const destination = {
    backend: backends.get('default'),
    responseTimeoutMs: 5000,
    idleTimeoutMs: 5000,
    headers: headerPolicy({ credentials: 'strip', preserveHost: false }, ['Authorization']),
    audience: backend.url,
  };
  const forward = { purpose: 'forward', maxBodyBytes: 0, scope, destination } as const;
  const forwarder = createForwarder({ ownHeaderNames: OWN_HEADER_NAMES, clock });
  let unitsTaken = 0;
  const admission = () => {
    unitsTaken++;
    return {
      outcome: 'admitted' as const,
      mode: 'lease' as const,
      remaining: () => 1,
      beginDeadlineMs: clock.monotonicMs() + 5000,
      beginDeadlineWallMs: clock.nowMs() + 5000,
      settle: (isUsed: boolean) => {
        if (!isUsed) unitsTaken--;
      },
      resetSeconds: () => 1,
    };
  };
  const hourly = {
    admit: () => (storeReply === undefined ? admission() : storeReply().then(admission)),
    usage: () => Promise.reject(new Error('no test asks for it')),
    admitted: () => 0,
    secondsWithoutUnits: () => 0,
    leaseState: () => ({ leases: [], refusedForMs: undefined }),
    highestUsage: () => [],
    close: async () => {},
  };
  const accessRecords: AccessRecord[] = [];
  const log = { write: () => {} };
  const logger = createLogger({ level: 'info', destination: log });
  const metrics = createMetrics({
    version: '1.2.3',
    running: { hash: 'abc123', loadedAtMs: 0 },
    storeStatus: () => ({ up: true, reached: true, wiped: false, empty: false, evicted: false, refusing: false }),
    upstreams: () => [],
    highestUsage: () => [],
    maintenance: () => undefined,
    droppedLogLines: () => 0,
    defaultMetrics: false,
  });
  const app = createPublicApp({
    settings: {
      current: {
        routes: createRouteTable([{ ...forward, path: '/api/v1/conversations', methods: ['GET', 'HEAD'] }], new Map()),
        guardLimits: { headerBytes: 16_384, headerCount: 100, targetBytes: 8192 },
        requestTimeoutMs: 30_000,
        bodyStallTimeoutMs: 30_000,
        maxInFlight: 100,
        keyHeaders: createKeyHeaders(['Authorization'], 'conversations'),
        trustedProxies: new AddressBlocks([]),
        trustForwardedHost: false,
        failedKeys: new FailedAttempts(clock, 300),
        browserKeys: 'warn',
        identityHeaders: true,
        ...settings,
      },
    },
    authenticator: {
      authenticate: (token) => known[token] ?? { outcome: 'invalid', reason: 'unknown' },
      authenticateSha256: (sha256) =>
        Object.values(known).find((key) => 'sha256' in key && key.sha256 === sha256) ?? {
          outcome: 'invalid',
          reason: 'unknown',
        },
    },
    keyUses: { note: () => {} },
    maintenance: { of: () => undefined },
    quota: new CustomerQuota({
      limits: { plans: PLANS, formerPlans: new Map(), overrides: new Map() },
      clock,
      hourly: hourly as unknown as LeasedQuota,
      bursts: new BurstLimiter(clock, 100),
      concurrency: new ConcurrencyLimiter(),
      recentUsage: new RecentUsage({ hourly, storeIsUp: () => true, clock, customers: 100 }),
    }),
    forwarder,
    connections: {
      closeReasonOf: () => undefined,
      isSurplus: () => false,
      overloadDelayMs: () => 0,
      abortResponse: ({ socket }) => void socket?.resetAndDestroy(),
    },
    recorder: createRecorder({
      metrics,
      accessLog: { write: (record) => void accessRecords.push(record) },
      refusals: { note: () => {} },
      failedRequests: { note: () => {} },
      logger,
      clock,
    }),
    clock,
    ...parts,
  });
  const server = createServer(app).listen(0, '127.0.0.1');
  await new Promise<void>((resolve) => server.once('listening', () => resolve()));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/conversations`;
  return {
    send: (key, headers = {}) => fetch(url, { headers: { ...headers, authorization: `Bearer ${key}` } }),
    backend,
    accessRecords,
    unitsTaken: () => unitsTaken,
  };
}
