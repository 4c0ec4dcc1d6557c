import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

async function expectChallenge(answer: Response): Promise<string> {
  expect(answer.status).toBe(401);
  expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="tollgate-admin"');
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
  `Basic ${TOKEN}`,
  TOKEN,
  'Bearer',
  'Bearer ',
])('"%s" is not the token', async (authorization) => {
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
  it('nobody gets in, and the answer names the setting', async () => {
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
