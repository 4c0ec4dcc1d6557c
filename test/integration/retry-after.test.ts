/** Whoever waits as long as it was told to, alone, is admitted: with the clocks, timers and the Redis of this machine. */
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock, systemScheduler } from '../../src/base/clock.ts';
import type { Admission } from '../../src/customers/quota/hourly-quota.ts';
import { LeasedQuota } from '../../src/customers/quota/leased-quota.ts';
import type { StoreObserver } from '../../src/store/observer.ts';
import { RedisConnection } from '../../src/store/redis/connection/connection.ts';
import { redisKeyNames } from '../../src/store/redis/protocol/key-names.ts';
import { HourlyWindow } from '../../src/store/redis/window/hourly-window.ts';
import { hourly } from '../../src/store/windows.ts';
import { startRedis } from '../support/redis-server.ts';

const SHAPE = { windowMs: 1000, bucketMs: 100 };
/** Refused so far apart from one another that what is left of their last second covers all of it. */
const CUSTOMERS = 10;
const ROUNDS = 2;
const TERMS = { limits: hourly(2), usageResetAt: '' };

async function openQuota(): Promise<LeasedQuota> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
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
  const names = redisKeyNames('test');
  const windows = new HourlyWindow({ connection, names, clock: systemClock, observer, shape: SHAPE });
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

test('a client that waits exactly as long as its refusal said, alone, is admitted', { timeout: 40_000 }, async () => {
  const quota = await openQuota();

  /** Uses up what there is, and says what became of the request after that and of the one after the wait. */
  async function round(customer: string, pauseMs: number): Promise<readonly Admission['outcome'][]> {
    while ((await quota.admit(customer, TERMS)).outcome === 'admitted');
    await setTimeout(pauseMs);
    const refused = await quota.admit(customer, TERMS);
    await setTimeout(refused.resetSeconds(0) * 1000);
    const next = await quota.admit(customer, TERMS);
    return [refused.outcome, next.outcome];
  }

  async function rounds(index: number): Promise<(readonly Admission['outcome'][])[]> {
    const outcomes = [];
    for (let i = 0; i < ROUNDS; i++) outcomes.push(await round(`customer-${index}`, (1000 * index) / CUSTOMERS));
    return outcomes;
  }

  const all = await Promise.all(Array.from({ length: CUSTOMERS }, (_, index) => rounds(index)));
  expect(all.flat()).toEqual(Array(CUSTOMERS * ROUNDS).fill(['refused', 'admitted']));
});
