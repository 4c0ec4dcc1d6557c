/**
 * A PATCH was checked against the record as it was read, and written whatever the record had become. So two PATCHes that are
 * right alone (one sets a plan without a limit of its own, one unsets the customer's own limit) left a customer without
 * any limit, which is refused with 403, in 16 of 40 tries.
 */
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { startAdmin, type TestAdmin } from '../control/admin/support.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

const TRIES = 40;
const CUSTOMER = '/admin/v1/customers/acme';
const WITHOUT_PLAN_LIMIT = { plan: 'enterprise' };
const WITHOUT_OWN_LIMIT = { requests_per_hour: null };

let redis: RedisServer;
let admin: TestAdmin;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async ({ task }) => {
  admin = await startAdmin({}, { url: redis.url, keyPrefix: task.id });
  onTestFinished(() => admin.close());
});

test('two changes at a time never leave a customer without a limit: one of them is refused', async () => {
  await admin.call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter', requests_per_hour: 5 });
  for (let round = 0; round < TRIES; round += 1) {
    await admin.call('PATCH', CUSTOMER, { plan: 'starter', requests_per_hour: 5 });
    const changes = [WITHOUT_PLAN_LIMIT, WITHOUT_OWN_LIMIT];
    const results = await Promise.all(changes.map((change) => admin.call('PATCH', CUSTOMER, change)));
    expect(results.map(({ status }) => status).toSorted()).toEqual([200, 422]);
  }
});

test('changes that go together are all made, however many come at a time', async () => {
  await admin.call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter' });
  const limits = Array.from({ length: 10 }, (_, i) => ({ requests_per_hour: i + 1 }));
  const results = await Promise.all(limits.map((change) => admin.call('PATCH', CUSTOMER, change)));
  expect(results.map(({ status }) => status)).toEqual(limits.map(() => 200));
});
