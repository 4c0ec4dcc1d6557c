import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { RecordingObserver } from './contract.ts';

const HOUR_MS = 3_600_000;
const INSTANCES = 'test:instances';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

async function open() {
  await redis.command('FLUSHALL');
  const options = { url: redis.url, keyPrefix: 'test', timeoutMs: 2000, clock: systemClock, warn: () => undefined };
  const store = await openRedisStore({ ...options, observer: new RecordingObserver() });
  onTestFinished(() => store.close());
  return store;
}

async function redisTimeMs(): Promise<number> {
  const [seconds, microseconds] = (await redis.command('TIME')) as [string, string];
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}

test('every instance counts once, however often it says that it runs', async () => {
  const store = await open();
  expect(await store.announce('a')).toMatchObject({ instances: 1 });
  expect(await store.announce('b')).toMatchObject({ instances: 2 });
  expect(await store.announce('a')).toMatchObject({ instances: 2 });
});

test('an instance counts for an hour after its last announcement', async () => {
  const store = await open();
  const nowMs = await redisTimeMs();
  await redis.command('ZADD', INSTANCES, nowMs - HOUR_MS - 1, 'gone', nowMs - HOUR_MS + 10_000, 'still counted');
  expect(await store.announce('a')).toMatchObject({ instances: 2 });
  expect(await redis.command('ZRANGE', INSTANCES, 0, -1)).toEqual(['still counted', 'a']);
});

test('an announcement carries the time of the store, and the list ends by itself', async () => {
  const store = await open();
  const beforeMs = await redisTimeMs();
  await store.announce('a');
  const scoreMs = Number(await redis.command('ZSCORE', INSTANCES, 'a'));
  expect(scoreMs).toBeGreaterThanOrEqual(beforeMs);
  expect(scoreMs).toBeLessThanOrEqual(await redisTimeMs());
  const ttlMs = Number(await redis.command('PTTL', INSTANCES));
  expect(ttlMs).toBeGreaterThan(HOUR_MS - 10_000);
  expect(ttlMs).toBeLessThanOrEqual(HOUR_MS);
});
