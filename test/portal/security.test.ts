/**
 * What other sites, other ports of the host, log readers and floods can do with the portal: as little as with the console.
 */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { SECURITY_HEADERS } from '../../src/http/problems/security-headers.ts';
import { type Received, send } from '../console/support.ts';
import { callAdmin } from '../support/admin.ts';
import {
  codeOf,
  createCustomer,
  createLink,
  createToken,
  exchange,
  openSession,
  overEachStore,
  sessionOf,
} from './support.ts';

overEachStore('the portal', (system) => {
  let customers = 0;
  const newCustomer = async () => {
    const id = `c${++customers}`;
    await createCustomer(system().gateway, id);
    return id;
  };

  it('makes no change for a page of another origin, nor one of a form', async () => {
    const { gateway } = system();
    const id = await newCustomer();
    const session = await openSession(gateway, id);
    const { 'sec-fetch-site': _, 'content-type': __, ...bare } = session;
    const json = { 'content-type': 'application/json' };
    const attempts: [Record<string, string>, number][] = [
      [{ ...bare, ...json }, 403],
      [{ ...bare, ...json, 'sec-fetch-site': 'cross-site' }, 403],
      [{ ...bare, ...json, 'sec-fetch-site': 'same-site' }, 403],
      [{ ...bare, ...json, 'sec-fetch-site': 'none' }, 403],
      [{ ...bare, ...json, origin: 'http://attacker.example' }, 403],
      [{ ...bare, ...json, origin: 'null' }, 403],
      [{ ...bare, ...json, origin: gateway.portal.replace('http:', 'https:') }, 403],
      [{ ...bare, 'sec-fetch-site': 'same-origin' }, 415],
      [{ ...bare, 'sec-fetch-site': 'same-origin', 'content-type': 'text/plain' }, 415],
      [{ ...bare, 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded' }, 415],
      [{ ...bare, ...json, origin: gateway.portal }, 201],
    ];
    for (const [headers, status] of attempts) {
      const made = await send(gateway.portal, 'POST', '/portal/v1/keys', headers, '{"name":"made"}');
      expect(made.status, JSON.stringify(headers)).toBe(status);
    }
    for (const site of ['cross-site', 'same-site']) {
      const read = await send(gateway.portal, 'GET', '/portal/v1/keys', { ...bare, 'sec-fetch-site': site });
      expect(read.status).toBe(403);
    }
  });

  it('opens no session for a page of another origin, and the code stays good', async () => {
    const { gateway } = system();
    const code = codeOf(await createLink(gateway, await newCustomer()));
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }]) {
      expect((await exchange(gateway.portal, code, headers)).status).toBe(403);
    }
    expect((await exchange(gateway.portal, code)).status).toBe(200);
  });

  it('keeps its session beside cookies of the same name that another port or subdomain planted', async () => {
    const { gateway } = system();
    const [mine, theirs] = [
      await openSession(gateway, await newCustomer()),
      await openSession(gateway, await newCustomer()),
    ];
    const customerOf = async (headers: Record<string, string>) =>
      (await send(gateway.portal, 'GET', '/portal/session', headers)).body.customer;
    const own = await customerOf(mine);
    const planted = theirs.cookie ?? '';
    for (const cookie of [`${planted}; ${mine.cookie}`, `${mine.cookie}; ${planted}`]) {
      expect(await customerOf({ ...mine, cookie })).toBe(own);
    }
    expect(await customerOf({ ...mine, cookie: planted })).toBeUndefined();
    const flood = Array.from({ length: 100 }, () => planted).join('; ');
    expect(await customerOf({ ...mine, cookie: `${flood}; ${mine.cookie}` })).toBeUndefined();
  });

  it('answers only to the host of public_url', async () => {
    const { gateway } = system();
    const token = await createToken(gateway, await newCustomer());
    for (const host of ['attacker.example', 'localhost', '127.0.0.1.attacker.example', 'x@127.0.0.1', '[::1]']) {
      for (const path of ['/portal', '/portal/settings', '/portal/v1/usage', '/nothing']) {
        const reply = await send(gateway.portal, 'GET', path, { host, authorization: `Bearer ${token}` });
        expect(reply.status, `${host}${path}`).toBe(421);
      }
    }
  });

  it('answers with the security headers everywhere, and stores nothing', async () => {
    const { gateway } = system();
    for (const path of [
      '/',
      '/portal',
      '/portal/keys',
      '/portal/logo',
      '/portal/settings',
      '/portal/session',
      '/portal/v1/keys',
      '/x',
    ]) {
      const { headers } = await send(gateway.portal, 'GET', path);
      for (const [name, value] of SECURITY_HEADERS) expect(headers[name.toLowerCase()], path).toBe(value);
      expect(headers['cache-control']).toBe('no-store');
      expect(headers['access-control-allow-origin']).toBeUndefined();
    }
    expect((await send(gateway.portal, 'GET', '/portal')).headers['content-type']).toContain('text/html');
  });

  it('knows nothing of the admin API, nor the other listeners of the portal', async () => {
    const { gateway } = system();
    const admin = { authorization: 'Bearer admin-token-of-the-tests' };
    for (const path of [
      '/admin/v1/customers',
      '/status',
      '/console',
      '/console/session',
      '/metrics',
      '/livez',
      '/readyz',
    ]) {
      expect((await send(gateway.portal, 'GET', path, admin)).status, path).toBe(404);
    }
    for (const path of ['/portal/v1/keys', '/portal/session']) {
      expect((await send(gateway.portal, 'GET', path, admin)).status, path).toBe(401);
    }
    const token = { authorization: `Bearer ${await createToken(gateway, await newCustomer())}` };
    expect((await send(gateway.admin ?? '', 'GET', '/admin/v1/customers', token)).status).toBe(401);
    expect((await send(gateway.admin ?? '', 'GET', '/portal/v1/keys', token)).status).toBe(401);
  });

  it('writes no code, cookie, binding, token or key to the log, the audit or the metrics', async () => {
    const { gateway } = system();
    const id = await newCustomer();
    const [link, token] = [await createLink(gateway, id, { user: 'Eva' }), await createToken(gateway, id)];
    const opened = await exchange(gateway.portal, codeOf(link));
    const session = sessionOf(opened);
    const created = await send(gateway.portal, 'POST', '/portal/v1/keys', session, '{"name":"ci"}');
    await exchange(gateway.portal, codeOf(link));
    await send(gateway.portal, 'GET', `/portal/v1/keys?token=${token}`, { authorization: `Bearer ${token}` });
    await send(gateway.portal, 'GET', `/portal/${token}`, { authorization: `Bearer ${token}x` });
    await callAdmin(gateway, `/admin/v1/customers/${id}/portal-sessions`, { method: 'DELETE' });
    await send(gateway.portal, 'GET', '/portal/v1/keys', session);
    const audit = await callAdmin(gateway, `/admin/v1/audit?customer=${id}`);
    const metrics = await (await fetch(`${gateway.ops}/metrics`)).text();
    const written = JSON.stringify(gateway.logs) + JSON.stringify(audit.body) + metrics;
    expect(written).toContain(`portal:${id}`);
    const secrets = [codeOf(link), token, session.cookie?.split('=')[1], opened.body.binding, created.body.key];
    for (const secret of secrets) {
      expect(secret).toMatch(/^\S{43,}$/);
      expect(written).not.toContain(secret);
    }
  });

  it('takes no more than 1 KiB, and no malformed body, where it opens sessions', async () => {
    const { gateway } = system();
    const post = (body: string, headers = {}) =>
      send(gateway.portal, 'POST', '/portal/session', { 'content-type': 'application/json', ...headers }, body);
    expect((await post(JSON.stringify({ code: 'x'.repeat(1014) }))).status).toBe(413);
    for (const body of [
      '{',
      '"x"',
      '[]',
      '{}',
      'null',
      '{"code":1}',
      '{"code":null}',
      '{"code":["x"]}',
      '{"code":{}}',
    ]) {
      expect([400, 422], body).toContain((await post(body)).status);
    }
    expect((await post(`{"code":"${'x'.repeat(257)}"}`)).status).toBe(422);
    expect((await post('{"__proto__":{"code":"x"},"constructor":1}')).status).toBe(422);
    for (const code of ['', 'x', '__proto__', 'code=', '\u0000', 'é'.repeat(40)]) {
      expect([401, 429]).toContain((await post(JSON.stringify({ code }))).status);
    }
  });

  it('refuses guesses with 429 after 30 within a minute, and never a valid session', async () => {
    const { gateway } = system();
    const session = await openSession(gateway, await newCustomer());
    const guess = () => send(gateway.portal, 'GET', '/portal/v1/keys', { authorization: `Bearer ${'a'.repeat(43)}` });
    for (let i = 0; i < 31; i++) await guess();
    const refused = await guess();
    expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 429, code: 'too_many_failures' });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect((await send(gateway.portal, 'GET', '/portal/v1/keys', session)).status).toBe(200);
    const logged = gateway.logs.filter(({ msg }) => msg === 'portal access refused');
    expect(logged.length).toBeLessThan(60);
  });

  it('is not kept busy by a client that sends a body slowly', async () => {
    const { gateway } = system();
    const { hostname, port } = new URL(gateway.portal);
    const slow = connect(Number(port), hostname);
    slow.write(
      `POST /portal/session HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{`,
    );
    const asked = request(`${gateway.portal}/portal/settings`).end();
    const [response] = await once(asked, 'response');
    expect(response.statusCode).toBe(200);
    response.resume();
    slow.destroy();
  });
});

overEachStore('changes', (system) => {
  it('are at most 60 an hour of a customer, over all its sessions and tokens', async () => {
    const { gateway } = system();
    await createCustomer(gateway, 'busy');
    await createCustomer(gateway, 'calm');
    const holders = [
      await openSession(gateway, 'busy'),
      { authorization: `Bearer ${await createToken(gateway, 'busy')}` },
    ];
    const renamer = async (headers: Record<string, string>) => {
      const { body } = await send(gateway.portal, 'GET', '/portal/v1/keys', headers);
      const path = `/portal/v1/keys/${body.items[0].id}`;
      const sent = { ...headers, 'content-type': 'application/json' };
      return (at: number) => send(gateway.portal, 'PATCH', path, sent, `{"name":"n${at}"}`);
    };
    const renamers = await Promise.all(holders.map(renamer));
    const rename = async (at: number): Promise<Received> => {
      const renamed = await (renamers[at % 2] ?? expect.unreachable())(at);
      // At most 50 requests a second, changes or not.
      return renamed.body.code === 'too_many_reads' ? rename(at) : renamed;
    };
    for (let at = 0; at < 60; at++) expect((await rename(at)).status).toBe(200);
    for (const at of [60, 61]) {
      const refused = await rename(at);
      expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 429, code: 'too_many_writes' });
      const wait = Number(refused.headers['retry-after']);
      expect(wait).toBeGreaterThan(3500);
      expect(wait).toBeLessThanOrEqual(3600);
    }
    const renameCalm = await renamer(await openSession(gateway, 'calm'));
    expect((await renameCalm(0)).status).toBe(200);
  });

  it('leave at most max_keys keys in use, also when they are made at the same time; rotations have room', async () => {
    const { gateway } = system();
    await createCustomer(gateway, 'many');
    const session = await openSession(gateway, 'many');
    const post = (path: string, body = '{}') => send(gateway.portal, 'POST', path, session, body);
    for (let i = 1; i < 17; i++) expect((await post('/portal/v1/keys')).status).toBe(201);
    const made = await Promise.all(Array.from({ length: 8 }, () => post('/portal/v1/keys')));
    expect(new Set(made.map(({ status }) => status))).toContain(409);
    const keys = async () => (await send(gateway.portal, 'GET', '/portal/v1/keys', session)).body.items;
    expect((await keys()).length).toBeLessThanOrEqual(20);
    for (let left = 20 - (await keys()).length; left > 0; left--) {
      expect((await post('/portal/v1/keys')).status).toBe(201);
    }
    const refused = await post('/portal/v1/keys');
    expect({ status: refused.status, code: refused.body.code }).toEqual({ status: 409, code: 'conflict' });
    const [first, second] = await keys();
    expect((await post(`/portal/v1/keys/${first.id}/rotate`)).status).toBe(201);
    const listed = await keys();
    expect(listed.filter(({ state }: { state: string }) => state === 'live')).toHaveLength(20);
    expect(listed.filter(({ state }: { state: string }) => state === 'rotated')).toHaveLength(1);
    await send(gateway.portal, 'DELETE', `/portal/v1/keys/${second.id}`, session);
    expect((await post('/portal/v1/keys')).status).toBe(201);
  });
});
