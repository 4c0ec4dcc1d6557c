/** Sessions belong to the store: any gateway and worker serves them, a restart keeps them, and all see them end. */
import { expect, it, onTestFinished } from 'vitest';
import { send } from '../console/support.ts';
import { rewrite, takeOver } from '../control/reload/support.ts';
import { callAdmin } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { EMBEDDED_STORE, REDIS_STORE, STORES } from '../support/gateway.ts';
import { startSystem } from '../support/system.ts';
import { codeOf, createCustomer, createLink, exchange, openSession, startPortalGateway } from './support.ts';

async function startStore(kind = REDIS_STORE) {
  const [store, backend] = [await kind.start(), await startBackend()];
  onTestFinished(() => store.close());
  onTestFinished(() => backend.close());
  return async (config = {}) => {
    const gateway = await startPortalGateway(store.url, backend.url, config);
    onTestFinished(() => gateway.close());
    return gateway;
  };
}

it('a link opens one session if it is opened on two gateways at the same time', async () => {
  const start = await startStore();
  const gateways = [await start(), await start()];
  const [gateway] = gateways;
  if (gateway === undefined) throw new Error('no gateway');
  await createCustomer(gateway, 'acme');
  for (let round = 0; round < 10; round++) {
    const code = codeOf(await createLink(gateway, 'acme'));
    const replies = await Promise.all([...gateways, ...gateways].map(({ portal }) => exchange(portal, code)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
  }
});

it('sessions are served by each gateway, and their end and the writes are counted for all', async () => {
  const start = await startStore();
  const [one, other] = [await start(), await start()];
  await createCustomer(one, 'acme');
  const session = await openSession(one, 'acme');
  // A load balancer keeps the Host, after whose port the cookie is named.
  const behindBalancer = { ...session, host: new URL(one.portal).host };
  const at = (gateway: typeof one, method: string, path: string, body?: string) =>
    send(gateway.portal, method, path, behindBalancer, body);
  expect((await at(other, 'GET', '/portal/v1/keys')).status).toBe(200);
  const { id } = (await at(other, 'GET', '/portal/v1/keys')).body.items[0];
  const rename = (gateway: typeof one, name: number) =>
    at(gateway, 'PATCH', `/portal/v1/keys/${id}`, JSON.stringify({ name: `n${name}` }));
  for (let i = 0; i < 60; i++) expect((await rename(i % 2 ? one : other, i)).status).toBe(200);
  for (const gateway of [one, other]) expect((await rename(gateway, 60)).status).toBe(429);
  await callAdmin(one, '/admin/v1/customers/acme/portal-sessions', { method: 'DELETE' });
  for (const gateway of [one, other]) expect((await at(gateway, 'GET', '/portal/v1/keys')).status).toBe(401);
});

it.each(STORES)('a session survives a restart of the gateway, over $name', async (kind) => {
  const start = await startStore(kind);
  const before = await start();
  await createCustomer(before, 'acme');
  const session = await openSession(before, 'acme');
  const { host } = new URL(before.portal);
  await before.close();
  const after = await start();
  expect((await send(after.portal, 'GET', '/portal/v1/keys', { ...session, host })).status).toBe(200);
});

it('with https, the cookie is Secure, and its name has the prefix that binds it to the host', async () => {
  const start = await startStore(EMBEDDED_STORE);
  const gateway = await start({ portal: { public_url: 'https://keys.example.com' } });
  await createCustomer(gateway, 'acme');
  const link = await createLink(gateway, 'acme');
  expect(link.origin).toBe('https://keys.example.com');
  const host = { host: 'keys.example.com', origin: 'https://keys.example.com' };
  const opened = await exchange(gateway.portal, codeOf(link), host);
  expect(opened.headers['set-cookie']).toEqual([
    expect.stringMatching(
      /^__Host-tollgate_portal=[\w-]{43}; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
    ),
  ]);
  const [cookie = ''] = opened.headers['set-cookie']?.[0]?.split(';') ?? [];
  const binding = { 'x-tollgate-session-binding': opened.body.binding };
  const read = (headers: Record<string, string>) =>
    send(gateway.portal, 'GET', '/portal/v1/usage', { ...host, ...binding, ...headers });
  expect((await read({ cookie })).status).toBe(200);
  expect((await read({ cookie: cookie.replace('__Host-', '') })).status).toBe(401);
});

it('a reload applies title, links and limit; another port needs a restart', async () => {
  const start = await startStore(EMBEDDED_STORE);
  const gateway = await start();
  const settings = async () => (await send(gateway.portal, 'GET', '/portal/settings')).body;
  expect(await settings()).toEqual({
    title: 'Example API',
    logo_url: null,
    home_url: null,
    docs_url: null,
    support_url: null,
    api_url: null,
    accent_color: null,
    key_header: 'Authorization',
    max_keys: 20,
  });
  const urls = {
    home_url: 'http://localhost:3000/#/api',
    docs_url: 'https://example.com/docs',
    support_url: 'https://example.com/help',
    api_url: 'https://api.example.com',
  };
  const changed = { ...gateway.sections.portal, title: 'New', ...urls, max_keys: 1 };
  await rewrite(gateway, { portal: changed, auth: { key_headers: ['X-API-Key', 'Authorization'] } });
  expect(await takeOver(gateway)).toBe('applied');
  const applied = {
    title: 'New',
    logo_url: null,
    ...urls,
    accent_color: null,
    key_header: 'X-API-Key',
    max_keys: 1,
  };
  expect(await settings()).toEqual(applied);
  await rewrite(gateway, {
    portal: { ...changed, title: 'Newer', port: 65_535 },
    auth: { key_headers: ['X-API-Key'] },
  });
  expect(await gateway.reload('signal')).toMatchObject({ result: 'restart_required' });
  expect(await settings()).toEqual(applied);
});

it('without a portal there are neither links nor tokens', async () => {
  const { gateway } = await startSystem({});
  for (const what of ['sessions', 'tokens']) {
    const body = { scopes: ['usage:read'] };
    const refused = await callAdmin(gateway, `/admin/v1/customers/acme/portal-${what}`, { body });
    expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 422, code: 'unprocessable' });
  }
  expect(gateway.portal).toBeUndefined();
});
