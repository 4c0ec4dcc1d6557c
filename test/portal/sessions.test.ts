/** A link opens a session of one customer once; sessions and tokens end when they must, in every gateway. */
import { expect, it } from 'vitest';
import { send } from '../console/support.ts';
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
  PUBLIC_URL,
  sessionOf,
} from './support.ts';

overEachStore('a link', (system) => {
  it('opens a session for its customer, which shows usage and keys, and changes keys', async () => {
    const { gateway } = system();
    await createCustomer(gateway, 'acme');
    const link = await createLink(gateway, 'acme', { user: 'eva@example.com', return_url: 'https://example.com/#/me' });
    expect(link.href).toMatch(new RegExp(`^${PUBLIC_URL}/portal#code=[\\w-]{43}$`));

    const opened = await exchange(gateway.portal, codeOf(link));
    expect(opened.status).toBe(200);
    expect(opened.body).toEqual({
      customer: 'acme',
      customer_name: null,
      suspended: false,
      scopes: EVERY_SCOPE,
      user: 'eva@example.com',
      return_url: 'https://example.com/#/me',
      expires_at: expect.any(String),
      binding: expect.stringMatching(/^[\w-]{43}$/),
    });
    const { port } = new URL(gateway.portal);
    expect(opened.headers['set-cookie']).toEqual([
      expect.stringMatching(
        new RegExp(`^tollgate_portal_${port}=[\\w-]{43}; Max-Age=3[56]\\d\\d; Path=/; HttpOnly; SameSite=Strict$`),
      ),
    ]);
    const session = sessionOf(opened);
    const get = (path: string) => send(gateway.portal, 'GET', path, session);
    const change = (method: string, path: string, body?: object) =>
      send(gateway.portal, method, path, session, body && JSON.stringify(body));

    const { binding: _, ...shown } = opened.body;
    expect((await get('/portal/session')).body).toEqual(shown);
    expect((await get('/portal/v1/usage')).body).toMatchObject({ limit: 1000, used: 0, window_seconds: 3600 });
    expect((await get('/portal/v1/usage/history')).body).toMatchObject({ customer: 'acme', step: 'hour' });
    expect((await get('/portal/v1/keys')).body.items).toHaveLength(1);

    const created = await change('POST', '/portal/v1/keys', { name: 'ci' });
    expect(created.status).toBe(201);
    const restrictions = ['scopes', 'allowed_addresses', 'requests_per_hour'];
    const members = ['key', 'id', 'prefix', 'name', 'created_at', 'expires_at', ...restrictions, 'example_url'];
    expect(Object.keys(created.body)).toEqual(members);
    const { id } = created.body;
    const renamed = await change('PATCH', `/portal/v1/keys/${id}`, { name: 'build' });
    expect(renamed.body).toMatchObject({ id, name: 'build', state: 'live' });
    const rotated = await change('POST', `/portal/v1/keys/${id}/rotate`);
    expect(rotated.status).toBe(201);
    expect(rotated.body).toMatchObject({ name: 'build', replaces: id });
    expect(rotated.headers.location).toBeUndefined();
    expect((await change('DELETE', `/portal/v1/keys/${id}`)).status).toBe(204);

    const { body } = await callAdmin(gateway, '/admin/v1/audit?customer=acme&limit=6');
    expect(body.items).toMatchObject([
      { action: 'key.revoke', actor: 'portal:acme', key_id: id, details: { user: 'eva@example.com' } },
      {
        action: 'key.rotate',
        actor: 'portal:acme',
        details: { user: 'eva@example.com', replaced_by: rotated.body.id },
      },
      { action: 'key.update', actor: 'portal:acme', details: { name: 'build', user: 'eva@example.com' } },
      { action: 'key.create', actor: 'portal:acme', details: { name: 'ci', user: 'eva@example.com' } },
      { action: 'portal_session.open', actor: 'portal:acme', from: '127.0.0.1', details: { user: 'eva@example.com' } },
      { action: 'portal_session.create', actor: 'token', details: { user: 'eva@example.com' } },
    ]);
    expect(body.items[5].details.id).toBe(body.items[4].details.id);

    expect((await change('DELETE', '/portal/session')).status).toBe(204);
    expect((await get('/portal/session')).status).toBe(401);
  });

  it('is good once, also for several browsers at the same time', async () => {
    const { gateway } = system();
    await createCustomer(gateway, 'once');
    const code = codeOf(await createLink(gateway, 'once'));
    const replies = await Promise.all(Array.from({ length: 8 }, () => exchange(gateway.portal, code)));
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 401, 401, 401, 401, 401, 401, 401]);
  });
});

overEachStore('a token', (system) => {
  it('is a bearer token for the API, and neither a code nor a cookie', async () => {
    const { gateway } = system();
    await createCustomer(gateway, 'tokens');
    const token = await createToken(gateway, 'tokens', { scopes: ['usage:read'] });
    const headers = { authorization: `Bearer ${token}` };
    expect((await send(gateway.portal, 'GET', '/portal/v1/usage', headers)).status).toBe(200);
    const refused = await send(gateway.portal, 'GET', '/portal/v1/keys', headers);
    expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 403, code: 'insufficient_scope' });
    expect(refused.headers['www-authenticate']).toBe(
      'Bearer realm="tollgate-portal", error="insufficient_scope", scope="keys:read"',
    );
    expect((await exchange(gateway.portal, token)).status).toBe(401);
  });
});

overEachStore('DELETE portal-sessions', (system) => {
  it('ends all links, sessions and tokens of the customer, and of no other', async () => {
    const { gateway } = system();
    for (const id of ['ended', 'kept']) await createCustomer(gateway, id);
    const [session, other] = [await openSession(gateway, 'ended'), await openSession(gateway, 'kept')];
    const bearer = { authorization: `Bearer ${await createToken(gateway, 'ended')}` };
    const code = codeOf(await createLink(gateway, 'ended'));
    const ended = await callAdmin(gateway, '/admin/v1/customers/ended/portal-sessions', { method: 'DELETE' });
    expect(ended.status).toBe(204);
    for (const headers of [session, bearer]) {
      expect((await send(gateway.portal, 'GET', '/portal/v1/keys', headers)).status).toBe(401);
    }
    expect((await exchange(gateway.portal, code)).status).toBe(401);
    expect((await send(gateway.portal, 'GET', '/portal/v1/keys', other)).status).toBe(200);
  });
});
