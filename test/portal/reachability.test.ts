/**
 * What is of another customer is reached by no path of the portal: each route, without a session, with the session of
 * another customer, without the scope, after the end of a session, of a suspended and of a deleted customer. Every
 * response is one that docs/openapi/portal.yaml declares.
 */
import { expect, it } from 'vitest';
import { PORTAL_ROUTES } from '../../src/api/portal/portal-routes.ts';
import { isSecurityHeader } from '../../src/http/problems/security-headers.ts';
import { type Received, send } from '../console/support.ts';
import { type Contract, readContract } from '../openapi/contract.ts';
import { callAdmin } from '../support/admin.ts';
import {
  codeOf,
  createCustomer,
  createLink,
  createToken,
  EVERY_SCOPE,
  exchange,
  openSession,
  overEachStore,
  type PortalGateway,
  type Headers as SessionHeaders,
} from './support.ts';

const FRAMING = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding'];
const CONTRACT: Contract = readContract(
  'portal.yaml',
  (header) => !FRAMING.includes(header) && !isSecurityHeader(header),
);

interface Route {
  readonly method: string;
  readonly path: string;
  readonly body: object | undefined;
  readonly scope: string;
  readonly success: number;
}

const BODIES: Readonly<Record<string, object>> = {
  'POST /portal/v1/keys': { name: 'made' },
  'PATCH /portal/v1/keys/:keyId': { name: 'changed' },
  'POST /portal/v1/keys/:keyId/rotate': { grace_seconds: 60 },
};

/** Changes last, so that the reads find what is there. */
const ROUTES: readonly Route[] = Object.entries<{ readonly scope?: string; readonly status?: number; reply?: unknown }>(
  PORTAL_ROUTES,
).flatMap(([endpoint, { scope, status, reply }]) => {
  const [method = '', path = ''] = endpoint.split(' ');
  const success = reply === undefined ? 204 : (status ?? 200);
  return scope === undefined ? [] : [{ method, path, body: BODIES[endpoint], scope, success }];
});
const WITH_KEY = ROUTES.filter(({ path }) => path.includes(':keyId'));
const CHANGES = ROUTES.filter(({ method }) => method !== 'GET');

/** Secrets that are not valid: after 30 of them, the same is told as 429. */
const REFUSED = [401, 429];

/** Calls a route, and holds the response against the OpenAPI file. */
async function call(gateway: PortalGateway, route: Route, headers: SessionHeaders, keyId = 'key_none') {
  const target = route.path.replace(':keyId', encodeURIComponent(keyId));
  const sent = { ...headers, ...(route.body && { 'content-type': 'application/json' }) };
  const received = await send(gateway.portal, route.method, target, sent, route.body && JSON.stringify(route.body));
  const operation = CONTRACT.operation(route.method, route.path.replace(':keyId', '{key_id}'));
  expect(CONTRACT.faultsOf(operation, asFetched(received)), `${route.method} ${target} ${received.status}`).toEqual([]);
  return received;
}

function asFetched({ status, headers, body }: Received) {
  const text = body === '' ? '' : JSON.stringify(body);
  return { status, headers: new Headers(headers as Record<string, string>), text };
}

async function keysOf(gateway: PortalGateway, customer: string) {
  const { body } = await callAdmin(gateway, `/admin/v1/customers/${customer}/keys`);
  return body.items;
}

overEachStore('what a customer has', (system) => {
  let customers = 0;
  const newCustomer = async () => {
    const id = `customer-${++customers}`;
    await createCustomer(system().gateway, id);
    return { id, key: (await keysOf(system().gateway, id))[0] };
  };

  it('is reached with its own session and token, by every route', async () => {
    const { gateway } = system();
    for (const kind of ['session', 'token']) {
      const { id } = await newCustomer();
      const headers =
        kind === 'session'
          ? await openSession(gateway, id)
          : { authorization: `Bearer ${await createToken(gateway, id)}` };
      for (const route of ROUTES) {
        const [key] = await keysOf(gateway, id);
        expect((await call(gateway, route, headers, key.id)).status, route.path).toBe(route.success);
      }
    }
  });

  it('is not reached with the session or token of another customer', async () => {
    const { gateway } = system();
    const victim = await newCustomer();
    const other = await newCustomer();
    const before = await keysOf(gateway, victim.id);
    for (const headers of [
      await openSession(gateway, other.id),
      { authorization: `Bearer ${await createToken(gateway, other.id)}` },
    ]) {
      for (const route of WITH_KEY) {
        const refused = await call(gateway, route, headers, victim.key.id);
        expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 404, code: 'not_found' });
        const unknown = await call(gateway, route, headers, 'key_that_never_was');
        expect(unknown.body.detail, 'whether the key exists cannot be told').toBe(refused.body.detail);
      }
      for (const route of ROUTES.filter((each) => !WITH_KEY.includes(each))) {
        const { status, body } = await call(gateway, route, headers);
        expect(status).toBe(route.success);
        const text = JSON.stringify(body);
        for (const secret of [victim.id, victim.key.id]) expect(text).not.toContain(secret);
      }
    }
    expect(await keysOf(gateway, victim.id)).toEqual(before);
  });

  it('is not reached without a session: no credentials, wrong ones, and none that is of another kind', async () => {
    const { gateway } = system();
    const { id, key } = await newCustomer();
    const session = await openSession(gateway, id);
    const { cookie = '', 'x-tollgate-session-binding': binding = '', ...page } = session;
    const other = await openSession(gateway, (await newCustomer()).id);
    const [name, value = ''] = cookie.split('=');
    const code = codeOf(await createLink(gateway, id));
    const token = await createToken(gateway, id);
    const attempts: SessionHeaders[] = [
      page,
      { ...page, cookie },
      { ...page, 'x-tollgate-session-binding': binding },
      { ...page, cookie, 'x-tollgate-session-binding': other['x-tollgate-session-binding'] ?? '' },
      { ...page, cookie: `${name}=${token}`, 'x-tollgate-session-binding': binding },
      { ...page, cookie: `${name}=${code}`, 'x-tollgate-session-binding': binding },
      ...['', '__proto__', 'a'.repeat(43), `${value}x`, '%00', '"', 'x'.repeat(4000)].map((bad) => ({
        ...page,
        cookie: `${name}=${bad}`,
        'x-tollgate-session-binding': binding,
      })),
      ...[code, value, `${token}=`, token.toLowerCase(), 'tg_demo_starter', '__proto__'].map((bad) => ({
        authorization: `Bearer ${bad}`,
      })),
    ];
    for (const headers of attempts) {
      for (const route of ROUTES) {
        const { status } = await call(gateway, route, headers, key.id);
        expect(REFUSED, JSON.stringify(headers)).toContain(status);
      }
    }
    expect(await keysOf(gateway, id)).toEqual([key]);
  });

  it.each(['session', 'token'])('needs the scope of the route, which no other scope includes: %s', async (kind) => {
    const { gateway } = system();
    const { id, key } = await newCustomer();
    for (const missing of EVERY_SCOPE) {
      const body = { scopes: EVERY_SCOPE.filter((scope) => scope !== missing) };
      const headers =
        kind === 'session'
          ? await openSession(gateway, id, body)
          : { authorization: `Bearer ${await createToken(gateway, id, body)}` };
      for (const route of ROUTES.filter(({ scope }) => scope === missing)) {
        const refused = await call(gateway, route, headers, key.id);
        expect({ status: refused.status, code: refused.body.code }).toEqual({
          status: 403,
          code: 'insufficient_scope',
        });
        expect(refused.headers['www-authenticate']).toContain(`scope="${missing}"`);
      }
    }
    expect(await keysOf(gateway, id)).toEqual([key]);
  });

  it('can be seen, but not changed, while the customer is suspended', async () => {
    const { gateway } = system();
    const { id, key } = await newCustomer();
    const session = await openSession(gateway, id);
    const suspend = (suspended: boolean) =>
      callAdmin(gateway, `/admin/v1/customers/${id}`, { method: 'PATCH', body: { suspended } });
    await suspend(true);
    for (const route of ROUTES) {
      const { status, body } = await call(gateway, route, session, key.id);
      if (!CHANGES.includes(route)) expect(status).toBe(200);
      else expect({ status, code: body.code }).toEqual({ status: 403, code: 'customer_suspended' });
    }
    expect(await keysOf(gateway, id)).toEqual([key]);
    expect((await send(gateway.portal, 'GET', '/portal/session', session)).body.suspended).toBe(true);
    await suspend(false);
    expect((await send(gateway.portal, 'GET', '/portal/session', session)).body.suspended).toBe(false);
  });

  it.each([
    ['ended by the operator', (id: string) => ({ path: `/admin/v1/customers/${id}/portal-sessions` })],
    ['of a deleted customer', (id: string) => ({ path: `/admin/v1/customers/${id}` })],
  ])('is not reached with a session or token that was %s, not even after it is created again', async (_, target) => {
    const { gateway } = system();
    const { id } = await newCustomer();
    const holders = [
      await openSession(gateway, id),
      { authorization: `Bearer ${await createToken(gateway, id)}` },
      { authorization: `Bearer ${await createToken(gateway, id, { ttl_seconds: 86_400 })}` },
    ];
    const { path } = target(id);
    expect((await callAdmin(gateway, path, { method: 'DELETE' })).status).toBe(204);
    for (const again of [false, true]) {
      if (again && path.endsWith(id)) await createCustomer(gateway, id);
      for (const headers of holders) {
        for (const route of ROUTES) expect(REFUSED).toContain((await call(gateway, route, headers)).status);
      }
    }
  });

  it('is not reached with a session, token or link that has expired', async () => {
    const { gateway } = system();
    const { id, key } = await newCustomer();
    const short = { ttl_seconds: 1 };
    const token = { authorization: `Bearer ${await createToken(gateway, id, short)}` };
    const session = await openSession(gateway, id, { ttl_seconds: 5 });
    const code = codeOf(await createLink(gateway, id, short));
    const statusOf = async (headers: SessionHeaders) =>
      (await send(gateway.portal, 'GET', '/portal/session', headers)).status;
    for (const headers of [token, session]) {
      await expect.poll(() => statusOf(headers)).toSatisfy((status) => REFUSED.includes(status));
    }
    for (const route of ROUTES) {
      for (const headers of [token, session])
        expect(REFUSED).toContain((await call(gateway, route, headers, key.id)).status);
    }
    await expect
      .poll(async () => (await exchange(gateway.portal, code)).status)
      .toSatisfy((status) => REFUSED.includes(status));
  });
});

it('every path of the OpenAPI file is one of the table, and the other way round', () => {
  const declared = CONTRACT.operations.filter(({ method }) => method !== 'HEAD');
  const named = declared.map(({ method, path }) => `${method} ${path.replace('{key_id}', ':keyId')}`);
  expect(named.toSorted()).toEqual(Object.keys(PORTAL_ROUTES).toSorted());
});
