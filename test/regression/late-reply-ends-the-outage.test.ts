/**
 * How it showed: when Redis was not scheduled for a moment longer than store.timeout_ms, every request with a key that
 * was not in memory got 503 for at least 200 ms more, although Redis was back and had replied.
 */
import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { RecordingObserver } from '../store/contract.ts';
import { startRedis } from '../support/redis-server.ts';

const SHA256 = 'a'.repeat(64);
const TIMEOUT_MS = 300;

test('once a late reply has come, the store is asked at once whether it is up again', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const observer = new RecordingObserver();
  // No heartbeat comes to help.
  const heartbeatMs = 3_600_000;
  const options = {
    url: redis.url,
    keyPrefix: 'test',
    timeoutMs: TIMEOUT_MS,
    heartbeatMs,
    clock: systemClock,
    observer,
  };
  const store = await openRedisStore({ ...options, warn: () => undefined });
  onTestFinished(() => store.close());
  await expect.poll(() => store.invalidations.connected).toBe(true);

  // From here on time stands still for timers, and so for the probe, unless the test moves it.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  redis.pause();
  const read = expect(store.records.findKey(SHA256)).rejects.toThrow('Redis: Command timed out');
  await setImmediate();
  vi.advanceTimersByTime(TIMEOUT_MS);
  await read;
  expect(store.isUp()).toBe(false);

  redis.resume();
  while (!store.isUp()) await setImmediate();
  expect(await store.records.findCustomer('acme')).toBeUndefined();
});
