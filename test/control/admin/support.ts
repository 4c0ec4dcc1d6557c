import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { parseConfig } from '../../../src/config/load.ts';
import { compareInThread, PREVIEW_BOUNDS } from '../../../src/config/parser.ts';
import { createAdminApp } from '../../../src/control/admin/admin-app.ts';
import type { AdminDependencies } from '../../../src/control/admin/dependencies.ts';
import { createPreviewer } from '../../../src/control/reload/preview.ts';
import {
  effectiveLimit,
  limitOrigins,
  type PlanPolicy,
  planNameOf,
  planNamesOf,
} from '../../../src/customers/quota/effective-limit.ts';
import { createLogger } from '../../../src/observability/logger.ts';
import { lazyPageFiles } from '../../../src/pages/files.ts';
import { openStore } from '../../../src/store/open/open-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { silent } from '../../support/silent.ts';
import { createStoreFile } from '../../support/store-file.ts';

export const TOKEN = 'the-admin-token';
export const NOW = '2026-03-01T12:00:00.000Z';

const POLICY = {
  plans: new Map<string, PlanPolicy>([
    ['starter', { requestsPerHour: 1000 }],
    ['enterprise', { requestsPerHour: 'custom' }],
    ['monthly', { requestsPerHour: 1000, period: { per: 'month', requests: 50_000, beyond: 'refuse' } }],
    ['metered', { requestsPerHour: 1000, period: { per: 'month', requests: 'custom', beyond: 'allow' } }],
  ]),
  formerPlans: new Map([['beginner', 'starter']]),
  overrides: new Map([['vip', { requestsPerHour: 120_000 }]]),
};

const ORIGINS = {
  plans: new Map([
    ['starter', 'gateway.yaml:41'],
    ['enterprise', 'gateway.yaml:44'],
  ]),
  overrides: new Map([['vip', 'gateway.yaml:50']]),
  periods: { plans: new Map(), overrides: new Map() },
};

/** What previews compare with. */
export const CONFIG_TEXT = `store: { url: "redis://127.0.0.1" }
upstream: { urls: ["http://127.0.0.1:3000"] }
plans: { starter: { requests_per_hour: 1000 }, enterprise: { requests_per_hour: custom } }
`;
const RUNNING = await parseConfig('gateway.yaml', Buffer.from(CONFIG_TEXT), {});

/** An answer's body, as far as the tests look into it. */
// biome-ignore lint/suspicious/noExplicitAny: the tests compare members of every type, and a wrong one fails them
export type JsonAnswer = any;

export interface TestAdmin {
  readonly origin: string;
  readonly store: Store;
  readonly records: Store['records'];
  readonly logs: string[];
  call(method: string, path: string, body?: unknown): Promise<{ status: number; headers: Headers; body: JsonAnswer }>;
  /** All items of all pages. */
  list(path: string): Promise<JsonAnswer[]>;
  /** Lets so much time pass for the admin listener. */
  advance(ms: number): void;
  close(): Promise<void>;
}

/** Where records are kept; left out: an embedded store of its own. */
interface StorePlace {
  readonly url: string;
  readonly keyPrefix: string;
}

export type StartAdmin = (overrides?: Partial<AdminDependencies>) => Promise<TestAdmin>;

/** Runs a suite over each store. What `start` gives has an empty one, and is closed by the suite. */
export function overBothStores(suite: (start: StartAdmin) => void): void {
  describe('over the embedded store', () => suite((overrides) => startAdmin(overrides)));
  describe('over Redis', () => {
    let redis: RedisServer;
    let started = 0;
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(() => redis.stop());
    suite((overrides) => {
      started += 1;
      return startAdmin(overrides, { url: redis.url, keyPrefix: `test-${started}` });
    });
  });
}

/** The admin listener at a time that stands still unless it is advanced. */
export async function startAdmin(overrides: Partial<AdminDependencies> = {}, place?: StorePlace): Promise<TestAdmin> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-admin-'));
  const { url, keyPrefix } = place ?? { url: createStoreFile(folder), keyPrefix: 'test' };
  let nowMs = Date.parse(NOW);
  const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const store = await openStore({ url, keyPrefix, timeoutMs: 5000, usage: { hoursDays: 35, days: 400 } }, silent);
  const logs: string[] = [];
  const app = createAdminApp({
    token: TOKEN,
    records: store.records,
    keyUses: store.keyUses,
    notifySecrets: store.notifySecrets,
    portal: { host: '127.0.0.1', port: 0, publicUrl: 'https://keys.example.com', title: 'API', maxKeys: 20 },
    portalSessions: store.portalSessions,
    history: store.usageHistory,
    maintenance: store.maintenance,
    routes: [{ path: '/api/v1/conversations', methods: ['GET'], units: 1, key: 'required', upstream: 'default' }],
    audit: store.audit,
    failedRequests: store.failedRequests,
    failedRequestHours: 24,
    metrics: { adminRequest() {} },
    names: { host: '127.0.0.1', allowedHosts: [] },
    planNames: new Set(POLICY.plans.keys()),
    currentPlan: (plan) => planNameOf(plan, POLICY),
    planNamesOf: (plan) => planNamesOf(plan, POLICY),
    effectiveLimit: (customer) => effectiveLimit(customer, POLICY, clock),
    limitClock: clock,
    limitOrigins: (customer, limit) => limitOrigins(customer, limit, ORIGINS),
    runningConfig: () => ({ listen: { port: 8080 }, plans: {}, auth: { key_headers: ['Authorization'] } }),
    runningFile: () => ({ plans: {} }),
    reload: async () => ({ result: 'unchanged', hash: 'abc123', changes: [], problems: [], warnings: [] }),
    preview: createPreviewer({
      limitClock: clock,
      running: () => RUNNING,
      compare: (content, running) =>
        compareInThread({ file: '(posted)', content, environment: {}, folder: '/' }, running, PREVIEW_BOUNDS),
      records: overrides.records ?? store.records,
      usages: store.usages,
    }),
    leaseState: () => ({ leases: [{ units: 7, endsInMs: 432 }], refusedForMs: undefined }),
    refusals: () => [
      {
        customer: 'acme',
        code: 'quota_exceeded',
        count: 3,
        firstAtMs: Date.parse(NOW) - 60_000,
        lastAtMs: Date.parse(NOW),
        keyId: 'k',
      },
    ],
    usages: store.usages,
    periods: store.periods,
    notices: store.notices,
    testNotices: async () => [{ endpoint: 'https://hooks.example/', result: 'delivered', reason: null }],
    usage: async (_customer, [{ amount: limit }]) => ({
      limit,
      used: 3,
      remaining: limit - 3,
      resetSeconds: 41,
      windowSeconds: 3600,
    }),
    announced: () => store.announced(),
    status: () => ({
      version: '1.2.3',
      startedAtMs: Date.parse('2026-03-01T11:00:00Z'),
      uptimeSeconds: 3600.7,
      config: {
        file: 'gateway.yaml',
        hash: 'abc123',
        loadedAtMs: Date.parse('2026-03-01T11:30:00Z'),
        lastReload: undefined,
      },
      store: store.status(),
      workers: [],
      instances: 3,
      notices: { pending: 2, dead: 1 },
      maintenance: undefined,
      customersWithoutPlan: { customers: 0, plans: [] },
      check: { address: '127.0.0.1:8084', hasToken: true },
      upstreams: [
        {
          backend: 'default',
          url: 'http://conversations:3000',
          up: false,
          reason: 'unreachable',
          fault: 'connect ECONNREFUSED',
        },
      ],
    }),
    pageFiles: lazyPageFiles('console'),
    logger: createLogger({ level: 'info', destination: { write: (line) => void logs.push(line) } }),
    clock,
    randomBytes: (size) => randomBytes(size),
    ...overrides,
  });
  const server = createServer(app);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const call: TestAdmin['call'] = async (method, path, body) => {
    const answer = await fetch(origin + path, {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: text === '' ? undefined : JSON.parse(text) };
  };
  return {
    origin,
    store,
    records: store.records,
    logs,
    call,
    async list(path) {
      const items: JsonAnswer[] = [];
      for (let next: string | null = path; next !== null; ) {
        const { status, body }: { status: number; body: JsonAnswer } = await call('GET', next);
        if (status !== 200) throw new Error(`${next} is ${status}: ${body?.detail}`);
        items.push(...body.items);
        const url: URL = new URL(path, origin);
        url.searchParams.set('cursor', body.next_cursor);
        next = body.next_cursor === null ? null : url.pathname + url.search;
      }
      return items;
    },
    advance(ms) {
      nowMs += ms;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}
