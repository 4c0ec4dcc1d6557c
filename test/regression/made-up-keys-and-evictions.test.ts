/**
 * With a `maxmemory-policy` that may evict records, each key that is not found makes the gateway ask Redis for its count of
 * evictions. Lookups waited until nobody asked any more, instead of for one reply: 300 made-up keys a second held all of
 * them until the flood ended, and with them the gateway's places for requests in progress.
 */
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { startRedis } from '../support/redis-server.ts';
import { acceptAsEmpty } from '../support/redis-system.ts';
import { silent } from '../support/silent.ts';

/** Lookups of the flood, about one in 2 ms. */
const FLOOD = 1000;
/** So slow that the flood asks again during each reply. */
const REPLY_MS = 20;

test('a flood of made-up keys does not hold lookups until it ends', async () => {
  const redis = await startRedis({ args: ['--maxmemory', '1gb', '--maxmemory-policy', 'allkeys-lru'] });
  onTestFinished(() => redis.stop());
  await acceptAsEmpty(redis, 'test');
  const proxy = await startFaultProxy(redis);
  const url = `redis://127.0.0.1:${proxy.port}`;
  const options = { url, keyPrefix: 'test', timeoutMs: 10_000, ...silent };
  const store = await openRedisStore(options);
  onTestFinished(() => store.close());
  const lookUp = (i: number) => store.records.findKey(i.toString(16).padStart(64, '0'));
  expect(await lookUp(0)).toBeUndefined();

  proxy.delay(REPLY_MS);
  let isFirstFound = false;
  const lookups: Promise<unknown>[] = [];
  for (let i = 1; i <= FLOOD && !isFirstFound; i++) {
    lookups.push(lookUp(i));
    if (i === 1) lookups[0]?.finally(() => (isFirstFound = true));
    await setTimeout(2);
  }
  expect(isFirstFound).toBe(true);
  await Promise.all(lookups);
});
