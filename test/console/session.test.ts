/**
 * A session cookie replaces the admin token or a JWT. An attacker who can forge one, use an expired one, or raise the
 * scope of one controls the admin API.
 */
import { hkdfSync, randomBytes } from 'node:crypto';
import { CompactEncrypt, decodeProtectedHeader, EncryptJWT } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { AdminDependencies } from '../../src/control/admin/dependencies.ts';
import { createJwtVerifier } from '../../src/control/admin/jwt.ts';
import { AUDIENCE, claimsAt, createIssuerKey, ISSUER, sign } from '../control/admin/issuer.ts';
import { NOW, startAdmin, TOKEN } from '../control/admin/support.ts';
import { logIn, OWN_PAGE, postLogin, type SessionHeaders, send, sessionOf } from './support.ts';

const KEY = await createIssuerKey('key-1', 'EdDSA');
const NOW_MS = Date.parse(NOW);
const HOUR_MS = 3_600_000;

/** An admin listener that accepts the token, and JWTs of the issuer. */
async function start(overrides: Partial<AdminDependencies> = {}) {
  const admin = await startAdmin(overrides);
  onTestFinished(() => admin.close());
  return admin;
}

/** Its clock is that of the tests at their beginning. */
const jwt = createJwtVerifier({
  issuer: ISSUER,
  audience: AUDIENCE,
  clock: { nowMs: () => NOW_MS },
  keyFor: async () => KEY.publicJwk,
});

const jwtWith = (changes: Record<string, unknown>) => sign(KEY, claimsAt(NOW_MS, changes));
const readAs = (origin: string, session: SessionHeaders) => send(origin, 'GET', '/admin/v1/customers', session);
const createAs = (origin: string, session: SessionHeaders, id: string) =>
  send(origin, 'POST', '/admin/v1/customers', { ...session, ...OWN_PAGE }, JSON.stringify({ id, plan: 'starter' }));

describe('a login with the admin token', () => {
  it('begins a session that reads and writes, without any secret in what is stored or logged', async () => {
    const { origin, logs, list } = await start();
    const response = await postLogin(origin);
    expect(response.status).toBe(200);
    expect(response.body).toEqual({
      actor: 'token',
      scope: 'write',
      via: 'cookie',
      expires_at: '2026-03-01T20:00:00.000Z',
      key_header: 'Authorization',
      installation: null,
      binding: expect.stringMatching(/^[\w-]{43}$/),
    });
    const { port } = new URL(origin);
    expect(response.headers['set-cookie']).toEqual([
      expect.stringMatching(
        new RegExp(`^tollgate_session_${port}=[\\w.-]+; Max-Age=28800; Path=/; HttpOnly; SameSite=Strict$`),
      ),
    ]);
    const session = sessionOf(response);
    expect((await readAs(origin, session)).status).toBe(200);
    expect((await createAs(origin, session, 'new')).status).toBe(201);
    expect(await list('/admin/v1/audit')).toMatchObject([
      { action: 'customer.create', actor: 'token' },
      { action: 'session.create', actor: 'token', from: '127.0.0.1' },
    ]);
    const written = logs.join('') + JSON.stringify(await list('/admin/v1/audit'));
    expect(written).not.toContain(TOKEN);
    for (const part of Object.values(session)) expect(written).not.toContain(part.split('=').at(-1));
  });

  it('has the name that a person gave in the session, the log and the audit, and refuses other texts', async () => {
    const { origin, logs, list } = await start();
    const response = await postLogin(origin, TOKEN, {}, ' Anna K. ');
    expect(response.body.actor).toBe('token:Anna K.');
    expect((await createAs(origin, sessionOf(response), 'new')).status).toBe(201);
    expect(await list('/admin/v1/audit')).toMatchObject([
      { action: 'customer.create', actor: 'token:Anna K.' },
      { action: 'session.create', actor: 'token:Anna K.' },
    ]);
    expect(logs.join('')).toContain('"actor":"token:Anna K."');
    for (const name of ['', 'a\nb', 'jwt:anna', 'x'.repeat(65)]) {
      expect((await postLogin(origin, TOKEN, {}, name)).status, name).toBe(422);
    }
  });

  it('makes the cookie a JWE, dir and A256GCM', async () => {
    const { origin } = await start();
    const [, value = ''] = (await logIn(origin)).cookie.split('=');
    expect(decodeProtectedHeader(value)).toEqual({ alg: 'dir', enc: 'A256GCM' });
    expect(value.split('.')).toHaveLength(5);
  });

  it.each([
    { origin: 'https://127.0.0.1' },
    { 'x-forwarded-proto': 'https' },
    { origin: 'https://127.0.0.1', 'x-forwarded-proto': 'http' },
  ])('over https (%j) makes the cookie Secure, with the __Host- prefix', async (headers) => {
    const { origin } = await start();
    const response = await postLogin(origin, TOKEN, headers);
    expect(response.headers['set-cookie']).toEqual([
      expect.stringMatching(/^__Host-tollgate_session_\d+=.*; Path=\/; .*; Secure$/),
    ]);
    const session = sessionOf(response);
    expect((await createAs(origin, session, 'new')).status).toBe(201);
  });

  it('ends after 8 hours', async () => {
    const { origin, advance } = await start();
    const session = await logIn(origin);
    advance(8 * HOUR_MS - 1000);
    expect((await readAs(origin, session)).status).toBe(200);
    advance(1000);
    const { status, body } = await readAs(origin, session);
    expect({ status, code: body.code }).toEqual({ status: 401, code: 'unauthorized' });
  });

  it('is valid on every instance with the same token, and on none with another', async () => {
    const [one, other, changed, without] = await Promise.all([
      start(),
      start(),
      start({ token: 'the-next-admin-token' }),
      start({ token: '', jwt }),
    ]);
    const session = await logIn(one.origin);
    // A load balancer keeps the Host, after whose port the cookie is named.
    const { host } = new URL(one.origin);
    expect((await readAs(other.origin, { ...session, host })).status).toBe(200);
    expect((await readAs(changed.origin, { ...session, host })).status).toBe(401);
    expect((await readAs(without.origin, { ...session, host })).status).toBe(401);
  });

  it('adds at most one audit entry a minute, so that a reader cannot push the entries of others out', async () => {
    const { origin, list, advance } = await start();
    for (let i = 0; i < 5; i++) await logIn(origin);
    expect(await list('/admin/v1/audit')).toHaveLength(1);
    advance(60_000);
    await logIn(origin);
    expect(await list('/admin/v1/audit')).toHaveLength(2);
  });

  it('is shown by GET, and ended by DELETE', async () => {
    const { origin } = await start();
    const session = await logIn(origin);
    expect((await send(origin, 'GET', '/console/session', session)).body).toEqual({
      actor: 'token',
      scope: 'write',
      via: 'cookie',
      expires_at: '2026-03-01T20:00:00.000Z',
      key_header: 'Authorization',
      installation: null,
    });
    const logout = await send(origin, 'DELETE', '/console/session', { ...session, ...OWN_PAGE });
    expect(logout.status).toBe(204);
    expect(logout.headers['set-cookie']).toEqual([
      expect.stringMatching(/^tollgate_session_\d+=; Max-Age=0; Path=\/; HttpOnly; SameSite=Strict$/),
      expect.stringMatching(/^__Host-tollgate_session_\d+=; Max-Age=0; Path=\/; HttpOnly; SameSite=Strict; Secure$/),
    ]);
  });
});

describe('programs on other ports of one host', () => {
  /** What a browser keeps: cookies of the host, whatever the port, and what each origin stores. */
  function createBrowser() {
    const cookies = new Map<string, string>();
    const bindings = new Map<string, string>();
    return async (origin: string, method: string, path: string, body?: string) => {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const binding = bindings.get(origin);
      const response = await send(
        origin,
        method,
        path,
        { ...OWN_PAGE, ...(cookie && { cookie }), ...(binding && { 'x-tollgate-session-binding': binding }) },
        body,
      );
      if (response.body.binding) bindings.set(origin, response.body.binding);
      for (const line of response.headers['set-cookie'] ?? []) {
        const [, name = '', value = '', maxAge] = /^([^=]+)=([^;]*); Max-Age=(\d+)/.exec(line) ?? [];
        if (maxAge === '0') cookies.delete(name);
        else cookies.set(name, value);
      }
      return response.status;
    };
  }
  const login = (token: string) => JSON.stringify({ token });

  it('keep the sessions of one browser apart, through logins and logouts', async () => {
    const other = 'the-token-of-the-other-gateway';
    const [a, b] = [(await start()).origin, (await start({ token: other })).origin];
    const browse = createBrowser();
    const areOpen = async () => [
      await browse(a, 'GET', '/admin/v1/customers'),
      await browse(b, 'GET', '/admin/v1/customers'),
    ];
    await browse(a, 'POST', '/console/session', login(TOKEN));
    await browse(b, 'POST', '/console/session', login(other));
    expect(await areOpen()).toEqual([200, 200]);
    await browse(b, 'DELETE', '/console/session');
    expect(await areOpen()).toEqual([200, 401]);
    await browse(b, 'POST', '/console/session', login(other));
    await browse(a, 'DELETE', '/console/session');
    expect(await areOpen()).toEqual([401, 200]);
  });

  it.each([
    ['the admin token', {}],
    ['a JWT, without an admin token', { token: '', jwt }],
  ])(
    'cannot use the cookie of a login with %s: it needs the binding, which only the origin has',
    async (_by, overrides) => {
      const { origin, records } = await start(overrides);
      const session = await logIn(origin, 'jwt' in overrides ? await jwtWith({ scope: 'tollgate:write' }) : TOKEN);
      const { cookie } = session;
      const [, value = ''] = cookie.split('=');
      const foreign = { 'x-tollgate-session-binding': Buffer.alloc(32, 7).toString('base64url') };
      const attempts = [
        { cookie },
        { cookie, 'x-tollgate-session-binding': '' },
        { cookie, 'x-tollgate-session-binding': `${session['x-tollgate-session-binding']}x` },
        { cookie, ...foreign },
        { authorization: `Bearer ${value}` },
      ];
      for (const headers of attempts) {
        const body = JSON.stringify({ id: 'forged', plan: 'starter' });
        const created = await send(origin, 'POST', '/admin/v1/customers', { ...OWN_PAGE, ...headers }, body);
        expect({ headers, status: created.status }).toEqual({ headers, status: 401 });
        expect((await send(origin, 'GET', '/admin/v1/customers', headers)).status).toBe(401);
        const shown = await send(origin, 'GET', '/console/session', { ...OWN_PAGE, ...headers });
        expect(shown.status).toBe(401);
        expect(shown.headers).not.toHaveProperty('set-cookie');
      }
      // Nor can the cookie be exchanged for another session.
      expect((await postLogin(origin, value)).status).toBe(401);
      expect(await records.findCustomerRecord('forged')).toBeUndefined();
      expect((await createAs(origin, session, 'own')).status).toBe(201);
    },
  );

  it('cannot shadow the session with cookies of the same name, nor replace it with a session of their own', async () => {
    const { origin } = await start();
    const [session, theirs] = [await logIn(origin), await logIn(origin)];
    const name = session.cookie.split('=')[0];
    const shadowed = {
      ...session,
      cookie: `${name}=garbage; ${theirs.cookie}; ${name}=; ${session.cookie}; ${name}=a.b.c.d.e`,
    };
    expect((await createAs(origin, shadowed, 'new')).status).toBe(201);
    expect((await readAs(origin, { ...session, cookie: theirs.cookie })).status).toBe(401);
    const again = sessionOf(await postLogin(origin, TOKEN, { cookie: `${name}=garbage; ${theirs.cookie}` }));
    expect(
      (await readAs(origin, { ...again, cookie: `${name}=garbage; ${theirs.cookie}; ${again.cookie}` })).status,
    ).toBe(200);
  });

  it('have no say in the name of the cookie: it has the port of the Host, if there is one', async () => {
    const { origin } = await start();
    const host = async (name: string) => (await logIn(origin, TOKEN, { host: name })).cookie.split('=')[0];
    expect(await host('localhost:9000')).toBe('tollgate_session_9000');
    expect(await host('127.0.0.1')).toBe('tollgate_session');
  });
});

describe('a cookie that is no session', () => {
  const BINDING = Buffer.alloc(32, 1).toString('base64url');
  const keyFrom = (token: string, purpose = 'tollgate console session', binding = BINDING) =>
    new Uint8Array(hkdfSync('sha256', token, binding, purpose, 32));
  const sessionWith = (origin: string, value: string) => ({
    cookie: `tollgate_session_${new URL(origin).port}=${value}`,
    'x-tollgate-session-binding': BINDING,
  });
  const claims = { scope: 'write', sub: 'token', exp: Math.floor(NOW_MS / 1000) + 60 };
  const encrypted = (payload: object, key = keyFrom(TOKEN), enc = 'A256GCM') =>
    new EncryptJWT({ ...payload }).setProtectedHeader({ alg: 'dir', enc }).encrypt(key);

  it('is made here as the gateway makes it, so that the cases below fail for their own reason', async () => {
    const { origin } = await start();
    expect((await readAs(origin, sessionWith(origin, await encrypted(claims)))).status).toBe(200);
  });

  it.each<[string, () => Promise<string> | string]>([
    ['is empty', () => ''],
    ['is the admin token', () => TOKEN],
    ['is sealed with another binding', () => encrypted(claims, keyFrom(TOKEN, undefined, 'x'))],
    ['is sealed with the binding alone', () => encrypted(claims, keyFrom(''))],
    ['contains a JWT instead', () => encrypted({ jwt: 'x.y.z', exp: claims.exp })],
    ['is sealed with another token', () => encrypted(claims, keyFrom('guess'))],
    ['is sealed with a key for another purpose', () => encrypted(claims, keyFrom(TOKEN, 'something else'))],
    ['never expires', () => encrypted({ scope: 'write', sub: 'token' })],
    ['has expired', () => encrypted({ ...claims, exp: Math.floor(NOW_MS / 1000) })],
    ['has no subject', () => encrypted({ scope: 'write', exp: claims.exp })],
    ['uses another cipher', () => encrypted(claims, new Uint8Array(64), 'A256CBC-HS512')],
    [
      'is no JSON',
      () =>
        new CompactEncrypt(Buffer.from('x')).setProtectedHeader({ alg: 'dir', enc: 'A256GCM' }).encrypt(keyFrom(TOKEN)),
    ],
    ['is not encrypted', () => `${btoa('{"alg":"none"}')}.${btoa(JSON.stringify(claims))}.`],
    ['was sealed for a JWT, which is not accepted any more', () => encrypted({ ...claims, sub: 'jwt:ops' })],
  ])('because it %s: 401', async (_why, value) => {
    const { origin } = await start();
    expect((await readAs(origin, sessionWith(origin, await value()))).status).toBe(401);
    expect((await createAs(origin, sessionWith(origin, await value()), 'new')).status).toBe(401);
  });

  it('because any one character of it was changed: 401', async () => {
    const { origin } = await start();
    const session = await logIn(origin);
    const { cookie } = session;
    const first = cookie.indexOf('=') + 1;
    // `A` and `g` differ in the highest of their six bits: the last character has unused low ones. Not every character: each refusal counts, and beyond 30 the answer would be 429.
    const step = Math.ceil((cookie.length - first) / 25);
    for (let at = first; at < cookie.length; at += step) {
      const changed = cookie.slice(0, at) + (cookie[at] === 'A' ? 'g' : 'A') + cookie.slice(at + 1);
      expect((await readAs(origin, { ...session, cookie: changed })).status, `character ${at - first}`).toBe(401);
    }
  });
});

describe('a login with a JWT', () => {
  it('keeps its scope: one that may read cannot write, by any call', async () => {
    const { origin } = await start({ jwt });
    const session = await logIn(origin, await jwtWith({ scope: 'tollgate:read' }));
    expect((await send(origin, 'GET', '/console/session', session)).body).toMatchObject({
      actor: 'jwt:ops@example',
      scope: 'read',
    });
    expect((await readAs(origin, session)).status).toBe(200);
    expect((await readAs(origin, session)).status).toBe(200);
    for (const [method, path] of [
      ['POST', '/admin/v1/customers'],
      ['PATCH', '/admin/v1/customers/acme'],
      ['DELETE', '/admin/v1/customers/acme'],
      ['DELETE', '/admin/v1/customers/acme/usage'],
      ['POST', '/admin/v1/customers/acme/keys'],
      ['DELETE', '/admin/v1/keys/key_1'],
      ['POST', '/admin/v1/keys/key_1/rotate'],
      ['POST', '/admin/v1/config/reload'],
      ['POST', '/admin/v1/config/preview'],
    ] as const) {
      const { status, body } = await send(origin, method, path, { ...session, ...OWN_PAGE }, '{}');
      expect({ path, status, code: body.code }).toEqual({ path, status: 403, code: 'forbidden' });
    }
  });

  it('lasts no longer than the JWT', async () => {
    const { origin, advance } = await start({ jwt });
    const response = await postLogin(origin, await jwtWith({ scope: 'tollgate:write' }));
    expect(response.body).toMatchObject({ scope: 'write', expires_at: '2026-03-01T13:00:00.000Z' });
    expect(response.headers['set-cookie']?.[0]).toContain('Max-Age=3600;');
    advance(HOUR_MS);
    expect((await readAs(origin, sessionOf(response))).status).toBe(401);
  });

  it('is refused if it has none of the scopes', async () => {
    const { origin } = await start({ jwt });
    const { status, headers } = await postLogin(origin, await jwtWith({ scope: 'other' }));
    expect(status).toBe(403);
    expect(headers).not.toHaveProperty('set-cookie');
  });

  it('without an admin token is verified again at each request', async () => {
    let isKeyPublished = true;
    const other = await createIssuerKey('key-1', 'EdDSA');
    const verifier = createJwtVerifier({
      issuer: ISSUER,
      audience: AUDIENCE,
      clock: { nowMs: () => NOW_MS },
      keyFor: async () => (isKeyPublished ? KEY : other).publicJwk,
    });
    const { origin } = await start({ token: '', jwt: verifier });
    const session = await logIn(origin, await jwtWith({ scope: 'tollgate:read' }));
    expect((await readAs(origin, session)).status).toBe(200);
    expect((await createAs(origin, session, 'new')).status).toBe(403);
    isKeyPublished = false;
    expect((await readAs(origin, session)).status).toBe(401);
  });

  it('without an admin token is worth no more than the JWT: expired, changed, for others or unsigned it gets 401', async () => {
    const { origin } = await start({ token: '', jwt });
    const good = await jwtWith({ scope: 'tollgate:write' });
    const binding = Buffer.alloc(32, 1).toString('base64url');
    const key = new Uint8Array(hkdfSync('sha256', '', binding, 'tollgate console session', 32));
    const sealed = async (payload: Record<string, string>) => {
      const value = await new EncryptJWT({ ...payload, exp: Math.floor(NOW_MS / 1000) + 60 })
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
        .encrypt(key);
      return { cookie: `tollgate_session_${new URL(origin).port}=${value}`, 'x-tollgate-session-binding': binding };
    };
    const [head = '', payload = '', signature = ''] = good.split('.');
    const raised = Buffer.from(payload, 'base64url').toString().replace('tollgate:write', 'tollgate:w');
    const unsigned = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
    for (const value of [
      `${head}.${Buffer.from(raised).toString('base64url')}.${signature}`,
      `${head}.${payload}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
      `${unsigned}.${payload}.`,
      `${unsigned}.${payload}.x`,
      await jwtWith({ scope: 'tollgate:write', aud: 'another' }),
      await jwtWith({ scope: 'tollgate:write', exp: Math.floor(NOW_MS / 1000) - 120 }),
      await sign(await createIssuerKey('key-1', 'EdDSA'), claimsAt(NOW_MS, { scope: 'tollgate:write' })),
    ]) {
      expect((await createAs(origin, await sealed({ jwt: value }), 'new')).status).toBe(401);
    }
    // Everyone can seal a session where no admin token is part of the key.
    expect((await createAs(origin, await sealed({ sub: 'token', scope: 'write' }), 'new')).status).toBe(401);
    expect((await createAs(origin, await sealed({ jwt: good }), 'new')).status).toBe(201);
  });

  it('without an admin token needs the page of the console for a change, as every session does', async () => {
    const { origin } = await start({ token: '', jwt });
    const session = await logIn(origin, await jwtWith({ scope: 'tollgate:write' }));
    const body = JSON.stringify({ id: 'new', plan: 'starter' });
    const post = (headers: Record<string, string>) =>
      send(origin, 'POST', '/admin/v1/customers', { ...session, ...OWN_PAGE, ...headers }, body);
    expect((await post({ 'sec-fetch-site': 'same-site' })).status).toBe(403);
    expect((await post({ 'content-type': 'text/plain' })).status).toBe(415);
    expect((await post({})).status).toBe(201);
  });

  it('without an admin token is refused if no browser would store the cookie', async () => {
    const { origin } = await start({ token: '', jwt });
    const { status, body } = await postLogin(
      origin,
      await jwtWith({ groups: randomBytes(3000).toString('base64url') }),
    );
    expect({ status, code: body.code }).toEqual({ status: 422, code: 'unprocessable' });
  });
});

describe('a failed login', () => {
  it('is 401, without a cookie, and is logged and audited with its address, never with the token', async () => {
    const { origin, logs, list } = await start();
    const { status, headers, body } = await postLogin(origin, 'guess-1');
    expect({ status, code: body.code }).toEqual({ status: 401, code: 'unauthorized' });
    expect(headers).not.toHaveProperty('set-cookie');
    expect(JSON.parse(logs.at(-1) ?? '')).toMatchObject({
      client: '127.0.0.1',
      reason: 'wrong_token',
      route: '/console/session',
      msg: 'admin access refused',
    });
    await postLogin(origin, 'guess-2');
    expect(await list('/admin/v1/audit')).toMatchObject([
      { action: 'access.refused', actor: 'unknown', from: '127.0.0.1' },
    ]);
    expect(logs.join('')).not.toContain('guess-');
  });

  it('counts with the other refusals of its address: after 30 within a minute, 429 with Retry-After', async () => {
    const { origin } = await start();
    for (let i = 0; i < 15; i++) {
      await postLogin(origin, `guess-${i}`);
      await send(origin, 'GET', '/status', { authorization: 'Bearer guess' });
    }
    const { status, headers, body } = await postLogin(origin, 'guess');
    expect({ status, code: body.code }).toEqual({ status: 429, code: 'too_many_failures' });
    expect(['60', '61']).toContain(headers['retry-after']);
  });

  it('of a malformed body is 4xx before any credentials are checked', async () => {
    const { origin } = await start();
    const post = (body: string) => send(origin, 'POST', '/console/session', OWN_PAGE, body);
    for (const [body, status] of [
      ['{', 400],
      ['{}', 422],
      ['{"token":""}', 422],
      [`{"token":"${'x'.repeat(16_384)}"}`, 413],
      [JSON.stringify({ token: TOKEN, scope: 'write' }), 422],
    ] as const) {
      expect((await post(body)).status, body.slice(0, 40)).toBe(status);
    }
  });
});

describe('without a session', () => {
  it('GET is 401 and counts as no failed attempt, since every first page asks it', async () => {
    const { origin, logs } = await start();
    for (let i = 0; i < 40; i++) expect((await send(origin, 'GET', '/console/session')).status).toBe(401);
    expect(logs).toEqual([]);
  });

  it('a good Authorization, as a single sign-on proxy adds, needs no login', async () => {
    const { origin } = await start({ jwt });
    const bearer = (token: string) => send(origin, 'GET', '/console/session', { authorization: `Bearer ${token}` });
    expect((await bearer(TOKEN)).body).toEqual({
      actor: 'token',
      scope: 'write',
      via: 'authorization',
      expires_at: null,
      key_header: 'Authorization',
      installation: null,
    });
    expect((await bearer(await jwtWith({}))).body).toMatchObject({ scope: 'read', via: 'authorization' });
    expect((await bearer('guess')).status).toBe(401);
  });
});
