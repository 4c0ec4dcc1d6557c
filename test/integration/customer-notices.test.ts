/** The notices that a customer has sent to a URL of its own, by a real gateway. */
import { expect, test } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import { startNoticeReceiver } from '../support/notice-receiver.ts';
import { keyName, startRedisSystem, writeCustomer } from '../support/redis-system.ts';

const LIMIT = 20;
const PATIENCE = { timeout: 30_000, interval: 50 };
const RECORD = { plan: 'enterprise', requests_per_hour: LIMIT };

/** A gateway with an endpoint of the operator, and a customer that uses its limit up. */
async function start() {
  const receiver = await startNoticeReceiver();
  const config = { notices: receiver.config };
  const { redis, gateway, key } = await startRedisSystem({ config, customer: RECORD });
  async function useUp(): Promise<number[]> {
    const statuses: number[] = [];
    for (let i = 0; i < LIMIT; i++) {
      const response = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
      await response.arrayBuffer();
      statuses.push(response.status);
    }
    return statuses;
  }
  const undelivered = async () => (await callAdmin(gateway, '/admin/v1/notices')).body.items;
  return { receiver, redis, gateway, key, useUp, undelivered };
}

test("a customer's URL that cannot be reached delays no notice of the operator", async () => {
  const { receiver, gateway, useUp, undelivered } = await start();
  const body = { notify_url: 'https://hooks.invalid/tollgate' };
  await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'PATCH', body });
  await callAdmin(gateway, '/admin/v1/customers/acme/notify-secret', { method: 'POST' });
  await useUp();
  await expect.poll(() => receiver.received.map(({ type }) => type), PATIENCE).toContain('quota.exceeded');
  await expect
    .poll(async () => (await undelivered())[0]?.deliveries, PATIENCE)
    .toEqual([
      expect.objectContaining({
        endpoint: 'notify_url',
        state: 'pending',
        // Without a resolver in reach the reason is another one.
        last_error: expect.stringMatching(/^(the host name cannot be resolved: |no response within )/),
      }),
    ]);
});

test('a notify_url without a secret, or damaged by another program, gets nothing and breaks nothing', async () => {
  const { receiver, redis, gateway, useUp, undelivered } = await start();
  await callAdmin(gateway, '/admin/v1/customers/acme/notify-secret', { method: 'POST' });
  await writeCustomer(redis, 'acme', { notify_url: `http://127.0.0.1:1/${'x'.repeat(100_000)}` });
  expect(new Set(await useUp())).toEqual(new Set([200]));
  await expect.poll(() => receiver.received.map(({ type }) => type), PATIENCE).toContain('quota.exceeded');
  await expect.poll(undelivered, PATIENCE).toEqual([]);
});

test('a key that is used up is told to the URL of its customer alone, and is no usage of the customer', async () => {
  const { receiver, redis, gateway, key, useUp, undelivered } = await start();
  const body = { notify_url: 'https://hooks.invalid/tollgate', requests_per_hour: 10 * LIMIT };
  await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'PATCH', body });
  await callAdmin(gateway, '/admin/v1/customers/acme/notify-secret', { method: 'POST' });
  await redis.command('HSET', keyName(key), 'requests_per_hour', String(LIMIT));
  expect(new Set(await useUp())).toEqual(new Set([200]));
  // First as it was stored: who is told is decided with the first attempt.
  const endpoints = async () =>
    (await undelivered()).map((notice: { deliveries: { endpoint: string }[] }) =>
      notice.deliveries.map(({ endpoint }) => endpoint),
    );
  await expect.poll(endpoints, PATIENCE).toContainEqual(['notify_url']);
  expect(new Set((await endpoints()).flat())).toEqual(new Set(['notify_url']));
  expect(receiver.received).toEqual([]);
});
