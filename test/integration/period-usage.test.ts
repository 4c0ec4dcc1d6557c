/** What is shown of days and months, and their reset, to clients, operators and in the portal. */
import { describe, expect, test } from 'vitest';
import { tollgateHereFor } from '../cli/support.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { STORES, type TestGateway } from '../support/gateway.ts';
import { startSystem } from '../support/system.ts';

const PERIOD = { per: 'month', requests: 10 };
const PLANS = {
  starter: { requests_per_hour: 100, period: PERIOD },
  metered: { requests_per_hour: 100, period: { ...PERIOD, beyond: 'allow' } },
  plain: { requests_per_hour: 100 },
};
/** Longer than a gateway takes to write who is near its limit. */
const NEAR_WRITTEN = { timeout: 30_000 };

async function send(gateway: TestGateway, key: string, times: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < times; i++) {
    statuses.push((await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status);
  }
  return statuses;
}

/** Returns the calendar month in UTC. */
function thisMonth(): { starts_at: string; ends_at: string } {
  const now = new Date();
  const start = (months: number) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months)).toISOString();
  return { starts_at: start(0), ends_at: start(1) };
}

describe.each(STORES)('over $name', (store) => {
  test('client, operator and portal see the same period, with its overage, and null where the plan has none', async () => {
    const portal = { host: '127.0.0.1', port: 0, public_url: 'http://127.0.0.1', title: 'Example API' };
    const { gateway, key } = await startSystem({ store, config: { plans: PLANS, portal } });
    const metered = await createCustomerWithKey(gateway, { id: 'metered', plan: 'metered' });
    const plain = await createCustomerWithKey(gateway, { id: 'plain', plan: 'plain' });
    expect(await send(gateway, key, 4)).toEqual(Array(4).fill(200));
    expect(await send(gateway, metered, 13)).toEqual(Array(13).fill(200));
    expect(await send(gateway, plain, 1)).toEqual([200]);

    const ofMonth = { per: 'month', limit: 10, ...thisMonth() };
    const expected = {
      acme: { ...ofMonth, used: 4, remaining: 6, overage: 0, beyond: 'refuse' },
      metered: { ...ofMonth, used: 13, remaining: 0, overage: 3, beyond: 'allow' },
      plain: null,
    };
    for (const [id, period] of Object.entries(expected)) {
      const seen = async () => (await callAdmin(gateway, `/admin/v1/customers/${id}/usage`)).body.period;
      await expect.poll(seen, NEAR_WRITTEN).toEqual(period);
      const usagePath = await fetch(`${gateway.public}/v1/usage`, {
        headers: bearer({ acme: key, metered, plain }[id] ?? ''),
      });
      expect(await usagePath.json()).toMatchObject({ period });
      const body = { scopes: ['usage:read'] };
      const { token } = (await callAdmin(gateway, `/admin/v1/customers/${id}/portal-tokens`, { body })).body;
      const inPortal = await fetch(`${gateway.portal}/portal/v1/usage`, { headers: bearer(token) });
      expect(await inPortal.json()).toMatchObject({ period });
    }
    const listed = async () =>
      Object.fromEntries(
        (await callAdmin(gateway, '/admin/v1/usage')).body.items.map(
          (item: { customer: string; period: unknown }) => [item.customer, item.period] as const,
        ),
      );
    await expect.poll(listed, NEAR_WRITTEN).toEqual(expected);
  });

  test('a customer that used more of its month than of its hour is listed as near its month', async () => {
    const { gateway, key } = await startSystem({ store, config: { plans: PLANS } });
    await send(gateway, key, 9);
    const near = async () => (await callAdmin(gateway, '/admin/v1/usage/near?above=80')).body;
    const row = { customer: 'acme', window: 'monthly', limit: 10, used: 9, percent: 90 };
    await expect.poll(near, NEAR_WRITTEN).toMatchObject([row]);
    const [{ reset_seconds }] = await near();
    const left = (Date.parse(thisMonth().ends_at) - Date.now()) / 1000;
    expect(Math.abs(reset_seconds - left)).toBeLessThan(120);
    const { items } = (await callAdmin(gateway, '/admin/v1/usage?above=80')).body;
    expect(items).toMatchObject([{ customer: 'acme', used: 9, percent: 9, period: { used: 9 } }]);
    const { stdout } = await tollgateHereFor(gateway)('usage', 'near');
    expect(stdout).toMatch(/^acme +starter +monthly +9 +10 +90 /m);
  });

  test('the command explains the month, and resets it', async () => {
    const { gateway, key } = await startSystem({ store, config: { plans: PLANS } });
    expect(await send(gateway, key, 11)).toEqual([...Array(10).fill(200), 429]);
    const tollgate = tollgateHereFor(gateway);
    const { stdout } = await tollgate('explain', 'acme');
    expect(stdout).toMatch(
      /^Its requests are refused now: the limit of this month is used up; the next one begins at /,
    );
    expect(stdout).toMatch(/^period +10 per month \(plan\)$/m);
    expect(stdout).toMatch(/^period_origin +\S+gateway\.yaml:\d+$/m);
    expect(stdout).toMatch(/^period_usage +10 of 10 used, until \S+Z$/m);

    const reset = await tollgate('usage', 'reset', 'acme', '--window', 'period', '--yes');
    expect(reset).toMatchObject({
      status: 0,
      stdout: 'The usage of the present day or month of customer acme is reset.\n',
    });
    await expect.poll(() => send(gateway, key, 1)).toEqual([200]);
    const shown = (await tollgate('usage', 'show', 'acme')).stdout;
    expect(shown).toMatch(/^used +11$/m);
    expect(shown).toMatch(/^period +1 of 10 used, until \S+Z$/m);
    const { body } = await callAdmin(gateway, '/admin/v1/customers/acme');
    expect(Math.abs(Date.parse(body.period_reset_at) - Date.now())).toBeLessThan(60_000);
  });

  test('a number or override of the customer is named as what sets its month', async () => {
    const overrides = { vip: { period_requests: 7 } };
    const { gateway } = await startSystem({ store, config: { plans: PLANS, overrides } });
    await createCustomerWithKey(gateway, { id: 'vip', plan: 'starter' });
    await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'PATCH', body: { period_requests: 6 } });
    const explain = async (id: string) => (await callAdmin(gateway, `/admin/v1/customers/${id}/explain`)).body;
    const own = { limit_source: 'customer', limit: 6 };
    expect(await explain('acme')).toMatchObject({
      period: own,
      period_origin: 'customer record: period_requests',
      origin: expect.stringMatching(/gateway\.yaml:\d+$/),
    });
    expect(await explain('vip')).toMatchObject({
      period: { limit_source: 'override', limit: 7 },
      period_origin: expect.stringMatching(/gateway\.yaml:\d+$/),
    });
  });
});
