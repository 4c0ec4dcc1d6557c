/**
 * Whoever writes records could slow everybody: a name of 10 MB in one record was read with each look at that record, on the
 * connection on which all requests wait, so that others were answered 503.
 */
import { expect, test } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import { customerName, keyName, startRedisSystem, writeKey } from '../support/redis-system.ts';

const NAME = 'x'.repeat(10_000_000);

test('a name of 10 MB is not read for a request, and costs other requests nothing', async () => {
  const { redis, gateway, customer, key } = await startRedisSystem();
  await writeKey(redis, 'another-key', 'globex');
  await redis.command('HSET', customerName('globex'), 'plan', 'starter');
  await redis.command('HSET', keyName(key), 'name', NAME, 'prefix', NAME, 'created_at', NAME);
  await redis.command('HSET', customerName(customer), 'name', NAME);

  const sent = async () =>
    Number(/total_net_output_bytes:(\d+)/.exec(String(await redis.command('INFO', 'stats')))?.[1]);
  const before = await sent();
  const statuses = await Promise.all(
    [key, 'another-key'].map(async (each) => {
      return (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(each) })).status;
    }),
  );
  expect(statuses).toEqual([200, 200]);
  expect((await sent()) - before).toBeLessThan(1_000_000);
  const { body } = await callAdmin(gateway, `/admin/v1/customers/${customer}`);
  expect(body.name).toHaveLength(NAME.length);
});
