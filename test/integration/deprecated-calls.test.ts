/** Who still calls a route that ends: on the command line, in the admin API and in the portal. */
import { expect, it } from 'vitest';
import { ask as check, startCheckSystem } from '../check/support.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { REDIS_STORE } from '../support/gateway.ts';
import { startSystem } from '../support/system.ts';

const LIFE = { deprecated_at: '2025-01-01T00:00:00Z', successor: 'https://a.example/v2' };
const ROUTES = [
  { path: '/old/{id}', methods: ['GET'], ...LIFE },
  { path: '/gone', methods: ['GET'], sunset_at: '2025-06-01T00:00:00Z' },
  { path: '/announced', methods: ['GET'], deprecated_at: '2126-01-01T00:00:00Z' },
  { path: '/open', methods: ['GET'], key: 'none', ...LIFE },
  { path: '/replaced', methods: ['GET'], successor: LIFE.successor },
  { path: '/plain', methods: ['GET'] },
];
const PATH = '/admin/v1/routes/deprecated/customers';
/** Counts are written every 10 s. */
const WRITTEN = { timeout: 40_000, interval: 200 };

it('calls and refusals after the sunset are counted by customer and route, and a customer sees its own', async () => {
  const portal = { host: '127.0.0.1', port: 0, public_url: 'http://127.0.0.1' };
  const config = { routes: ROUTES as never, aliases: {}, portal };
  const { gateway, key } = await startSystem({ store: REDIS_STORE, config });
  const other = await createCustomerWithKey(gateway, { id: 'other', plan: 'business' });
  const startedMs = Date.now();
  for (const [token, path] of [
    [key, '/old/1'],
    [key, '/old/2'],
    [key, '/gone'],
    [key, '/announced'],
    [key, '/open'],
    [key, '/replaced'],
    [key, '/plain'],
    ['unknown-key', '/old/1'],
    [other, '/old/1'],
  ] as const) {
    await (await fetch(gateway.public + path, { headers: bearer(token) })).text();
  }
  const items = async () => (await callAdmin(gateway, PATH)).body.items;
  await expect.poll(async () => (await items()).length, WRITTEN).toBe(4);
  const acme = { customer: 'acme', customer_name: null, plan: 'starter', count: 1, gone: 0 };
  const expected = [
    { ...acme, route: '/announced' },
    { ...acme, route: '/gone', count: 0, gone: 1 },
    { ...acme, route: '/old/{id}', count: 2 },
    { ...acme, route: '/old/{id}', customer: 'other', plan: 'business' },
  ];
  const withTime = expected.map((each) => ({ ...each, last_at: expect.any(String) }));
  expect(await items()).toEqual(expect.arrayContaining(withTime));
  const lastMs = Date.parse((await items())[0].last_at);
  expect(lastMs >= startedMs - 1000 && lastMs <= Date.now() + 1000).toBe(true);

  const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/portal-tokens', {
    body: { scopes: ['usage:read'] },
  });
  const own = await fetch(`${gateway.portal}/portal/v1/routes/deprecated`, { headers: bearer(body.token) });
  const { items: ownItems } = (await own.json()) as { items: object[] };
  expect(ownItems).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ route: '/old/{id}', count: 2, gone: 0, sunset_at: null, ...LIFE }),
      expect.objectContaining({
        route: '/gone',
        count: 0,
        gone: 1,
        sunset_at: '2025-06-01T00:00:00Z',
        successor: null,
      }),
      expect.objectContaining({ route: '/announced', count: 1 }),
    ]),
  );
  await callAdmin(gateway, '/admin/v1/customers/acme', { method: 'DELETE' });
  expect(await items()).toMatchObject([{ customer: 'other', route: '/old/{id}' }]);
});

it('an admitted check counts as a call, and a dry run does not', async () => {
  const { gateway, key } = await startCheckSystem({ config: { routes: ROUTES as never, aliases: {} } });
  await check(gateway, '/ext-authz/old/1', { headers: bearer(key) });
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ key, path: '/old/1', dry_run: true });
  expect((await check(gateway, '/verify', { method: 'POST', headers, body })).status).toBe(200);
  await expect
    .poll(async () => (await callAdmin(gateway, PATH)).body.items, WRITTEN)
    .toMatchObject([{ customer: 'acme', route: '/old/{id}', count: 1, gone: 0 }]);
});
