/** Notices of a real gateway to a real receiver. Several processes: test/faults/notices.test.ts. */
import { expect, onTestFinished, test } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { startNoticeReceiver } from '../support/notice-receiver.ts';
import { startRedisSystem } from '../support/redis-system.ts';

const LIMIT = 100;
const PATIENCE = { timeout: 30_000, interval: 200 };

async function read({ public: url }: { readonly public: string }, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/conversations`, { headers: bearer(key) });
  await response.arrayBuffer();
  return response.status;
}

const start = async (receiver: { readonly config: Record<string, unknown> }) =>
  startRedisSystem({
    config: { notices: receiver.config, store: { timeout_ms: 300 } },
    customer: { plan: 'enterprise', requests_per_hour: LIMIT },
  });

test('a level reached while Redis is unavailable causes a notice after the outage', async () => {
  const receiver = await startNoticeReceiver();
  const { redis, gateway, key } = await start(receiver);
  for (let i = 0; i < 0.5 * LIMIT; i++) await read(gateway, key);
  redis.pause();
  onTestFinished(() => redis.resume());
  let admitted = 0;
  for (let i = 0; i < 0.4 * LIMIT; i++) admitted += Number((await read(gateway, key)) === 200);
  expect(admitted).toBeGreaterThan(0.35 * LIMIT);
  expect(receiver.received).toEqual([]);
  redis.resume();
  await expect
    .poll(async () => {
      await read(gateway, key);
      return receiver.received.length;
    }, PATIENCE)
    .toBeGreaterThan(0);
  expect(receiver.received[0]?.data).toMatchObject({ customer: 'acme', limit: LIMIT });
});

test('a month has its own notices, one of each level, also while requests beyond it are served as overage', async () => {
  const receiver = await startNoticeReceiver();
  const plans = { metered: { requests_per_hour: 100_000, period: { per: 'month', requests: LIMIT, beyond: 'allow' } } };
  const { gateway, key } = await startRedisSystem({
    config: { notices: receiver.config, plans },
    customer: { plan: 'metered' },
  });
  const statuses: number[] = [];
  const readOn = async () => {
    statuses.push(await read(gateway, key));
    return receiver.received.filter(({ type }) => type === 'quota.exceeded').length;
  };
  for (let i = 0; i < 1.2 * LIMIT; i++) await readOn();
  await expect.poll(readOn, PATIENCE).toBe(1);
  const [notice] = receiver.received.filter(({ type }) => type === 'quota.exceeded');
  expect(notice?.data).toMatchObject({ window: 'monthly', beyond: 'allow', limit: LIMIT, plan: 'metered' });
  expect(notice?.data.used).toBeGreaterThanOrEqual(LIMIT);
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(receiver.received.every(({ data }) => data.window === 'monthly')).toBe(true);
  expect(await readMetric(gateway, 'tollgate_quota_decisions_total')).toMatchObject({
    'plan="metered",policy="monthly",outcome="overage",mode="lease"': expect.any(Number),
  });
});

test('a notice that failed is listed, and sent again on request', async () => {
  let status = 503;
  const receiver = await startNoticeReceiver((res) => void res.writeHead(status, { 'retry-after': '600' }).end());
  const { gateway, key } = await start(receiver);
  for (let i = 0; i < 0.85 * LIMIT; i++) await read(gateway, key);
  const list = async () => (await callAdmin(gateway, '/admin/v1/notices?state=pending')).body.items;
  await expect.poll(async () => (await list())[0]?.deliveries[0]?.attempts, PATIENCE).toBe(1);
  const [notice] = await list();
  const [endpoint] = receiver.config.endpoints as { url: string }[];
  expect(notice).toMatchObject({
    id: receiver.received[0]?.id,
    type: 'quota.threshold',
    customer: 'acme',
    deliveries: [{ endpoint: endpoint?.url, state: 'pending', last_error: 'the response had status 503' }],
  });
  status = 204;
  await callAdmin(gateway, `/admin/v1/notices/${notice.id}/retry`, { method: 'POST' });
  await expect.poll(() => receiver.received.length, PATIENCE).toBe(2);
  expect(receiver.received[1]?.id).toBe(notice.id);
  await expect.poll(list, PATIENCE).toEqual([]);
  expect(await readMetric(gateway, 'tollgate_notices_attempts_total')).toMatchObject({
    'endpoint="operator",result="failed"': 1,
    'endpoint="operator",result="delivered"': 1,
  });
});

test('an endpoint that responds 410 is disabled, which is audited, until a notice for it is sent again', async () => {
  let status = 410;
  const receiver = await startNoticeReceiver((res) => void res.writeHead(status).end());
  const { gateway, key } = await start(receiver);
  for (let i = 0; i < LIMIT + 1; i++) await read(gateway, key);
  const dead = async () => (await callAdmin(gateway, '/admin/v1/notices?state=dead')).body.items;
  await expect.poll(async () => (await dead()).length, PATIENCE).toBeGreaterThan(0);
  const { body: audit } = await callAdmin(gateway, '/admin/v1/audit');
  const [endpoint] = receiver.config.endpoints as { url: string }[];
  expect(audit.items[0]).toMatchObject({
    actor: 'gateway',
    from: '-',
    action: 'endpoint.disable',
    details: { endpoint: endpoint?.url },
  });
  status = 204;
  const [notice] = await dead();
  const sent = () => receiver.received.filter(({ id }) => id === notice.id).length;
  const before = sent();
  await callAdmin(gateway, `/admin/v1/notices/${notice.id}/retry`, { method: 'POST' });
  await expect.poll(sent, PATIENCE).toBe(before + 1);
});

test('a gateway that stops while a receiver does not respond leaves the notice to the others at once', async () => {
  const receiver = await startNoticeReceiver(() => {});
  const { redis, gateway, key } = await start(receiver);
  for (let i = 0; i < 0.85 * LIMIT; i++) await read(gateway, key);
  await expect.poll(() => receiver.received.length, PATIENCE).toBe(1);
  await gateway.close();
  const due = await redis.command('ZRANGEBYSCORE', 'tollgate:notices-due', '-inf', String(Date.now() + 1000));
  expect(due).toEqual([`${receiver.received[0]?.id} acme`]);
});

test('a gateway without notices makes none and looks for none', async () => {
  const { redis, gateway, key } = await startRedisSystem({
    customer: { plan: 'enterprise', requests_per_hour: LIMIT },
  });
  for (let i = 0; i < LIMIT + 1; i++) await read(gateway, key);
  expect(await redis.command('KEYS', 'tollgate:notices*')).toEqual([]);
  const calls = await readMetric(gateway, 'tollgate_store_calls_total');
  expect(Object.keys(calls).filter((labels) => labels.includes('notice'))).toEqual([]);
  expect((await callAdmin(gateway, '/status')).body.notices).toBeNull();
});
