/**
 * A thousand callers at once keep the process busy for longer than `store.timeout_ms`. Its timers were then found due
 * before the replies in its sockets were read, and it took its own delay for an absent store: keys that are good were
 * answered with 503, and quotas were decided locally, so that more requests than the limit reached the backend.
 */
import { expect, test } from 'vitest';
import { systemClock, systemScheduler } from '../../src/base/clock.ts';
import { LeasedQuota } from '../../src/customers/quota/leased-quota.ts';
import { createQuotaWithoutStore } from '../../src/customers/quota/without-store.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { hourly } from '../../src/store/windows.ts';
import { startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';

const TIMEOUT_MS = 200;
/** Longer than any deadline of the store, and short of the end of a lease. */
const BUSY_MS = 3 * TIMEOUT_MS;

/** Stops the thread without using the processor, so that Redis can reply meanwhile. */
function beBusy(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS);
}

async function openBusyStore(opened: AsyncDisposableStack) {
  const redis = await startRedis();
  opened.defer(() => redis.stop());
  const store = await openRedisStore({
    url: redis.url,
    keyPrefix: 'busy',
    timeoutMs: TIMEOUT_MS,
    ...silent,
  });
  opened.defer(() => store.close());
  return store;
}

test('a record whose reply arrived while the process was busy is used', async () => {
  await using opened = new AsyncDisposableStack();
  const store = await openBusyStore(opened);
  const reading = store.records.findCustomer('acme');
  beBusy();
  expect(await reading).toBeUndefined();
  expect(store.isUp()).toBe(true);
});

test('a reservation whose reply arrived while the process was busy is used', async () => {
  await using opened = new AsyncDisposableStack();
  const store = await openBusyStore(opened);
  const common = { storeIsUp: () => store.isUp(), clock: systemClock, scheduler: systemScheduler };
  const quota = new LeasedQuota({
    ...common,
    windows: store.windows,
    timeoutMs: TIMEOUT_MS,
    customers: 10,
    withoutStore: createQuotaWithoutStore({ ...common, onError: 'deny', windows: store.windows, instances: () => 1 }),
  });
  opened.defer(() => quota.close());
  const admission = quota.admit('acme', { limits: hourly(10), usageResetAt: '' });
  beBusy();
  const admitted = await admission;
  expect(admitted).toMatchObject({ outcome: 'admitted', mode: 'store' });
  expect(admitted.outcome === 'admitted' && admitted.remaining(0)).toBe(9);
  expect(store.isUp()).toBe(true);
});
