import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT, UnsecuredJWT } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemScheduler } from '../../../src/base/clock.ts';
import { createAccessCounters, createGate } from '../../../src/control/admin/authorize.ts';
import { createJwtVerifier } from '../../../src/control/admin/jwt.ts';
import { RemoteKeySet } from '../../../src/control/admin/remote-key-set.ts';
import { factsOf, noteRequest } from '../../../src/control/frame/response-locals.ts';
import { createStrictApp } from '../../../src/http/listener/strict-app.ts';
import { createLogger } from '../../../src/observability/logger.ts';
import { HeldClock } from '../../customers/keys/held-clock.ts';
import { AUDIENCE, claimsAt, createIssuerKey, ISSUER, type Issuer, notFound, sign, startIssuer } from './issuer.ts';
import { TOKEN } from './support.ts';

const KEY = await createIssuerKey('key-1');
const CHALLENGE = 'Bearer realm="tollgate-admin"';

/** A listener that says who was let in, for JWTs of an issuer that runs until the test ends. */
async function start({ token = TOKEN, issuer = undefined as Issuer | undefined } = {}) {
  const from = issuer ?? (await startIssuer(KEY));
  const clock = new HeldClock();
  const logs: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line) => void logs.push(line) } });
  const keys = new RemoteKeySet({ url: from.url, clock, scheduler: systemScheduler, logger });
  const jwt = createJwtVerifier({ issuer: ISSUER, audience: AUDIENCE, clock, keyFor: keys.keyFor });
  const app = createStrictApp();
  app.use(noteRequest([]));
  app.use(
    createGate({ token, jwt, logger, clock, audit: { append: async () => {} } }, createAccessCounters(clock)).authorize,
  );
  app.use((_req, res) => {
    res.json(factsOf(res).actor);
  });
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    keys.close();
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    clock,
    logs,
    async present(presented: string, method = 'GET') {
      const answer = await fetch(origin, { method, headers: { authorization: `Bearer ${presented}` } });
      const text = await answer.text();
      const { headers, status } = answer;
      return { status, challenge: headers.get('www-authenticate'), headers, body: text && JSON.parse(text) };
    },
    claims: (changes?: Record<string, unknown>) => claimsAt(clock.nowMs(), changes),
  };
}

describe('a JWT of the issuer', () => {
  it('lets its subject in, to read', async () => {
    const { present, claims } = await start();
    const jwt = await sign(KEY, claims());
    expect(await present(jwt)).toMatchObject({ status: 200, body: { name: 'jwt:ops@example', mayWrite: false } });
    expect(await present(jwt, 'HEAD')).toMatchObject({ status: 200 });
  });

  it('lets in where there is no admin token', async () => {
    const { present, claims } = await start({ token: '' });
    expect(await present(await sign(KEY, claims()))).toMatchObject({ status: 200 });
    expect(await present(TOKEN)).toMatchObject({ status: 401 });
  });

  it('leaves the admin token what it was', async () => {
    const { present } = await start();
    for (const method of ['GET', 'POST', 'DELETE']) {
      expect(await present(TOKEN, method)).toMatchObject({ status: 200, body: { name: 'token', mayWrite: true } });
    }
  });

  it.each(['EdDSA', 'Ed25519', 'ES384', 'PS256', 'RS256'])('may be signed by %s', async (alg) => {
    const key = await createIssuerKey('other', alg);
    const { present, claims } = await start({ issuer: await startIssuer(KEY, key) });
    expect(await present(await sign(key, claims()))).toMatchObject({ status: 200 });
  });

  it.each(['JWT', 'jwt', 'at+jwt', 'application/at+jwt'])('may be of the type %s, and valid for a day', async (typ) => {
    const { clock, present, claims } = await start();
    const header = { alg: 'ES256', kid: 'key-1', typ };
    const exp = Math.floor(clock.nowMs() / 1000) + 86_400;
    const jwt = await new SignJWT(claims({ exp })).setProtectedHeader(header).sign(KEY.privateKey);
    expect(await present(jwt)).toMatchObject({ status: 200 });
  });

  it('need not name its key where the issuer has one only', async () => {
    const key = await createIssuerKey(undefined);
    const { present, claims } = await start({ issuer: await startIssuer(key) });
    expect(await present(await sign(key, claims()))).toMatchObject({ status: 200 });
  });

  it('may be meant for others too, and off by a few seconds', async () => {
    const { clock, present, claims } = await start();
    const exp = Math.floor(clock.nowMs() / 1000) - 5;
    expect(await present(await sign(KEY, claims({ aud: ['other', AUDIENCE], exp, nbf: exp + 12 })))).toMatchObject({
      status: 200,
    });
  });
});

describe('its scopes', () => {
  it.each([
    ['scope: one', { scope: 'tollgate:write' }],
    ['scope: one of several', { scope: 'openid tollgate:write profile' }],
    ['scope: both', { scope: 'tollgate:read tollgate:write' }],
    ['scp: a list', { scope: undefined, scp: ['openid', 'tollgate:write'] }],
    ['scp: one text', { scope: undefined, scp: 'openid tollgate:write' }],
  ])('allow writing, and with it reading: %s', async (_what, changes) => {
    const { present, claims } = await start();
    const jwt = await sign(KEY, claims(changes));
    for (const method of ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE']) {
      expect((await present(jwt, method)).status, method).toBe(200);
    }
  });

  it.each(['POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS'])('with tollgate:read only, %s is forbidden', async (method) => {
    const { present, claims, logs } = await start();
    expect(await present(await sign(KEY, claims()), method)).toMatchObject({
      status: 403,
      challenge: `${CHALLENGE}, error="insufficient_scope", scope="tollgate:write"`,
      body: { code: 'forbidden', detail: 'The JWT lacks the scope tollgate:write.' },
    });
    expect(logs.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'warn', client: '127.0.0.1', actor: 'jwt:ops@example', reason: 'jwt_scope', method },
    ]);
  });

  it.each([
    ['none', { scope: undefined }],
    ['an empty one', { scope: '' }],
    ['another', { scope: 'tollgate:readonly xtollgate:read tollgate' }],
    ['another case', { scope: 'Tollgate:Write' }],
    ['no text', { scope: { 'tollgate:write': true }, scp: [['tollgate:write'], 7] }],
  ])('of which %s is ours allow nothing', async (_what, changes) => {
    const { present, claims } = await start();
    expect(await present(await sign(KEY, claims(changes)))).toMatchObject({
      status: 403,
      challenge: `${CHALLENGE}, error="insufficient_scope", scope="tollgate:read"`,
    });
  });
});

describe('is refused', () => {
  it.each([
    ['expired', { exp: -11 }, 'jwt_expired'],
    ['without an end', { exp: undefined }, 'jwt_claim_exp'],
    ['with an end that is no number', { exp: 'never' }, 'jwt_claim_exp'],
    ['not valid yet', { nbf: 60 }, 'jwt_claim_nbf'],
    ['of another issuer', { iss: 'https://id.example' }, 'jwt_claim_iss'],
    ['of no issuer', { iss: undefined }, 'jwt_claim_iss'],
    ['for another audience', { aud: 'tollgate' }, 'jwt_claim_aud'],
    ['for no audience', { aud: undefined }, 'jwt_claim_aud'],
    ['of nobody', { sub: undefined }, 'jwt_claim_sub'],
    ['of an empty subject', { sub: '' }, 'jwt_claim_sub'],
    ['of a subject that is no text', { sub: 7 }, 'jwt_claim_sub'],
    ['of a subject with control characters', { sub: 'a\nb' }, 'jwt_claim_sub'],
    ['issued in the future', { iat: 60 }, 'jwt_claim_iat'],
    ['valid for years', { exp: 3 * 365 * 86_400 }, 'jwt_lifetime'],
    ['valid for more than a day', { iat: -1, exp: 86_400 }, 'jwt_lifetime'],
    ['valid for more than a day, issued at an unknown time', { iat: undefined, exp: 86_405 }, 'jwt_lifetime'],
  ])('one %s', async (_what, changes: Record<string, unknown>, reason) => {
    const { clock, present, claims, logs } = await start();
    const nowSeconds = Math.floor(clock.nowMs() / 1000);
    const isTime = ([name, value]: [string, unknown]) =>
      typeof value === 'number' && ['exp', 'nbf', 'iat'].includes(name);
    const absolute = Object.entries(changes).map((entry) =>
      isTime(entry) ? [entry[0], nowSeconds + Number(entry[1])] : entry,
    );
    const jwt = await sign(KEY, claims({ scope: 'tollgate:write', ...Object.fromEntries(absolute) }));
    expect(await present(jwt)).toMatchObject({
      status: 401,
      challenge: `${CHALLENGE}, error="invalid_token"`,
      body: { code: 'unauthorized' },
    });
    expect(logs.map((line) => JSON.parse(line))).toMatchObject([{ level: 'warn', client: '127.0.0.1', reason }]);
    for (const part of jwt.split('.')) expect(logs.join('')).not.toContain(part);
  });

  it.each(['logout+jwt', 'dpop+jwt', 'application/dpop+jwt', 'secevent+jwt', ''])(
    'one of the type "%s"',
    async (typ) => {
      const { present, claims, logs } = await start();
      const header = { alg: 'ES256', kid: 'key-1', typ };
      const jwt = await new SignJWT(claims()).setProtectedHeader(header).sign(KEY.privateKey);
      expect(await present(jwt)).toMatchObject({ status: 401 });
      expect(logs.join('')).toContain('"reason":"jwt_type"');
    },
  );

  it("one by a key of the same name that is not the issuer's", async () => {
    const { present, claims, logs } = await start();
    expect(await present(await sign(await createIssuerKey('key-1'), claims()))).toMatchObject({ status: 401 });
    expect(logs.join('')).toContain('"reason":"jwt_signature"');
  });

  it('one by a key that the issuer does not have', async () => {
    const { present, claims, logs } = await start();
    expect(await present(await sign(await createIssuerKey('key-2'), claims()))).toMatchObject({ status: 401 });
    expect(logs.join('')).toContain('"reason":"jwt_unknown_key"');
  });

  it('one whose key can be any of several', async () => {
    const [one, two] = [await createIssuerKey(undefined), await createIssuerKey(undefined)];
    const { present, claims, logs } = await start({ issuer: await startIssuer(one, two) });
    expect(await present(await sign(one, claims()))).toMatchObject({ status: 401 });
    expect(logs.join('')).toContain('"reason":"jwt_ambiguous_key"');
  });

  it('one that takes a public key for a shared secret', async () => {
    const secret = new TextEncoder().encode(JSON.stringify(KEY.publicJwk));
    const symmetric = { kty: 'oct', k: Buffer.from(secret).toString('base64url'), kid: 'hmac' };
    const issuer = await startIssuer(KEY, { ...KEY, publicJwk: symmetric });
    const { present, claims, logs } = await start({ issuer });
    for (const kid of ['key-1', 'hmac']) {
      const jwt = await new SignJWT(claims()).setProtectedHeader({ alg: 'HS256', kid }).sign(secret);
      expect(await present(jwt)).toMatchObject({ status: 401 });
    }
    expect(logs.map((line) => JSON.parse(line).reason)).toEqual(['jwt_algorithm', 'jwt_algorithm']);
  });

  it('one without a signature', async () => {
    const { present, claims } = await start();
    const unsecured = new UnsecuredJWT(claims()).encode();
    const signed = await sign(KEY, claims());
    for (const jwt of [unsecured, `${unsecured}AA`, signed.replace(/[^.]*$/, 'AA'), signed.replace(/\.[^.]*$/, '')]) {
      expect(await present(jwt)).toMatchObject({ status: 401 });
    }
  });

  it.each([
    ['a.b.c', 'jwt_unusable', 'This is not a JWT that can be verified.'],
    ['eyJhbGciOiJFUzI1NiJ9.e30.AA', 'jwt_signature', 'The signature of the JWT is wrong.'],
    ['x'.repeat(10_000), 'wrong_token', 'This is not the admin token or a JWT.'],
  ])('what is none: %s', async (text, reason, detail) => {
    const { present, logs } = await start();
    expect(await present(text)).toMatchObject({ status: 401, body: { detail } });
    expect(logs.map((line) => JSON.parse(line))).toMatchObject([{ reason }]);
  });

  it('one by a key that is too weak to be trusted', async () => {
    const weak = await createIssuerKey('weak', 'RS256');
    const n = Buffer.from(String(weak.publicJwk.n), 'base64url').subarray(0, 128).toString('base64url');
    const issuer = await startIssuer({ ...weak, publicJwk: { ...weak.publicJwk, n } });
    const { present, claims, logs } = await start({ issuer });
    expect(await present(await sign(weak, claims()))).toMatchObject({ status: 401 });
    expect(logs.join('')).toContain('"reason":"jwt_unusable"');
  });
});

describe('refused JWTs', () => {
  it('must wait after 30 within a minute, while a valid one is accepted', async () => {
    const { present, claims } = await start();
    const bad = await sign(KEY, claims({ aud: 'other' }));
    for (let i = 0; i < 30; i++) expect((await present(bad)).status).toBe(401);
    const tooMany = await present(bad);
    expect(tooMany).toMatchObject({ status: 429, body: { code: 'too_many_failures' } });
    expect(Number(tooMany.headers.get('retry-after'))).toBeGreaterThanOrEqual(60);
    expect((await present(await sign(KEY, claims()))).status).toBe(200);
  });

  it('must wait too if only the scope is missing, counted per subject, whose permitted calls still work', async () => {
    const { present, claims, logs } = await start();
    const reader = await sign(KEY, claims());
    for (let i = 0; i < 30; i++) expect((await present(reader, 'POST')).status).toBe(403);
    for (let i = 0; i < 10; i++) expect((await present(reader, 'POST')).status).toBe(429);
    expect(logs).toHaveLength(31);
    expect((await present(reader)).status).toBe(200);
    expect((await present(await sign(KEY, claims({ sub: 'other' })), 'POST')).status).toBe(403);
    expect((await present(await sign(KEY, claims({ aud: 'other' })))).status).toBe(401);
  });
});

describe('while the keys of the issuer are not known', () => {
  it('a JWT gets 503, not 401, and is not counted against its address', async () => {
    const issuer = await startIssuer();
    issuer.answer = notFound;
    const { clock, present, claims } = await start({ issuer });
    const jwt = await sign(KEY, claims());
    for (let i = 0; i < 40; i++) {
      const answer = await present(jwt);
      expect(answer).toMatchObject({ status: 503, challenge: null, body: { code: 'issuer_unavailable' } });
      expect(answer.headers.get('retry-after')).toBe('10');
    }
    expect(issuer.asked).toBe(1);
    issuer.publish(KEY);
    clock.advance(10_000);
    expect((await present(jwt)).status).toBe(200);
  });

  it('the admin token is let in, and what is no JWT refused', async () => {
    const issuer = await startIssuer();
    issuer.answer = notFound;
    const { present } = await start({ issuer });
    expect((await present(TOKEN)).status).toBe(200);
    expect((await present('wrong')).status).toBe(401);
    expect(issuer.asked).toBe(0);
  });
});
