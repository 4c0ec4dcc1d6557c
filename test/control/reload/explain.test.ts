import { expect, test } from 'vitest';
import { tollgateHereFor } from '../../cli/support.ts';
import { bearer, callAdmin } from '../../support/admin.ts';
import { readMetric } from '../../support/metrics.ts';
import { startSystem, type TestSystem } from '../../support/system.ts';

const PLANS = { plans: { starter: { requests_per_hour: 20, shadow: { requests_per_hour: 12 } } } };

async function send({ gateway, key }: TestSystem, times: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < times; i++) {
    statuses.push((await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status);
  }
  return statuses;
}

test('explain shows the limit and its origin, the usage, the leases, and recent refusals', async () => {
  const system = await startSystem({ config: PLANS });
  const { gateway } = system;
  const fresh = (await callAdmin(gateway, '/admin/v1/customers/acme/explain')).body;
  expect(fresh).toMatchObject({ usage: { used: 0 }, instance: { refuses_for_seconds: null, refusals: [] } });

  const statuses = await send(system, 25);
  expect(statuses).toEqual([...Array(20).fill(200), ...Array(5).fill(429)]);
  const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/explain');
  expect(body).toMatchObject({
    customer: 'acme',
    plan: 'starter',
    suspended: false,
    limit: 20,
    limit_source: 'plan',
    usage: { limit: 20, used: 20, remaining: 0 },
    instance: { leases: [], refusals: [{ code: 'quota_exceeded', count: 5, key_id: expect.any(String) }] },
  });
  expect(body.instance.refuses_for_seconds).toBeGreaterThan(0);

  const { stdout } = await tollgateHereFor(gateway)('explain', 'acme');
  expect(stdout).toMatch(/^origin +\S+gateway\.yaml:\d+$/m);
  expect(stdout).toMatch(/^used +20$/m);
  expect(stdout).toMatch(/^quota_exceeded +5 /m);
});

test('requests near a limit are counted as near, and a shadow limit that is exceeded is logged once', async () => {
  const system = await startSystem({ config: PLANS });
  await send(system, 25);
  const decisions = await readMetric(system.gateway, 'tollgate_quota_decisions_total');
  const sumOf = (policy: string, outcome: string) =>
    Object.entries(decisions)
      .filter(([labels]) => labels.includes(`policy="${policy}",outcome="${outcome}"`))
      .reduce((sum, [, count]) => sum + count, 0);
  expect([sumOf('hourly', 'allowed'), sumOf('hourly', 'near'), sumOf('hourly', 'denied')]).toEqual([15, 5, 5]);
  expect([sumOf('shadow', 'allowed'), sumOf('shadow', 'shadow_denied')]).toEqual([12, 8]);

  const { logs } = system.gateway;
  const shadow = logs.filter(({ msg }) => /shadow limit/.test(String(msg)));
  expect(shadow).toMatchObject([{ customer: 'acme', limit: 20, shadow_limit: 12, used: 13 }]);
});
