/** A day or a month beside the hour, as customers and operators meet it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { periodOf } from '../../src/store/period-counts.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { STORES, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';

const HOUR_MS = 3_600_000;
const PLANS = {
  daily: { requests_per_hour: 1000, period: { per: 'day', requests: 3 } },
  monthly: { requests_per_hour: 1000, period: { per: 'month', requests: 3 } },
  metered: { requests_per_hour: 5, period: { per: 'month', requests: 3, beyond: 'allow' } },
  hourly: { requests_per_hour: 1000 },
};
const ROUTES = [
  { path: '/api/v1/conversations', methods: ['GET'] },
  { path: '/api/v1/export', methods: ['GET'], units: 2 },
  { path: '/api/v1/all', methods: ['GET'], units: 4 },
];

/** Of the calendar. */
function present(policy: 'daily' | 'monthly') {
  const { startHour, endHour } = periodOf({ policy, anchorMs: 0 }, Date.now());
  const at = (hour: number) => new Date(hour * HOUR_MS).toISOString();
  return {
    starts_at: at(startHour),
    ends_at: at(endHour),
    seconds: (endHour - startHour) * 3600,
    endMs: endHour * HOUR_MS,
  };
}

describe.each(STORES)('periods over $name', ({ start }) => {
  let store: TestStore;
  let backend: Backend;
  let gateway: TestGateway;

  beforeEach(async () => {
    store = await start();
    backend = await startBackend((_req, res) => res.end('{}'));
    const config = { plans: PLANS, routes: ROUTES as never, store: { timeout_ms: 10_000 } };
    gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url, config });
  });

  afterEach(async () => {
    await gateway.close();
    await backend.close();
    await store.close();
  });

  const read = (key: string, path = '/v1/conversations') => fetch(gateway.public + path, { headers: bearer(key) });
  const usageOf = async (id: string) => (await callAdmin(gateway, `/admin/v1/customers/${id}/usage`)).body;

  it.each(['daily', 'monthly'] as const)(
    'of 50 concurrent requests, as many reach the backend as a %s limit has',
    async (plan) => {
      const key = await createCustomerWithKey(gateway, { id: 'acme', plan });
      const answers = await Promise.all(Array.from({ length: 50 }, () => read(key)));
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
      expect(backend.seen).toHaveLength(3);

      const { ends_at, seconds, endMs } = present(plan);
      const refused = await read(key);
      const retryAfter = Number(refused.headers.get('retry-after'));
      expect(refused.status).toBe(429);
      expect(await refused.json()).toMatchObject({
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: 'Quota exceeded',
        code: 'quota_exceeded',
        detail: `All 3 requests of this ${plan === 'daily' ? 'day' : 'month'} are used. Try again after ${ends_at}.`,
        'violated-policies': [plan],
        resets_at: ends_at,
      });
      expect(refused.headers.get('ratelimit-policy')).toBe(`"${plan}";q=3;w=${seconds}`);
      expect(refused.headers.get('ratelimit')).toBe(`"${plan}";r=0;t=${retryAfter}`);
      expect(refused.headers.get('x-ratelimit-limit')).toBe('3');
      // Within the time that the test took.
      const left = (endMs - Date.now()) / 1000;
      expect(retryAfter).toBeGreaterThanOrEqual(Math.ceil(left) + 1);
      expect(retryAfter).toBeLessThan(left + 600);
    },
  );

  it('a response shows both limits, and X-RateLimit-* the hour', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'monthly' });
    const { headers } = await read(key);
    const { seconds } = present('monthly');
    expect(headers.get('ratelimit-policy')).toBe(`"hourly";q=1000;w=3600, "monthly";q=3;w=${seconds}`);
    expect(headers.get('ratelimit')).toMatch(/^"hourly";r=999;t=\d+, "monthly";r=2;t=\d+$/);
    expect(headers.get('x-ratelimit-limit')).toBe('1000');
    expect(headers.get('x-ratelimit-remaining')).toBe('999');
  });

  it('a refusal names all limits that refuse, and waits for the last one', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'monthly', requests_per_hour: 3 });
    for (let count = 0; count < 3; count++) await read(key);
    const refused = await read(key);
    const { ends_at } = present('monthly');
    expect(await refused.json()).toMatchObject({
      detail: `All 3 requests of the last hour are used. All 3 requests of this month are used. Try again after ${ends_at}.`,
      'violated-policies': ['hourly', 'monthly'],
      resets_at: ends_at,
    });
    const { endMs } = present('monthly');
    expect(Number(refused.headers.get('x-ratelimit-reset'))).toBeGreaterThan(endMs / 1000);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan((endMs - Date.now()) / 1000);
  });

  it('beyond a period that allows it, requests are served and counted as overage; the hour still refuses', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'metered' });
    for (let count = 0; count < 4; count++) expect((await read(key)).status).toBe(200);
    expect((await read(key)).headers.get('ratelimit')).toMatch(/"monthly";r=0;t=\d+$/);
    const refused = await read(key);
    expect(await refused.json()).toMatchObject({ 'violated-policies': ['hourly'] });
    const { starts_at, ends_at } = present('monthly');
    const period = { per: 'month', limit: 3, used: 5, remaining: 0, overage: 2, starts_at, ends_at, beyond: 'allow' };
    expect(await usageOf('acme')).toMatchObject({ used: 5, remaining: 0, period });
    expect(await (await read(key, '/v1/usage')).json()).toMatchObject({ used: 5, period });
    const metrics = await (await fetch(`${gateway.ops}/metrics`)).text();
    expect(metrics).toMatch(/tollgate_quota_decisions_total\{[^}]*policy="monthly",outcome="overage"[^}]*\} 2/);
  });

  it('a reset of the period lets it be used again, and leaves the hour and the history alone', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'daily' });
    for (let count = 0; count < 4; count++) await read(key);
    expect((await read(key)).status).toBe(429);
    const reset = (query: string) => callAdmin(gateway, `/admin/v1/customers/acme/usage${query}`, { method: 'DELETE' });
    expect((await reset('?window=period')).status).toBe(204);
    await expect.poll(async () => (await read(key)).status).toBe(200);
    expect(await usageOf('acme')).toMatchObject({ used: 4, period: { used: 1, remaining: 2 } });
    expect((await reset('')).status).toBe(204);
    await expect.poll(async () => (await usageOf('acme')).used).toBe(0);
    expect(await usageOf('acme')).toMatchObject({ period: { used: 1 } });
    expect((await callAdmin(gateway, '/admin/v1/audit?action=usage.reset')).body.items).toMatchObject([
      { details: null },
      { details: { window: 'period' } },
    ]);
    await createCustomerWithKey(gateway, { id: 'globex', plan: 'hourly' });
    const without = await callAdmin(gateway, '/admin/v1/customers/globex/usage?window=period', { method: 'DELETE' });
    expect(without).toMatchObject({ status: 422, body: { detail: 'The plan of the customer has no period.' } });
  });

  it('units count in the period, too: one that is dearer than it is refused, one that is dearer than the rest waits', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'monthly' });
    expect(await (await read(key, '/api/v1/all')).json()).toMatchObject({
      code: 'cost_exceeds_limit',
      ...{ units: 4, limit: 3, policy: 'monthly' },
    });
    expect((await read(key, '/api/v1/export')).status).toBe(200);
    expect(await (await read(key, '/api/v1/export')).json()).toMatchObject({
      'violated-policies': ['monthly'],
      units: 2,
      resets_at: present('monthly').ends_at,
    });
    expect((await read(key)).status).toBe(200);
    expect((await read(key)).status).toBe(429);
    const metered = await createCustomerWithKey(gateway, { id: 'globex', plan: 'metered' });
    expect((await read(metered, '/api/v1/all')).status).toBe(200);
  });

  it('a changed anchor leads to the count of its own period, and back to the former one', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'daily' });
    for (let count = 0; count < 4; count++) await read(key);
    const anchor = '2026-01-01T12:00:00Z';
    const change = (period_anchor: string | null) =>
      callAdmin(gateway, '/admin/v1/customers/acme', { method: 'PATCH', body: { period_anchor } });
    expect((await change(anchor)).status).toBe(200);
    await expect.poll(async () => (await read(key)).status).toBe(200);
    await change(null);
    await expect.poll(async () => (await read(key)).status).toBe(429);
  });

  it('explain shows the limit of the period, and says when one that is used up ends', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'daily' });
    expect((await callAdmin(gateway, '/admin/v1/customers/acme/explain')).body).toMatchObject({
      admitted: true,
      period: { per: 'day', limit: 3, limit_source: 'plan', beyond: 'refuse' },
      usage: { period: { used: 0, remaining: 3 } },
    });
    for (let count = 0; count < 3; count++) await read(key);
    const { ends_at } = present('daily');
    expect((await callAdmin(gateway, '/admin/v1/customers/acme/explain')).body).toMatchObject({
      admitted: false,
      verdict: `Its requests are refused now: the limit of this day is used up; the next one begins at ${ends_at}.`,
    });
  });
});
