/**
 * Every request to the usage path cost a store call, free of charge and without bound: 4,600 a second with one core. While
 * Redis hung, each of them waited for `store.timeout_ms`, because a late read did not count as an absent store.
 */
import { expect, onTestFinished, test } from 'vitest';
import { bearer } from '../support/admin.ts';
import { awakeMs } from '../support/awake-clock.ts';
import type { TestGateway } from '../support/gateway.ts';
import { readScriptCalls, startRedisSystem, windowName } from '../support/redis-system.ts';

const TIMEOUT_MS = 300;

async function readUsage({ public: url }: TestGateway, key: string) {
  const startedMs = awakeMs();
  const response = await fetch(`${url}/v1/usage`, { headers: bearer(key) });
  const { used } = (await response.json()) as { used?: number };
  return { status: response.status, used, tookMs: awakeMs() - startedMs };
}

test('reading the usage costs at most four store calls a second', async () => {
  const { redis, gateway, key } = await startRedisSystem();
  await readUsage(gateway, key);
  const before = await readScriptCalls(redis);
  const startedMs = performance.now();
  for (let round = 0; round < 20; round++) {
    const reads = await Promise.all(Array.from({ length: 20 }, () => readUsage(gateway, key)));
    for (const { status } of reads) expect(status).toBe(200);
  }
  const quarters = (performance.now() - startedMs) / 250;
  expect((await readScriptCalls(redis)) - before).toBeLessThanOrEqual(Math.ceil(quarters) + 1);
});

test('requests of this instance count at once, and changes made elsewhere after 250 ms', async () => {
  const { redis, gateway, key, customer } = await startRedisSystem();
  for (let used = 0; used < 4; used++) {
    expect(await readUsage(gateway, key)).toMatchObject({ used });
    await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
  }
  await redis.command('DEL', windowName(customer));
  await expect.poll(async () => (await readUsage(gateway, key)).used).toBe(0);
});

test('while Redis hangs only the first reads wait', async () => {
  const { redis, gateway, key } = await startRedisSystem({ config: { store: { timeout_ms: TIMEOUT_MS } } });
  await readUsage(gateway, key);
  redis.pause();
  onTestFinished(() => redis.resume());
  // Answered from memory until the last result is too old.
  await expect.poll(async () => (await readUsage(gateway, key)).status).toBe(503);
  const later = [];
  for (let i = 0; i < 5; i++) later.push(await readUsage(gateway, key));
  for (const { status } of later) expect(status).toBe(503);
  // The fastest: the machine may slow down others.
  expect(Math.min(...later.map(({ tookMs }) => tookMs))).toBeLessThan(TIMEOUT_MS);
});
