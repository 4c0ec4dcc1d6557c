/** A gateway with customers as an operator would find them: near their limits, refused, suspended, with old keys. */
import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import { freePort } from '../../../../bench/free-port.ts';
import { startSampleBackend } from '../../../../demo/sample-backend/sample-backend.ts';
import { openStore } from '../../../../src/store/open/open-store.ts';
import { redisKeyNames } from '../../../../src/store/redis/protocol/key-names.ts';
import { DAY_MS, dayName, HOUR_MS, hourName } from '../../../../src/store/usage-history.ts';
import { bearer, callAdmin, createKey } from '../../../support/admin.ts';
import { type StoreKind, startTestGateway, type TestGateway } from '../../../support/gateway.ts';
import { silent } from '../../../support/silent.ts';

interface SampleCustomer {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
  readonly requests_per_hour?: number;
  /** Sent to the public listener now. */
  readonly requests?: number;
}

/** Their history is invented: some requests an hour, more at noon, for the last 35 days. */
const SAMPLE_CUSTOMERS: readonly SampleCustomer[] = [
  { id: 'globex', name: 'Globex Corporation', plan: 'professional', requests_per_hour: 50, requests: 47 },
  { id: 'initech', name: 'Initech', plan: 'starter', requests_per_hour: 20, requests: 26 },
  { id: 'hooli', name: 'Hooli', plan: 'enterprise', requests_per_hour: 60, requests: 52 },
  { id: 'acme', name: 'Acme Logistics GmbH & Co. KG', plan: 'business', requests: 12 },
  { id: 'stark', name: 'Stark Industries', plan: 'professional', requests: 3 },
  { id: 'umbrella', name: 'Umbrella', plan: 'starter' },
];
/** Enough for a second page of 100. */
const MANY = 120;
const MANY_PLANS = ['starter', 'professional', 'business'];

export interface Sample {
  readonly gateway: TestGateway;
  /** The origin of the console. */
  readonly origin: string;
  /** API keys by customer. */
  readonly keys: ReadonlyMap<string, string>;
  close(): Promise<void>;
}

export async function startSample(kind: StoreKind): Promise<Sample> {
  const store = await kind.start();
  await createTables(store.url);
  await writeHistory(store.url);
  const backend = await startSampleBackend({ host: '127.0.0.1', port: 0 });
  const portalPort = await freePort();
  const gateway = await startTestGateway({
    storeUrl: store.url,
    upstreamUrl: backend.url.origin,
    config: {
      portal: {
        host: '127.0.0.1',
        port: portalPort,
        public_url: `http://127.0.0.1:${portalPort}`,
        title: 'Conversations API',
        support_url: 'https://example.com/support',
      },
    },
  });
  const keys = new Map<string, string>();
  for (const { requests: _sent, ...customer } of SAMPLE_CUSTOMERS) {
    await change(gateway, '/admin/v1/customers', customer);
    keys.set(customer.id, await createKey(gateway, customer.id));
  }
  for (let i = 0; i < MANY; i++) {
    const id = `customer-${String(i).padStart(3, '0')}`;
    await change(gateway, '/admin/v1/customers', {
      id,
      name: `Customer ${i}`,
      plan: MANY_PLANS[i % MANY_PLANS.length],
    });
  }
  const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
  await change(gateway, '/admin/v1/customers/stark/keys', { name: 'Expires soon', expires_at: inDays(3) });
  await change(gateway, '/admin/v1/customers/stark/keys', { name: 'Never used' });
  await change(gateway, '/admin/v1/customers/umbrella', { suspended: true }, 'PATCH');
  for (const { id, requests = 0 } of SAMPLE_CUSTOMERS) await sendRequests(gateway, keys.get(id) ?? '', requests);
  await sendRequests(gateway, keys.get('umbrella') ?? '', 2);
  return {
    gateway,
    origin: gateway.admin ?? '',
    keys,
    async close() {
      await gateway.close();
      await backend.close();
      await store.close();
    },
  };
}

async function change(gateway: TestGateway, path: string, body: object, method = 'POST'): Promise<void> {
  const { status, body: response } = await callAdmin(gateway, path, { method, body });
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(response)}`);
}

/** Sends requests to the public listener. Any answer will do. */
export async function sendRequests({ public: origin }: Pick<TestGateway, 'public'>, key: string, count: number) {
  for (let i = 0; i < count; i++) {
    const response = await fetch(`${origin}/v1/conversations?limit=1`, { headers: bearer(key) });
    await response.arrayBuffer();
  }
}

interface InventedHour {
  readonly customer: string;
  readonly plan: string;
  readonly atMs: number;
  readonly requests: number;
  readonly refused: number;
}

function inventedHours(): InventedHour[] {
  const thisHourMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  return SAMPLE_CUSTOMERS.flatMap(({ id, plan, requests_per_hour: limit = 1000 }, at) =>
    Array.from({ length: 35 * 24 - 1 }, (_, ago): InventedHour => {
      const atMs = thisHourMs - (ago + 1) * HOUR_MS;
      const hour = new Date(atMs).getUTCHours();
      const share = 0.5 + 0.45 * Math.sin(((hour - 6) / 24) * 2 * Math.PI) + 0.05 * Math.sin(ago * (at + 2));
      const wanted = Math.max(0, Math.round(limit * share * (id === 'initech' ? 1.15 : 0.8)));
      return { customer: id, plan, atMs, requests: Math.min(wanted, limit), refused: Math.max(0, wanted - limit) };
    }),
  );
}

/** Writes the history where the store keeps it: the gateway itself counts the current hour only. */
async function writeHistory(url: string): Promise<void> {
  if (url.startsWith('sqlite:')) await writeToSqlite(url);
  else await writeToRedis(url);
}

/** Opening a store creates its tables. */
async function createTables(url: string): Promise<void> {
  const settings = { url, keyPrefix: 'tollgate', timeoutMs: 5000, usage: { hoursDays: 35, days: 400 } };
  const store = await openStore(settings, silent);
  await store.close();
}

async function writeToRedis(url: string): Promise<void> {
  const redis = new Redis(url, { protocol: 2 });
  const names = redisKeyNames('tollgate');
  const pipeline = redis.pipeline();
  for (const { customer, plan, atMs, requests, refused } of inventedHours()) {
    const [day, hour] = [dayName(atMs), hourName(atMs)];
    pipeline.hset(names.usageDay(customer, day), hour, requests);
    pipeline.hincrby(names.usageYear(customer, day.slice(0, 4)), day.slice(4), requests);
    pipeline.hincrby(names.usageTotal(day), `${hour}:${plan}:requests`, requests);
    if (refused === 0) continue;
    pipeline.hset(names.usageDay(customer, day), `${hour}:quota_exceeded`, refused);
    pipeline.hincrby(names.usageTotal(day), `${hour}:${plan}:refused`, refused);
  }
  await pipeline.exec();
  redis.disconnect();
}

async function writeToSqlite(url: string): Promise<void> {
  const database = new DatabaseSync(url.slice('sqlite:'.length));
  const upsert = (table: string, columns: string, last: string) =>
    database.prepare(
      `INSERT INTO ${table} (${columns}, ${last}) VALUES (${columns.replaceAll(/\w+/g, '?')}, ?)
       ON CONFLICT DO UPDATE SET ${last} = ${last} + excluded.${last}`,
    );
  const hours = upsert('usage_hour', 'customer, hour, code', 'count');
  const days = upsert('usage_day', 'customer, day', 'units');
  const totals = upsert('usage_total', 'hour, plan, what', 'count');
  database.exec('BEGIN');
  for (const { customer, plan, atMs, requests, refused } of inventedHours()) {
    const hour = atMs / HOUR_MS;
    hours.run(customer, hour, '', requests);
    days.run(customer, Math.floor(atMs / DAY_MS), requests);
    totals.run(hour, plan, 'requests', requests);
    if (refused === 0) continue;
    hours.run(customer, hour, 'quota_exceeded', refused);
    totals.run(hour, plan, 'refused', refused);
  }
  database.exec('COMMIT');
  database.close();
}
