/** Totals by plan: what a gateway collected is in the store once it has closed. */
import { expect, onTestFinished, test } from 'vitest';
import { bearer, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { startTestGateway } from '../support/gateway.ts';
import { startRedis } from '../support/redis-server.ts';

test('totals by plan count a request only if it was sent to the backend', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const backend = await startBackend();
  const gateway = await startTestGateway({ storeUrl: redis.url, upstreamUrl: backend.url });
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  const ask = async () => (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status;
  expect([await ask(), await ask()]).toEqual([200, 200]);
  await backend.close();
  for (let refused = 0; refused < 3; refused++) expect(await ask()).toBeGreaterThanOrEqual(502);
  await gateway.close();

  const sums = new Map<string, number>();
  for (const name of (await redis.command('KEYS', 'tollgate:usage-total:*')) as string[]) {
    const fields = (await redis.command('HGETALL', name)) as string[];
    for (const [at, field] of fields.entries()) {
      if (at % 2 === 0) sums.set(field.slice(3), (sums.get(field.slice(3)) ?? 0) + Number(fields[at + 1]));
    }
  }
  expect(sums.get('starter:requests')).toBe(2);
});
