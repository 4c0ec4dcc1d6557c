/**
 * Notices of gateways that are processes of their own. Histories of hours:
 * test/customers/notices/many-gateways.load.test.ts.
 */
import { expect, onTestFinished, test } from 'vitest';
import { bearer } from '../support/admin.ts';
import { startGatewayProcess } from '../support/gateway-process.ts';
import { readMetric } from '../support/metrics.ts';
import { startNoticeReceiver } from '../support/notice-receiver.ts';
import type { RunningGateway } from '../support/process.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { writeCustomer, writeKey } from '../support/redis-system.ts';

const KEY = 'key-of-acme';
const LIMIT = 100;
const PATIENCE = { timeout: 30_000, interval: 50 };

async function startRedisWithCustomer(): Promise<RedisServer> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  await writeCustomer(redis, 'acme', { plan: 'enterprise', requests_per_hour: LIMIT });
  await writeKey(redis, KEY, 'acme');
  return redis;
}

function startGatewayOver(redis: RedisServer, config: Record<string, unknown>): Promise<RunningGateway> {
  return startGatewayProcess({
    config: {
      store: { url: redis.url, timeout_ms: 5000 },
      plans: { enterprise: { requests_per_hour: 'custom' } },
      ...config,
    },
  });
}

async function read({ public: url }: Pick<RunningGateway, 'public'>): Promise<number> {
  const response = await fetch(`${url}/v1/conversations`, { headers: bearer(KEY) });
  await response.arrayBuffer();
  return response.status;
}

test('three gateways, one of them with workers, tell of each level once while a customer climbs to 120 %', async () => {
  const redis = await startRedisWithCustomer();
  const receiver = await startNoticeReceiver();
  const gateways = await Promise.all(
    [1, 1, 2].map((workers) => startGatewayOver(redis, { notices: receiver.config, workers })),
  );
  const statuses: number[] = [];
  for (const [at, share] of [0.85, 0.97, 1.2].entries()) {
    while (statuses.length < share * LIMIT) {
      statuses.push(await read(gateways[statuses.length % 3] as RunningGateway));
    }
    await expect.poll(() => receiver.received.length, PATIENCE).toBe(at + 1);
  }
  expect(statuses.at(-1)).toBe(429);
  // Whatever is still stored would be sent now.
  for (const gateway of gateways) await read(gateway);
  await expect.poll(() => redis.command('ZCARD', 'tollgate:notices-due'), PATIENCE).toBe(0);
  expect(receiver.received.map(({ type, data }) => [type, data.limit]).sort()).toEqual([
    ['quota.exceeded', LIMIT],
    ['quota.threshold', LIMIT],
    ['quota.threshold', LIMIT],
  ]);
  const percents = receiver.received.map(({ data }) => Number(data.percent)).sort((a, b) => a - b);
  expect(percents[0]).toBeGreaterThanOrEqual(80);
  expect(percents[0]).toBeLessThan(95);
  expect(percents[1]).toBeGreaterThanOrEqual(95);
  expect(percents[2]).toBe(100);
  for (const { data } of receiver.received) expect(data).toMatchObject({ customer: 'acme', plan: 'enterprise' });
  const created = await Promise.all(gateways.map((gateway) => readMetric(gateway, 'tollgate_notices_created_total')));
  const sum = created.flatMap((series) => Object.values(series)).reduce((total, value) => total + value, 0);
  expect(sum).toBe(3);
});

test('a notice of a gateway that is killed before its receiver responds is sent by another one, with the same id', async () => {
  const redis = await startRedisWithCustomer();
  let hangs = true;
  const receiver = await startNoticeReceiver((res) => {
    if (!hangs) res.writeHead(204).end();
  });
  const killed = await startGatewayOver(redis, { notices: receiver.config });
  for (let i = 0; i < 0.85 * LIMIT; i++) await read(killed);
  await expect.poll(() => receiver.received.length, PATIENCE).toBe(1);
  killed.signal('SIGKILL');
  await killed.finished;
  hangs = false;
  await startGatewayOver(redis, { notices: receiver.config });
  const [member] = (await redis.command('ZRANGE', 'tollgate:notices-due', '0', '-1')) as string[];
  // The minute passes for which the killed one hid the notice.
  await redis.command('ZADD', 'tollgate:notices-due', 1, String(member));
  await expect.poll(() => receiver.received.length, PATIENCE).toBe(2);
  expect(receiver.received[1]).toEqual(receiver.received[0]);
  await expect.poll(() => redis.command('EXISTS', 'tollgate:notices-due'), PATIENCE).toBe(0);
});
