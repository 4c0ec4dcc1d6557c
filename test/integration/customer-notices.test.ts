/** The notices that a customer has sent to a URL of its own, by a real gateway. */
import { expect, test } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import { startNoticeReceiver } from '../support/notice-receiver.ts';
import { startRedisSystem, writeCustomer } from '../support/redis-system.ts';

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
  return { receiver, redis, gateway, useUp, undelivered };
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
