/**
 * Another program writes a string where a customer's record was, while a notice to the customer is pending. Every minute a
 * gateway took the notice, failed to read the record, and logged the error, for ever.
 */
import { expect, test } from 'vitest';
import { bearer } from '../support/admin.ts';
import { startNoticeReceiver } from '../support/notice-receiver.ts';
import { customerName, startRedisSystem } from '../support/redis-system.ts';

const LIMIT = 10;
const DUE = 'tollgate:notices-due';
const PATIENCE = { timeout: 30_000, interval: 50 };

test('a notice to a customer whose record is no hash is deleted and logged once', async () => {
  const receiver = await startNoticeReceiver((res) => void res.writeHead(503).end());
  const config = { notices: receiver.config };
  const customer = { plan: 'enterprise', requests_per_hour: LIMIT };
  const { redis, gateway, key } = await startRedisSystem({ config, customer });
  for (let i = 0; i < LIMIT; i++) {
    await (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).arrayBuffer();
  }
  await expect.poll(() => receiver.received.length, PATIENCE).toBe(1);
  const attempts = () => gateway.logs.filter(({ msg }) => msg === 'a notice was not delivered: it is retried');
  await expect.poll(() => attempts().length, PATIENCE).toBe(1);

  await redis.command('DEL', customerName('acme'));
  await redis.command('SET', customerName('acme'), 'damaged');
  // The wait before the next attempt passes.
  await redis.command('ZADD', DUE, 'XX', 1, `${receiver.received[0]?.id} acme`);
  await expect.poll(() => redis.command('EXISTS', DUE), PATIENCE).toBe(0);
  const logged = gateway.logs.filter(({ msg }) => String(msg).startsWith('a notice was deleted'));
  expect(logged).toMatchObject([{ notice: receiver.received[0]?.id, customer: 'acme' }]);
  expect(receiver.received).toHaveLength(1);
}, 60_000);
