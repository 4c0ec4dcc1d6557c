/** The quota over a real Redis, with an hour of one second: for tests that cannot wait longer. */
import { onTestFinished } from 'vitest';
import { systemClock, systemScheduler } from '../../src/base/clock.ts';
import { LeasedQuota } from '../../src/customers/quota/leased-quota.ts';
import type { StoreObserver } from '../../src/store/observer.ts';
import { RedisConnection } from '../../src/store/redis/connection/connection.ts';
import { redisKeyNames } from '../../src/store/redis/protocol/key-names.ts';
import { HourlyWindow } from '../../src/store/redis/window/hourly-window.ts';
import type { RedisServer } from './redis-server.ts';

export const SHORT_WINDOW = { windowMs: 1000, bucketMs: 100 };

/** What one gateway decides by. Keeps the usage history under the prefix `test`. */
export async function openShortQuota(redis: RedisServer): Promise<LeasedQuota> {
  const observer: StoreObserver = { called: () => {}, up: () => {} };
  const connection = new RedisConnection({
    server: { host: '127.0.0.1', port: redis.port },
    name: 'windows',
    socketTimeoutMs: 20_000,
    clock: systemClock,
    observer,
    onChange: () => {},
  });
  onTestFinished(() => connection.close());
  const windows = new HourlyWindow({
    connection,
    names: redisKeyNames('test'),
    clock: systemClock,
    observer,
    retention: { hoursDays: 1, days: 1 },
    shape: SHORT_WINDOW,
  });
  await connection.open();
  const quota = new LeasedQuota({
    windows,
    storeIsUp: () => true,
    withoutStore: {
      admit: () => {
        throw new Error('the store was not asked');
      },
    },
    clock: systemClock,
    scheduler: systemScheduler,
    timeoutMs: 10_000,
    customers: 100,
  });
  onTestFinished(() => quota.close());
  return quota;
}
