/** `units` of a route, as clients, operators and other proxies see them. */
import { describe, expect, it, onTestFinished, test } from 'vitest';
import { ask, FORMS, refusalOf, startCheckSystem, usedOf, verify } from '../check/support.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { STORES, type StoreKind } from '../support/gateway.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { startRedisSystem } from '../support/redis-system.ts';
import { startSystem } from '../support/system.ts';

const ROUTES = [
  { path: '/one', methods: ['GET', 'POST'] },
  { path: '/five', methods: ['GET', 'POST'], units: 5 },
  { path: '/five', methods: ['DELETE'], units: 7 },
  { path: '/thousand', methods: ['GET'], units: 1000 },
  { path: '/free', methods: ['GET'], units: 0 },
  { path: '/scoped', methods: ['GET'], units: 0, scope: 'read' },
];
const CONFIG = { routes: ROUTES, aliases: {}, usage_path: '/usage' } as never;

async function startUnits(store?: StoreKind, limit = 12, config: Record<string, unknown> = {}) {
  const customer = { id: 'acme', plan: 'enterprise', requests_per_hour: limit };
  const sections = { ...(CONFIG as object), ...config } as never;
  const system = await startSystem({ config: sections, customer, ...(store && { store }) });
  const { gateway, key } = system;
  return {
    ...system,
    send: (path: string, method = 'GET') => fetch(gateway.public + path, { method, headers: bearer(key) }),
    raw: (path: string) =>
      exchangeRaw(gateway.public, `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`),
  };
}

describe.each(STORES)('with $name', (store) => {
  it('a request takes the units of its route, by its method, and headers count units', async () => {
    const { gateway, send } = await startUnits(store, 100);
    for (const [path, method, left] of [
      ['/five', 'GET', 95],
      ['/five', 'DELETE', 88],
      ['/one', 'POST', 87],
    ] as const) {
      const { status, headers } = await send(path, method);
      expect([status, headers.get('x-ratelimit-remaining')]).toEqual([200, String(left)]);
      expect(headers.get('ratelimit-policy')).toBe('"hourly";q=100;w=3600');
    }
    expect(await usedOf(gateway)).toBe(13);
  });

  it('a heavier request is refused with its own wait and units, and the lighter ones pass', async () => {
    const { backend, gateway, raw, send } = await startUnits(store);
    for (const path of ['/five', '/five']) expect((await send(path)).status).toBe(200);
    const refused = await raw('/five');
    expect(refused.status).toBe(429);
    const document = JSON.parse(refused.body);
    expect(document).toMatchObject({
      code: 'quota_exceeded',
      units: 5,
      'violated-policies': ['hourly'],
      detail: expect.stringMatching(
        /^This request takes 5 units, and 2 of the 12 of the last hour are left\. Try again/,
      ),
    });
    const seconds = Number(refused.headers['retry-after']);
    expect(seconds).toBeGreaterThan(3590);
    expect(refused.headers).toMatchObject({
      ratelimit: `"hourly";r=2;t=${seconds}`,
      'x-ratelimit-limit': '12',
      'x-ratelimit-remaining': '2',
    });
    expect((await send('/one')).status).toBe(200);
    // From memory now, and with what is left after that.
    expect((await raw('/five')).headers['x-ratelimit-remaining']).toBe('1');
    expect((await send('/one')).status).toBe(200);
    const last = await raw('/one');
    expect(last.status).toBe(429);
    expect(JSON.parse(last.body)).not.toHaveProperty('units');
    expect(last.headers['x-ratelimit-remaining']).toBe('0');
    expect(backend.seen).toHaveLength(4);
    expect(await usedOf(gateway)).toBe(12);
  });

  it('a request that takes more than the limit is 403 with units, limit and policy, and free of charge', async () => {
    const { backend, gateway, raw } = await startUnits(store, 999);
    const { status, headers, body } = await raw('/thousand');
    expect(status).toBe(403);
    expect(JSON.parse(body)).toEqual({
      type: 'urn:tollgate:problem:cost-exceeds-limit',
      title: 'Request exceeds the limit',
      status: 403,
      detail: 'This request takes 1000 units, and the hourly limit of this account is 999: waiting does not help.',
      instance: expect.stringMatching(/^urn:uuid:/),
      request_id: headers['x-request-id'],
      code: 'cost_exceeds_limit',
      units: 1000,
      limit: 999,
      policy: 'hourly',
    });
    expect(headers).toMatchObject({ 'content-type': 'application/problem+json', 'cache-control': 'no-store' });
    expect(headers['retry-after']).toBeUndefined();
    expect(backend.seen).toEqual([]);
    expect(await usedOf(gateway)).toBe(0);
    await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'PATCH', body: { requests_per_hour: 1000 } });
    await expect.poll(async () => (await raw('/thousand')).status).toBe(200);
    expect(await usedOf(gateway)).toBe(1000);
  });

  it('a request of 0 units passes when nothing is left, without RateLimit headers', async () => {
    const { gateway, send } = await startUnits(store, 1);
    expect((await send('/one')).status).toBe(200);
    expect((await send('/one')).status).toBe(429);
    const { status, headers } = await send('/free');
    expect(status).toBe(200);
    expect([...headers.keys()].filter((name) => name.includes('ratelimit'))).toEqual([]);
    expect(await usedOf(gateway)).toBe(1);
  });
});

describe('a request of 0 units', () => {
  it('makes no store call for the quota', async () => {
    const { gateway, key, redis } = await startRedisSystem({ config: CONFIG });
    const send = async () => (await fetch(`${gateway.public}/free`, { headers: bearer(key) })).status;
    for (let i = 0; i < 10; i++) expect(await send()).toBe(200);
    expect(await redis.command('EXISTS', 'tollgate:window:{acme}')).toBe(0);
    // The key is known, so no store is needed any more.
    await redis.kill();
    for (let i = 0; i < 10; i++) expect(await send()).toBe(200);
  });

  it.each(['deny', 'local'])('is served while the store is away, on_error: %s', async (onError) => {
    const config = { ...(CONFIG as object), store: { on_error: onError } } as never;
    const { gateway, key, redis } = await startRedisSystem({ config });
    const send = async (path: string) => (await fetch(gateway.public + path, { headers: bearer(key) })).status;
    expect(await send('/free')).toBe(200);
    await redis.kill();
    await expect.poll(() => send('/one')).toBe(onError === 'deny' ? 503 : 200);
    expect(await send('/free')).toBe(200);
  });

  it('needs a customer with a limit, too', async () => {
    const { gateway, key } = await startRedisSystem({ config: CONFIG, customer: { plan: 'enterprise' } });
    const { status, body } = await exchangeRaw(
      gateway.public,
      `GET /free HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    );
    expect([status, JSON.parse(body).code]).toEqual([403, 'quota_not_configured']);
  });

  it('passes every other check: key, scope, suspension, burst', async () => {
    const plans = {
      enterprise: { requests_per_hour: 'custom', burst_per_second: 1 },
      starter: { requests_per_hour: 5 },
    };
    const { gateway, send } = await startUnits(undefined, 1, { plans });
    expect((await fetch(`${gateway.public}/free`)).status).toBe(401);
    const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body: { scopes: ['write'] } });
    expect((await fetch(`${gateway.public}/scoped`, { headers: bearer(body.key) })).status).toBe(403);
    const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await send('/free')).status));
    expect(statuses).toContain(429);
    await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'PATCH', body: { suspended: true } });
    await expect.poll(async () => (await send('/free')).text()).toContain('customer_suspended');
  });

  it('holds a place among the requests in progress', async () => {
    const plans = { enterprise: { requests_per_hour: 'custom', max_concurrent: 1 } };
    const release = Promise.withResolvers<void>();
    const config = { ...(CONFIG as object), plans } as never;
    const customer = { id: 'acme', plan: 'enterprise', requests_per_hour: 5 };
    const { backend, gateway, key } = await startSystem({
      config,
      customer,
      answer: (_req, res) => void release.promise.then(() => res.end()),
    });
    onTestFinished(() => release.resolve());
    const send = async () => (await fetch(`${gateway.public}/free`, { headers: bearer(key) })).status;
    const first = send();
    await expect.poll(() => backend.seen.length).toBe(1);
    expect(await send()).toBe(429);
    release.resolve();
    expect(await first).toBe(200);
    await expect.poll(send).toBe(200);
  });
});

it('an explanation says from how many units on requests are refused', async () => {
  const { gateway, send } = await startUnits(undefined, 1004);
  const verdict = async () => (await callAdmin(gateway, '/admin/v1/customers/acme/explain')).body.verdict;
  expect(await verdict()).toBe('Its requests are admitted now.');
  await send('/five');
  expect(await verdict()).toBe('Its requests are admitted now, except those that take more than 999 units.');
});

it('a heavy request that cannot be sent gives all of its units back', async () => {
  const { backend, gateway, send } = await startUnits(undefined, 100);
  await backend.close();
  expect((await send('/five')).status).toBe(503);
  await expect.poll(() => usedOf(gateway)).toBe(0);
});

it('the access log has the units of a route that takes others than 1, also of a refused request', async () => {
  const { gateway, send } = await startUnits();
  for (const path of ['/one', '/five', '/free', '/thousand', '/usage']) await send(path);
  const lines = () => gateway.logs.filter(({ msg }) => msg === 'request');
  await expect.poll(() => lines().length).toBe(5);
  expect(lines().map(({ route, units, quota }) => [route, units, quota])).toEqual([
    ['/one', undefined, 'store'],
    ['/five', 5, 'store'],
    ['/free', 0, undefined],
    ['/thousand', 1000, undefined],
    ['/usage', undefined, undefined],
  ]);
});

describe('the check listener', () => {
  const config = { routes: ROUTES, aliases: {} } as never;

  test.each(FORMS)('decides by units: $name', async ({ ask: askForm, codeOf }) => {
    const { gateway, key } = await startCheckSystem({ limit: 12, config });
    const send = (target: string, headers = bearer(key)) => askForm(gateway, 'GET', target, headers);
    expect((await send('/five')).headers['x-ratelimit-remaining']).toBe('7');
    expect((await send('/five')).status).toBe(200);
    expect(codeOf(await send('/five'))).toBe('quota_exceeded');
    expect(codeOf(await send('/thousand'))).toBe('cost_exceeds_limit');
    const free = await send('/free');
    expect([free.status, free.headers.ratelimit, free.headers['x-tollgate-customer']]).toEqual([
      200,
      undefined,
      'acme',
    ]);
    expect(await usedOf(gateway)).toBe(10);
  });

  test('a refusal for nginx has the members of the document', async () => {
    const { gateway, key } = await startCheckSystem({ limit: 4, config });
    const headers = { ...bearer(key), 'X-Original-Method': 'GET', 'X-Original-URI': '/five' };
    const refusal = await ask(gateway, '/nginx', { headers });
    expect(refusalOf(refusal).document).toMatchObject({ units: 5, limit: 4, policy: 'hourly' });
    const { status, body } = await ask(gateway, '/refusal', {
      headers: { 'X-Tollgate-Refusal': refusal.headers['x-tollgate-refusal'] ?? '' },
    });
    expect([status, body.code, body.units]).toEqual([403, 'cost_exceeds_limit', 5]);
  });

  test('a dry run says the same, and uses nothing', async () => {
    const { gateway, key } = await startCheckSystem({ limit: 12, config });
    const dryRun = async (path?: string) => (await verify(gateway, { key, path, dry_run: true })).body;
    for (let i = 0; i < 4; i++) expect(await dryRun('/five')).toMatchObject({ allowed: true, remaining: 12 });
    for (let i = 0; i < 2; i++) expect((await verify(gateway, { key, path: '/five' })).body.allowed).toBe(true);
    const refused = await dryRun('/five');
    expect(refused.problem).toMatchObject({
      code: 'quota_exceeded',
      units: 5,
      detail: expect.stringContaining('2 of'),
    });
    expect(await dryRun('/one')).toMatchObject({ allowed: true, remaining: 2 });
    expect(await dryRun('/free')).toMatchObject({ allowed: true, limit: null, remaining: null });
    expect((await dryRun('/thousand')).problem).toMatchObject({ code: 'cost_exceeds_limit', units: 1000, limit: 12 });
    // Without a path there is no route: one unit.
    expect((await verify(gateway, { key })).body).toMatchObject({ allowed: true, remaining: 1 });
    expect(await usedOf(gateway)).toBe(11);
  });
});
