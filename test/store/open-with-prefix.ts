import { randomUUID } from 'node:crypto';
import { onTestFinished } from 'vitest';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { acceptAsEmpty } from '../support/redis-system.ts';
import { silent } from '../support/silent.ts';
import { RecordingObserver } from './contract.ts';

/** A store in a Redis that others use too, closed when the test ends. Without a prefix it gets one of its own, and is empty. */
export async function openWithPrefix(redis: RedisServer, prefix = `test-${randomUUID()}`) {
  const observer = new RecordingObserver();
  await acceptAsEmpty(redis, prefix);
  const surroundings = { ...silent, observer };
  const store = await openRedisStore({ url: redis.url, keyPrefix: prefix, timeoutMs: 2000, ...surroundings });
  onTestFinished(() => store.close());
  return { store, prefix, observer };
}
