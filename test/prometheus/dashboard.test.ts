import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { bearer, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { createCertificate } from '../support/certificates.ts';
import { EMBEDDED_STORE, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { dashboardQueries, readAlerts } from './files.ts';
import { type PrometheusServer, startPrometheus } from './prometheus-server.ts';

/** Rates over so long; a target is scraped once a second. */
const RATE_INTERVAL = '30s';
const DATA_DEADLINE_MS = 120_000;

const answer: RequestListener = (req, res) => {
  if (req.url?.endsWith('/broken')) res.writeHead(500).end();
  else if (req.url?.endsWith('/reset')) res.destroy();
  else res.writeHead(200, { 'Content-Type': 'application/json' }).end('{"data":[]}');
};

async function startGateway(config: Record<string, Record<string, unknown>>): Promise<TestGateway> {
  const store = await EMBEDDED_STORE.start();
  onTestFinished(() => store.close());
  const backend = await startBackend(answer);
  onTestFinished(() => backend.close());
  const gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url, config });
  onTestFinished(() => gateway.close());
  return gateway;
}

async function startGatewayWithTls(): Promise<TestGateway> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-tls-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const { cert, key } = createCertificate();
  const tls = { cert_file: join(folder, 'cert.pem'), key_file: join(folder, 'key.pem') };
  await writeFile(tls.cert_file, cert);
  await writeFile(tls.key_file, key);
  return startGateway({ listen: { tls } });
}

/** One round of requests, of every kind that the dashboard shows. */
async function createTraffic(gateway: TestGateway): Promise<() => Promise<void>> {
  const good = await createCustomerWithKey(gateway, { id: 'good', plan: 'professional' });
  const greedy = await createCustomerWithKey(gateway, { id: 'greedy', plan: 'enterprise', requests_per_hour: 2 });
  const hasty = await createCustomerWithKey(gateway, { id: 'hasty', plan: 'business' });
  const nearing = await createCustomerWithKey(gateway, { id: 'nearing', plan: 'enterprise', requests_per_hour: 100 });
  const ask = async (path: string, headers: Record<string, string> = {}) =>
    void (await fetch(`${gateway.public}/v1${path}`, { headers })).text();
  for (let sent = 0; sent < 80; sent++) await ask('/conversations', bearer(nearing));
  return async () => {
    await ask('/conversations', bearer(good));
    await ask('/conversations/broken', bearer(good));
    await ask('/conversations/reset', bearer(good));
    await ask('/conversations', { ...bearer(good), origin: 'https://app.example' });
    await ask('/conversations', bearer(greedy));
    if (await isAwayFromItsLimit(gateway, nearing)) await ask('/conversations', bearer(nearing));
    await Promise.all(Array.from({ length: 4 }, () => ask('/conversations', bearer(hasty))));
    await ask('/conversations', bearer('made-elsewhere'));
    await ask('/conversations');
  };
}

async function isAwayFromItsLimit(gateway: TestGateway, key: string): Promise<boolean> {
  const usage = await fetch(`${gateway.public}/v1/usage`, { headers: bearer(key) });
  const { remaining } = (await usage.json()) as { remaining: number };
  return remaining > 1;
}

/** Whether a sample is a number and has each label that the legend shows. */
async function hasData(prometheus: PrometheusServer, expr: string, legend: string): Promise<boolean> {
  const labels = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
  const samples = await prometheus.query(expr);
  return samples.some(({ metric, value: [, value] }) => value !== 'NaN' && labels.every((label) => label in metric));
}

it('every query of the dashboard yields data with the labels it shows, and every alert can be evaluated, on a gateway with traffic', async () => {
  const gateway = await startGateway({
    plans: {
      professional: { requests_per_hour: 5000, shadow: { requests_per_hour: 1 } },
      business: { requests_per_hour: 20_000, burst_per_second: 2 },
      enterprise: { requests_per_hour: 'custom' },
    },
  });
  const secured = await startGatewayWithTls();
  const prometheus = await startPrometheus([gateway, secured].map(({ ops }) => new URL(ops).host));
  const sendRound = await createTraffic(gateway);

  let empty = dashboardQueries(RATE_INTERVAL);
  expect(empty.length).toBeGreaterThan(30);
  const deadline = Date.now() + DATA_DEADLINE_MS;
  while (empty.length > 0 && Date.now() < deadline) {
    await sendRound();
    await setTimeout(500);
    const judged = await Promise.all(
      empty.map(async (query) => ({ query, hasData: await hasData(prometheus, query.expr, query.legend) })),
    );
    empty = judged.filter((each) => !each.hasData).map(({ query }) => query);
  }
  expect(empty).toEqual([]);

  // After a scrape that failed, until the next.
  await expect
    .poll(() => prometheus.query('topk(1, tollgate_customer_usage_ratio)'), { timeout: 60_000 })
    .toMatchObject([{ metric: { customer: 'greedy' }, value: [expect.any(Number), '1'] }]);

  await expect
    .poll(async () => (await prometheus.rules()).map(({ health, lastError }) => lastError ?? health), {
      timeout: 60_000,
    })
    .toEqual(readAlerts().map(() => 'ok'));
  const firing = (await prometheus.rules()).filter(({ state }) => state === 'firing').map(({ name }) => name);
  expect(firing).not.toContain('TollgateInstanceDown');
});

it('the shares of 5xx and of refusals read 0, not "No data", on a gateway where all is well', async () => {
  const gateway = await startGateway({});
  const key = await createCustomerWithKey(gateway, { id: 'good', plan: 'starter' });
  const prometheus = await startPrometheus([new URL(gateway.ops).host]);
  const shares = dashboardQueries(RATE_INTERVAL).filter(({ title }) => title === '5xx' || title === 'Refused');
  expect(shares).toHaveLength(2);
  for (const { expr } of shares) {
    const read = async () => {
      await (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).text();
      return (await prometheus.query(expr)).map(({ value: [, value] }) => value);
    };
    await expect.poll(read, { timeout: DATA_DEADLINE_MS, interval: 500 }).toEqual(['0']);
  }
});
