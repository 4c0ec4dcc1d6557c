/**
 * The configuration of docs/recipes/oauth2-proxy.md. A stand-in sends what oauth2-proxy sends with the settings of the
 * page: Debian has no package of it.
 */
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { send } from '../../console/support.ts';
import { claimsAt, createIssuerKey, sign, startIssuer } from '../../control/admin/issuer.ts';
import { startSystem } from '../../support/system.ts';
import { blockOf, configOf } from './support.ts';

const CONFIG = configOf('oauth2-proxy');
const { jwt, allowed_hosts: allowedHosts } = CONFIG.admin as {
  jwt: { issuer: string; audience: string };
  allowed_hosts: string[];
};
const PROXY: Record<string, unknown> = Object.fromEntries(
  [...blockOf('oauth2-proxy', 'toml').matchAll(/^(\w+) = (.+)$/gm)].map(([, name = '', value = '']) => [
    name,
    JSON.parse(value),
  ]),
);
const { hostname } = new URL(String(PROXY.redirect_url));

async function start() {
  const key = await createIssuerKey('key-1', 'RS256');
  const issuer = await startIssuer(key);
  const { gateway } = await startSystem({
    config: { ...CONFIG, admin: { ...CONFIG.admin, jwt: { ...jwt, jwks_url: issuer.url } } },
  });
  /** Headers of a request that oauth2-proxy passes on for a user. It keeps Host, and X-Forwarded-* of the proxy before it. */
  const headersFor = async (claims: Record<string, unknown>) => {
    const { client_id: aud, oidc_issuer_url: iss } = PROXY;
    const user = { sub: 'anna', email: 'anna@example.com', aud, iss, azp: aud, typ: 'ID', scope: undefined };
    const idToken = await sign(key, claimsAt(systemClock.nowMs(), { ...user, ...claims }));
    return {
      host: hostname,
      cookie: '_oauth2_proxy=sealed',
      'x-forwarded-proto': 'https',
      'x-forwarded-user': 'anna',
      'x-forwarded-email': 'anna@example.com',
      'x-forwarded-groups': 'role:tollgate-console:tollgate:write',
      ...(PROXY.pass_authorization_header === true && { authorization: `Bearer ${idToken}` }),
    };
  };
  const call = (method: string, path: string, headers: Record<string, string>, body?: object) =>
    send(
      gateway.admin ?? '',
      method,
      path,
      { ...headers, ...(body && { 'content-type': 'application/json' }) },
      body && JSON.stringify(body),
    );
  return { gateway, headersFor, call };
}

it('users are signed in as their role allows, and the audit names them', async () => {
  const { headersFor, call } = await start();
  const reader = await headersFor({ sub: 'otto', scp: ['tollgate:read'] });
  const writer = await headersFor({ scp: ['tollgate:read', 'tollgate:write'] });
  const creation = { id: 'new', plan: 'starter' };
  const session = { via: 'authorization', scope: 'read', actor: 'jwt:otto' };
  expect(await call('GET', '/console', reader)).toMatchObject({ status: 200 });
  expect(await call('GET', '/console/session', reader)).toMatchObject({ status: 200, body: session });
  expect(await call('GET', '/status', reader)).toMatchObject({ status: 200 });
  expect(await call('POST', '/admin/v1/customers', reader, creation)).toMatchObject({ status: 403 });
  expect(await call('GET', '/console/session', writer)).toMatchObject({ body: { scope: 'write', actor: 'jwt:anna' } });
  expect(await call('POST', '/admin/v1/customers', writer, creation)).toMatchObject({ status: 201 });
  const audit = await call('GET', '/admin/v1/audit?limit=1', reader);
  expect(audit.body.items).toMatchObject([{ actor: 'jwt:anna', action: 'customer.create', customer: 'new' }]);
});

it('neither a user without a role, nor a token of another client, nor headers with a name get in', async () => {
  const { gateway, headersFor, call } = await start();
  const statusOf = async (headers: Record<string, string>) =>
    (await call('GET', '/admin/v1/customers', headers)).status;
  const { authorization: _, ...withoutToken } = await headersFor({});
  expect(await statusOf(await headersFor({}))).toBe(403);
  expect(await statusOf(await headersFor({ scp: ['tollgate:read'], aud: 'another-client' }))).toBe(401);
  expect(await statusOf(await headersFor({ scp: ['tollgate:read'], iss: 'https://id.example/realms/all' }))).toBe(401);
  expect(await statusOf({ ...withoutToken, 'x-forwarded-access-token': 'x' })).toBe(401);
  const valid = await headersFor({ scp: ['tollgate:read'] });
  expect(await statusOf(valid)).toBe(200);
  expect(await statusOf({ ...valid, host: 'attacker.example' })).toBe(421);
  expect(JSON.stringify(gateway.logs)).not.toContain(valid.authorization?.split('.')[2]);
});

it('both programs of the page agree on issuer, client, address and name, and the pages know when a session has ended', () => {
  expect([PROXY.oidc_issuer_url, PROXY.client_id, [hostname]]).toEqual([jwt.issuer, jwt.audience, allowedHosts]);
  expect(PROXY.upstreams).toEqual(['http://127.0.0.1:8082/']);
  const routes = (PROXY.api_routes as string[]).map((route) => new RegExp(route));
  for (const path of ['/admin/v1/customers', '/status', '/console/session', '/console']) {
    expect(
      routes.some((route) => route.test(path)),
      path,
    ).toBe(path !== '/console');
  }
});
