import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bearer, callAdmin, createCustomerWithKey, createKey } from '../support/admin.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { STORES, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';

describe.each(STORES)('the hourly quota over $name', ({ start }) => {
  let store: TestStore;
  let backend: Backend;
  let gateway: TestGateway;

  beforeEach(async () => {
    store = await start();
    backend = await startBackend((req, res) => {
      const status = req.url?.endsWith('unknown') ? 404 : req.url?.endsWith('status=500') ? 500 : 200;
      res.writeHead(status, { 'Content-Type': 'application/json' }).end('{"data":[]}');
    });
    gateway = await startTestGateway({
      storeUrl: store.url,
      upstreamUrl: backend.url,
      config: { store: { timeout_ms: 10_000 }, overrides: { overridden: { requests_per_hour: 3 } } },
    });
  });

  afterEach(async () => {
    await gateway.close();
    await backend.close();
    await store.close();
  });

  function read(key: string, path = '/v1/conversations') {
    return fetch(gateway.public + path, { headers: bearer(key) });
  }

  it.each([
    ['starter', undefined, 1000],
    ['professional', undefined, 5000],
    ['business', undefined, 20_000],
    ['enterprise', 123_456, 123_456],
    ['starter', 42, 42],
  ])('a customer on %s with its own limit %s has %i requests an hour', async (plan, own, limit) => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan, ...(own && { requests_per_hour: own }) });
    const answer = await read(key);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('ratelimit-policy')).toBe(`"hourly";q=${limit};w=3600`);
    expect(answer.headers.get('x-ratelimit-limit')).toBe(String(limit));
    expect(answer.headers.get('x-ratelimit-remaining')).toBe(String(limit - 1));
    expect(answer.headers.get('ratelimit')).toMatch(new RegExp(`^"hourly";r=${limit - 1};t=3[56]\\d\\d$`));
    const reset = Number(answer.headers.get('x-ratelimit-reset')) - Date.now() / 1000;
    expect(reset).toBeGreaterThan(3500);
    expect(reset).toBeLessThan(3625);
  });

  it('an override of the configuration comes before the plan', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'overridden', plan: 'business' });
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await read(key)).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
  });

  it('all keys of a customer share one quota, and customers do not', async () => {
    const first = await createCustomerWithKey(gateway, { id: 'acme', plan: 'enterprise', requests_per_hour: 3 });
    const second = await createKey(gateway, 'acme');
    const other = await createCustomerWithKey(gateway, { id: 'other', plan: 'enterprise', requests_per_hour: 1 });
    expect((await read(first)).status).toBe(200);
    expect((await read(second)).headers.get('x-ratelimit-remaining')).toBe('1');
    expect((await read(first)).status).toBe(200);
    expect((await read(second)).status).toBe(429);
    expect((await read(first)).status).toBe(429);
    expect((await read(other)).status).toBe(200);
  });

  it('what is refused consumes nothing and never reaches the backend', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'enterprise', requests_per_hour: 2 });
    const headers = bearer(key);
    const refusals = [
      await read(key, '/v1/unknown'),
      await read(key, '/v1/conversations/'),
      await read(key, '/v1/conversations/..%2f'),
      await read(key, '/v2/conversations'),
      await fetch(`${gateway.public}/v1/conversations`, { method: 'POST', headers }),
      await fetch(`${gateway.public}/v1/conversations`, { method: 'POST', headers, body: '{}' }),
      await fetch(`${gateway.public}/v1/conversations`),
      await read('tg_demo_unknown'),
    ];
    expect(refusals.map(({ status }) => status)).toEqual([404, 404, 400, 404, 405, 405, 401, 401]);
    expect(backend.seen).toHaveLength(0);
    const usage = await callAdmin(gateway, '/admin/v1/customers/acme/usage');
    expect(usage.body).toMatchObject({ limit: 2, used: 0, remaining: 2, reset_seconds: 0, window_seconds: 3600 });
    expect([(await read(key)).status, (await read(key)).status, (await read(key)).status]).toEqual([200, 200, 429]);
    expect(backend.seen).toHaveLength(2);
    const full = await callAdmin(gateway, '/admin/v1/customers/acme/usage');
    expect(full.body).toMatchObject({ limit: 2, used: 2, remaining: 0 });
    expect(full.body.reset_seconds).toBeGreaterThan(3500);
  });

  it('every request that was sent counts one: HEAD, and what the backend refuses or does not know', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
    await fetch(`${gateway.public}/v1/conversations`, { method: 'HEAD', headers: bearer(key) });
    await read(key, '/v1/conversations/unknown');
    await read(key, '/v1/conversations?status=500');
    const usage = await callAdmin(gateway, '/admin/v1/customers/acme/usage');
    expect(usage.body.used).toBe(3);
  });

  it('the unit of a request that could not be sent is refunded', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'enterprise', requests_per_hour: 1 });
    await backend.close();
    const answer = await read(key);
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ code: 'upstream_unavailable' });
    await expect.poll(async () => (await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used).toBe(0);
    backend = await startBackend();
  });

  it('a customer without a limit is refused with quota_not_configured, and the reason is logged', async () => {
    const settings = { storeUrl: store.url, upstreamUrl: backend.url };
    await gateway.close();
    gateway = await startTestGateway({ ...settings, config: { plans: { legacy: { requests_per_hour: 5 } } } });
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'legacy' });
    expect((await read(key)).status).toBe(200);

    await gateway.close();
    gateway = await startTestGateway(settings);
    const answer = await read(key);
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({ code: 'quota_not_configured' });
    expect(backend.seen).toHaveLength(1);
    expect(gateway.logs).toContainEqual(
      expect.objectContaining({ customer: 'acme', reason: 'the configuration has no plan "legacy"' }),
    );
  });
});
