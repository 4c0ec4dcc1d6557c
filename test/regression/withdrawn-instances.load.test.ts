/**
 * Every deploy made the quotas of an outage smaller: gateways that had ended were counted for an hour. After two rolling
 * restarts of three gateways, an untouched limit of 900 gave 297 requests, because nine instances seemed to share it.
 */
import { expect, onTestFinished, test } from 'vitest';
import { startWithWorkers } from '../process/workers/support.ts';
import { bearer } from '../support/admin.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { connectTo } from '../support/redis-server.ts';
import { INSTANCES_NAME, startRedisSystem } from '../support/redis-system.ts';

test('after rolling restarts an outage finds the whole limit shared by the gateways that run', async () => {
  const limit = 90;
  const { redis, backend, gateway, key } = await startRedisSystem({
    customer: { plan: 'enterprise', requests_per_hour: limit },
  });
  const start = async (): Promise<TestGateway> => {
    const gateway = await startTestGateway({ storeUrl: redis.url, upstreamUrl: backend.url });
    onTestFinished(() => gateway.close());
    return gateway;
  };
  let gateways: TestGateway[] = [gateway, await start(), await start()];
  for (let restart = 0; restart < 2; restart++) {
    const successors = [];
    for (const gateway of gateways) {
      await gateway.close();
      successors.push(await start());
    }
    gateways = successors;
  }
  expect(await redis.command('ZCARD', INSTANCES_NAME)).toBe(3);

  const send = async ({ public: url }: TestGateway) =>
    (await fetch(`${url}/v1/conversations`, { headers: bearer(key) })).status;
  // Free of charge: the key is known from then on.
  for (const { public: url } of gateways) await fetch(`${url}/v1/usage`, { headers: bearer(key) });
  await redis.kill();
  const statuses: number[] = [];
  for (const gateway of gateways) for (let i = 0; i < limit; i++) statuses.push(await send(gateway));
  expect(statuses.filter((status) => status === 200)).toHaveLength(limit);
});

test('a gateway that admitted requests without the store stays counted when it ends', async () => {
  const { redis, gateway, key } = await startRedisSystem();
  const send = async () => (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status;
  expect(await send()).toBe(200);
  await redis.command('CONFIG', 'SET', 'maxmemory', 1);
  expect(await send()).toBe(200);
  await redis.command('CONFIG', 'SET', 'maxmemory', 0);
  await gateway.close();
  expect(await redis.command('ZCARD', INSTANCES_NAME)).toBe(1);
});

test('workers that end withdraw too', async () => {
  const { gateway, storeUrl } = await startWithWorkers();
  const redis = connectTo(Number(new URL(storeUrl).port), {});
  onTestFinished(() => redis.disconnect());
  expect(await redis.zcard(INSTANCES_NAME)).toBe(2);
  gateway.signal('SIGTERM');
  await expect.poll(() => redis.zcard(INSTANCES_NAME)).toBe(0);
});
