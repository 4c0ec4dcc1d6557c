import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HeldClock } from '../../customers/keys/held-clock.ts';
import { startAdmin, type TestAdmin, TOKEN } from './support.ts';

const CALLS = [
  ['GET', '/status'],
  ['POST', '/admin/v1/customers'],
  ['GET', '/admin/v1/customers/acme'],
  ['GET', '/admin/v1/customers/acme/usage'],
  ['DELETE', '/admin/v1/customers/acme/usage'],
  ['POST', '/admin/v1/customers/acme/keys'],
  ['GET', '/admin/v1/keys/key_1'],
  ['DELETE', '/admin/v1/keys/key_1'],
  ['GET', '/no/such/path'],
  ['GET', '/admin/v1/keys/%ff'],
] as const;

let admin: TestAdmin;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.close());

function call(method: string, path: string, authorization?: string): Promise<Response> {
  return fetch(admin.origin + path, { method, headers: authorization === undefined ? {} : { authorization } });
}

const MISSING = 'Bearer realm="tollgate-admin"';
const INVALID = `${MISSING}, error="invalid_token"`;

async function expectChallenge(answer: Response, challenge = MISSING): Promise<string> {
  expect(answer.status).toBe(401);
  expect(answer.headers.get('www-authenticate')).toBe(challenge);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  const problem = (await answer.json()) as { code: string; detail: string };
  expect(problem.code).toBe('unauthorized');
  return problem.detail;
}

it.each(CALLS)('%s %s without the token is 401', async (method, path) => {
  await expectChallenge(await call(method, path));
});

it.each([
  'Bearer wrong',
  `Bearer ${TOKEN}x`,
  `Bearer ${TOKEN.slice(0, -1)}`,
  `Bearer ${TOKEN.toUpperCase()}`,
  `Bearer ${TOKEN} ${TOKEN}`,
])('"%s" is not the token', async (authorization) => {
  await expectChallenge(await call('GET', '/status', authorization), INVALID);
});

it.each([`Basic ${TOKEN}`, TOKEN, 'Bearer', 'Bearer '])('"%s" is no token at all', async (authorization) => {
  await expectChallenge(await call('GET', '/status', authorization));
});

it.each([`Bearer ${TOKEN}`, `bearer ${TOKEN}`, `BEARER   ${TOKEN}`])('"%s" is the token', async (authorization) => {
  expect((await call('GET', '/status', authorization)).status).toBe(200);
});

it('a body is not looked at before the token is', async () => {
  const answer = await fetch(`${admin.origin}/admin/v1/customers`, { method: 'POST', body: '{broken' });
  await expectChallenge(answer);
});

describe.each([undefined, ''])('without a configured token (%j)', (token) => {
  it('every request is refused, and the response names the setting', async () => {
    const locked = await startAdmin({ token });
    try {
      for (const authorization of ['Bearer undefined', 'Bearer ', `Bearer ${TOKEN}`]) {
        const answer = await fetch(`${locked.origin}/status`, { headers: { authorization } });
        expect(await expectChallenge(answer)).toContain('admin.token');
      }
    } finally {
      await locked.close();
    }
  });
});

describe('refused attempts', () => {
  let clock: HeldClock;
  let busy: TestAdmin;
  beforeEach(async () => {
    clock = new HeldClock();
    busy = await startAdmin({ clock });
  });
  afterEach(() => busy.close());

  async function statusFor(token: string, localAddress = '127.0.0.1') {
    const headers = { authorization: `Bearer ${token}` };
    const sent = request(`${busy.origin}/status`, { headers, localAddress }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    answer.resume();
    return { status: answer.statusCode, retryAfter: answer.headers['retry-after'] };
  }

  async function fail(times: number): Promise<void> {
    for (let i = 0; i < times; i++) expect(await statusFor(`guess-${i}`)).toMatchObject({ status: 401 });
  }

  it('without credentials, or with malformed ones, do not count: any web page can send these', async () => {
    for (let i = 0; i < 40; i++) {
      for (const authorization of [undefined, 'Bearer', 'Basic eDp5', 'Bearer ']) {
        const headers = authorization === undefined ? {} : { authorization };
        expect((await fetch(`${busy.origin}/status`, { headers })).status).toBe(401);
      }
    }
    expect(await statusFor('guess')).toMatchObject({ status: 401 });
    expect(await statusFor(TOKEN)).toMatchObject({ status: 200 });
    const reasons = busy.logs.map((line) => JSON.parse(line).reason).filter(Boolean);
    expect(reasons, 'one line a minute for all of a kind').toEqual(['missing', 'wrong_token']);
  });

  it('must wait after 30 of them within a minute, for the rest of it', async () => {
    await fail(30);
    clock.advance(50_000);
    const { status, retryAfter } = await statusFor('guess');
    expect(status).toBe(429);
    expect([10, 11]).toContain(Number(retryAfter));
    clock.advance(9999);
    expect(await statusFor('guess')).toMatchObject({ status: 429 });
    clock.advance(1);
    expect(await statusFor('guess')).toMatchObject({ status: 401 });
  });

  it('do not refuse the valid token, nor make it wait', async () => {
    await fail(30);
    const flood = Array.from({ length: 40 }, (_, i) => statusFor(i % 2 === 0 ? 'guess' : TOKEN));
    const statuses = (await Promise.all(flood)).map(({ status }) => status);
    expect(statuses.filter((_, i) => i % 2 === 0)).toEqual(Array(20).fill(429));
    expect(statuses.filter((_, i) => i % 2 === 1)).toEqual(Array(20).fill(200));
  });

  it('count for all loopback addresses together: a local program can use each of the 16 million', async () => {
    for (let i = 2; i < 32; i++) expect(await statusFor('guess', `127.0.${i}.${i}`)).toMatchObject({ status: 401 });
    expect(await statusFor('guess', '127.9.9.9')).toMatchObject({ status: 429 });
  });

  it('are not counted against valid credentials', async () => {
    for (let i = 0; i < 40; i++) expect(await statusFor(TOKEN)).toMatchObject({ status: 200 });
    expect(await statusFor('guess')).toMatchObject({ status: 401 });
  });

  it('are logged with the address and the reason, never the token, and no more one by one when there are many', async () => {
    await fail(30);
    for (let i = 0; i < 5; i++) await statusFor('guess-again');
    const lines = busy.logs.map((line) => JSON.parse(line));
    const refused = { level: 'warn', client: '127.0.0.1', reason: 'wrong_token', msg: 'admin access refused' };
    for (const line of lines.slice(0, 30)) expect(line).toMatchObject(refused);
    expect(lines.slice(30)).toMatchObject([
      {
        level: 'warn',
        client: '127.0.0.1',
        msg: 'admin access refused too often: further refusals are not logged one by one',
      },
    ]);
    expect(busy.logs.join('')).not.toMatch(/guess/);
  });
});
