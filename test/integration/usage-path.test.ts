/** A caller's own quota: free of charge, also when nothing is left, and the number that is enforced. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { STORES, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';
import { readWindow, startRedisSystem } from '../support/redis-system.ts';

const PATHS = ['/v1/usage', '/api/v1/usage'];

async function readUsage({ public: url }: TestGateway, key: string, path = '/v1/usage') {
  const answer = await fetch(url + path, { headers: bearer(key) });
  const body = JSON.parse(await answer.text());
  return { status: answer.status, headers: answer.headers, body };
}

function read({ public: url }: TestGateway, key: string): Promise<Response> {
  return fetch(`${url}/v1/conversations`, { headers: bearer(key) });
}

describe.each(STORES)('the usage path over $name', ({ start }) => {
  let store: TestStore;
  let backend: Backend;
  let gateway: TestGateway;

  beforeEach(async () => {
    store = await start();
    backend = await startBackend();
    gateway = await openGateway();
  });

  afterEach(async () => {
    await gateway.close();
    await backend.close();
    await store.close();
  });

  function openGateway(settings: Record<string, unknown> = {}): Promise<TestGateway> {
    // What is set here is no section, of which the tests have defaults.
    const config = settings as Record<string, Record<string, unknown>>;
    return startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url, config });
  }

  test.each(PATHS)('%s answers with the whole of the customer’s hour, and nobody keeps the response', async (path) => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
    const unused = await readUsage(gateway, key, path);
    expect(unused.body).toEqual({
      customer: 'acme',
      plan: 'starter',
      limit: 1000,
      used: 0,
      remaining: 1000,
      reset_seconds: 0,
      window_seconds: 3600,
      period: null,
      key: null,
    });
    expect(unused.headers.get('cache-control')).toBe('no-store');
    expect(unused.headers.get('content-type')).toBe('application/json');
    expect(unused.headers.get('x-request-id')).not.toBeNull();

    for (let i = 0; i < 3; i++) await read(gateway, key);
    const { status, body } = await readUsage(gateway, key, path);
    expect(status).toBe(200);
    expect(body).toMatchObject({ used: 3, remaining: 997 });
    expect(body.reset_seconds).toBeGreaterThan(3590);
    expect(body.reset_seconds).toBeLessThan(3625);
  });

  test('reading the usage costs nothing, and never reaches the backend', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'enterprise', requests_per_hour: 2 });
    for (let i = 0; i < 20; i++) {
      expect((await readUsage(gateway, key)).body).toMatchObject({ limit: 2, used: 0, remaining: 2 });
    }
    expect([(await read(gateway, key)).status, (await read(gateway, key)).status]).toEqual([200, 200]);
    expect(backend.seen).toHaveLength(2);
  });

  test('the usage can be read when nothing is left', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'enterprise', requests_per_hour: 1 });
    await read(gateway, key);
    const refused = await read(gateway, key);
    expect(refused.status).toBe(429);
    const { status, body } = await readUsage(gateway, key);
    expect(status).toBe(200);
    expect(body).toMatchObject({ limit: 1, used: 1, remaining: 0 });
    // A caller that waits for this long is not told to wait for less by the refusal.
    expect(Math.abs(body.reset_seconds - Number(refused.headers.get('retry-after')))).toBeLessThanOrEqual(1);
  });

  test('HEAD has the header fields of GET and no content', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
    const { headers } = await readUsage(gateway, key);
    const answer = await fetch(`${gateway.public}/v1/usage`, { method: 'HEAD', headers: bearer(key) });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-length')).toBe(headers.get('content-length'));
    expect(answer.headers.get('content-type')).toBe(headers.get('content-type'));
    expect((await answer.arrayBuffer()).byteLength).toBe(0);
  });

  test('other methods are refused by name, a missing or unknown key by 401, a suspended customer by 403', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
    const url = `${gateway.public}/v1/usage`;
    for (const method of ['POST', 'DELETE', 'OPTIONS']) {
      const answer = await fetch(url, { method, headers: bearer(key) });
      expect(answer.status).toBe(405);
      expect(answer.headers.get('allow')).toBe('GET, HEAD');
    }
    expect((await fetch(url)).status).toBe(401);
    expect((await readUsage(gateway, 'a-key-of-nobody')).body).toMatchObject({ status: 401, code: 'invalid_key' });
  });

  test('it can be put elsewhere, and turned off', async () => {
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
    await gateway.close();
    gateway = await openGateway({ usage_path: '/api/v1/me/quota' });
    const elsewhere = ['/api/v1/me/quota', '/v1/me/quota', ...PATHS];
    const statuses = [];
    for (const path of elsewhere) statuses.push((await readUsage(gateway, key, path)).status);
    expect(statuses).toEqual([200, 200, 404, 404]);

    await gateway.close();
    gateway = await openGateway({ usage_path: null });
    for (const path of PATHS) expect((await readUsage(gateway, key, path)).status).toBe(404);
  });
});

test('the usage counts the requests that were sent, and not the units that a lease holds ahead, while it runs and after', async () => {
  const { redis, backend, gateway, key, customer } = await startRedisSystem({ customer: { plan: 'business' } });
  let storedMost = 0;
  for (let i = 0; i < 100; i++) {
    await read(gateway, key);
    storedMost = Math.max(storedMost, (await readWindow(redis, customer)).used);
  }
  expect(storedMost).toBeGreaterThan(100);

  const sent = { used: 100, remaining: 20_000 - 100 };
  const readings = [];
  const untilMs = performance.now() + 2000;
  while (performance.now() < untilMs) {
    const { used, remaining } = (await readUsage(gateway, key)).body;
    readings.push({ used, remaining });
  }
  expect(backend.seen).toHaveLength(100);
  expect(readings).toEqual(Array(readings.length).fill(sent));
  expect((await callAdmin(gateway, `/admin/v1/customers/${customer}/usage`)).body).toMatchObject(sent);
  expect((await readWindow(redis, customer)).used).toBe(100);
});

test('while the store is unavailable the usage is not known: 503, and never a number', async () => {
  const { redis, gateway, key } = await startRedisSystem();
  expect((await readUsage(gateway, key)).status).toBe(200);
  await redis.kill();
  expect((await readUsage(gateway, key)).body).toMatchObject({ status: 503, code: 'store_unavailable' });
});
