/**
 * A dashboard that writes records to Redis suspended a customer with `suspended = true`, and nobody was suspended: only
 * `1` counted. Requests went on until somebody looked at the backend's log.
 */
import { expect, test } from 'vitest';
import { bearer } from '../support/admin.ts';
import { startRedisSystem, writeCustomer } from '../support/redis-system.ts';

test('any value of `suspended` but empty, 0 and false suspends the customer', async () => {
  const system = await startRedisSystem();
  const status = async () =>
    (await fetch(`${system.gateway.public}/v1/conversations`, { headers: bearer(system.key) })).status;
  const write = (suspended: string) => writeCustomer(system.redis, system.customer, { suspended });
  for (const suspended of ['true', '1', 'yes', 'TRUE', '2026-01-01T00:00:00Z', ' ']) {
    await write(suspended);
    await expect.poll(status).toBe(403);
    await write('0');
    await expect.poll(status).toBe(200);
  }
  for (const suspended of ['', 'false']) {
    await write('1');
    await expect.poll(status).toBe(403);
    await write(suspended);
    await expect.poll(status).toBe(200);
  }
});
