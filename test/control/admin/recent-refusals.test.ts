/**
 * Several gateways serve the same customers, and an operator asks one of them: it must name whom the others refused,
 * and not only what is in its own memory.
 */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { openRedisStore } from '../../../src/store/redis/redis-store.ts';
import { HOUR_MS } from '../../../src/store/usage-history.ts';
import { earlyInHour } from '../../support/early-in-hour.ts';
import { type RedisServer, startRedis } from '../../support/redis-server.ts';
import { silent } from '../../support/silent.ts';
import { startAdmin } from './support.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** An admin listener whose gateway refused nobody, and the history of all gateways. */
async function start(own: readonly { customer: string; code: string; count: number }[] = []) {
  await redis.command('FLUSHALL');
  await earlyInHour();
  const options = { url: redis.url, keyPrefix: 'test', timeoutMs: 2000, usage: { hoursDays: 35, days: 400 } };
  const store = await openRedisStore({ ...options, ...silent });
  onTestFinished(() => store.close());
  const history = store.usageHistory;
  if (history === undefined) throw new Error('the store has no history');
  const atMs = Date.now();
  const refusals = (wanted: string | undefined) =>
    own
      .filter(({ customer }) => wanted === undefined || wanted === customer)
      .map((each) => ({ ...each, firstAtMs: atMs - 1000, lastAtMs: atMs, keyId: 'key_1' }));
  const admin = await startAdmin({ history, refusals });
  onTestFinished(() => admin.close());
  await admin.call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter' });
  const hourMs = Math.floor(atMs / HOUR_MS) * HOUR_MS;
  const add = async (customer: string, code: string, count: number, hoursAgo = 0) => {
    await store.records.createCustomer({ id: customer, plan: 'starter', suspended: false });
    const hour = hourMs - hoursAgo * HOUR_MS;
    const refusal = { customer, code, count, hourMs: hour };
    return history.add({ counts: [refusal], totals: [], near: [], atMs: atMs - hoursAgo * HOUR_MS });
  };
  return { admin, history, records: store.records, add };
}

test('customers that other gateways refused are listed, the latest first, with the counts of all', async () => {
  const { admin, add } = await start([{ customer: 'own', code: 'quota_exceeded', count: 3 }]);
  await add('long-ago', 'quota_exceeded', 5, 2);
  await add('acme', 'quota_exceeded', 7, 1);
  await add('acme', 'quota_exceeded', 2);
  await add('acme', 'burst_exceeded', 1);
  const { body } = await admin.call('GET', '/admin/v1/usage/refused');
  expect(body).toHaveLength(3);
  expect(body).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ customer: 'acme', code: 'quota_exceeded', count: 9, key_id: null }),
      expect.objectContaining({ customer: 'acme', code: 'burst_exceeded', count: 1 }),
      expect.objectContaining({ customer: 'own', code: 'quota_exceeded', count: 3, key_id: 'key_1' }),
    ]),
  );
});

test('what the asked gateway refused itself is counted once', async () => {
  const { admin, add } = await start([{ customer: 'acme', code: 'quota_exceeded', count: 3 }]);
  await add('acme', 'quota_exceeded', 2);
  expect((await admin.call('GET', '/admin/v1/usage/refused')).body).toMatchObject([{ count: 3, key_id: 'key_1' }]);
  await add('acme', 'quota_exceeded', 8);
  expect((await admin.call('GET', '/admin/v1/usage/refused')).body).toMatchObject([{ count: 10, key_id: 'key_1' }]);
});

test('the explanation of a customer has the refusals by all gateways', async () => {
  const { admin, add } = await start();
  await add('acme', 'quota_exceeded', 4);
  await add('other', 'quota_exceeded', 4);
  const { body } = await admin.call('GET', '/admin/v1/customers/acme/explain');
  expect(body).toMatchObject({ instance: { refusals: [] }, refusals: [{ code: 'quota_exceeded', count: 4 }] });
});

test('what another program wrote among the refusals is left out', async () => {
  const { admin, add } = await start();
  await add('acme', 'quota_exceeded', 4);
  await redis.command('ZADD', 'test:refused', 'inf', 'acme quota_exceeded_2', 1e300, 'x y', Date.now(), 'no-code');
  expect((await admin.call('GET', '/admin/v1/usage/refused')).body).toMatchObject([{ customer: 'acme', count: 4 }]);
});

test('a customer that was deleted is no longer listed', async () => {
  const { admin, records, add } = await start();
  await add('acme', 'quota_exceeded', 4);
  await add('acme-2', 'quota_exceeded', 4);
  await records.deleteCustomer('acme');
  expect((await admin.call('GET', '/admin/v1/usage/refused')).body).toMatchObject([{ customer: 'acme-2' }]);
});
