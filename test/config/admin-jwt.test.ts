import { expect, test } from 'vitest';
import { load, MINIMAL, problemsOf } from './support.ts';

const URL_RULE =
  'must be https://host[:port]/path, or http:// with a loopback host such as 127.0.0.1, without credentials and fragment';

function jwt(url: string): string {
  return `${MINIMAL}admin:\n  jwt:\n    jwks_url: ${JSON.stringify(url)}\n    issuer: https://id.example/\n    audience: tollgate\n`;
}

test.each([
  'https://id.example/.well-known/jwks.json',
  'https://id.example:8443/keys?tenant=a',
  'http://127.0.0.1:9000/keys',
  'http://localhost/keys',
  'http://[::1]:9000/keys',
])('keys are loaded from %s', async (url) => {
  const { admin } = await load(jwt(url));
  expect(admin?.jwt).toEqual({ jwksUrl: url, issuer: 'https://id.example/', audience: 'tollgate' });
});

test.each([
  'http://id.example/keys',
  'http://127.0.0.1.example/keys',
  'http://128.0.0.1/keys',
  'https://user:MARKED@id.example/keys',
  'https://id.example/keys#first',
  'https://id.example/a b',
  'ftp://127.0.0.1/keys',
  '/keys',
  '',
])('keys are not loaded from %j: they could be changed in transit', async (url) => {
  const [problem, ...more] = await problemsOf(jwt(url));
  expect(more).toEqual([]);
  expect(problem).toBe(`gateway.yaml:5: admin.jwt.jwks_url: ${URL_RULE}`);
});

test('all three members are required: a JWT of anybody, or for anybody, proves nothing', async () => {
  expect(await problemsOf(`${MINIMAL}admin: { jwt: {} }`)).toEqual([
    `gateway.yaml:3: admin.jwt.jwks_url: is required and ${URL_RULE}`,
    'gateway.yaml:3: admin.jwt.issuer: is required and must be 1 to 512 printable ASCII characters without spaces',
    'gateway.yaml:3: admin.jwt.audience: is required and must be 1 to 512 printable ASCII characters without spaces',
  ]);
});

test.each(['issuer', 'audience'])('an empty %s is none', async (name) => {
  const yaml = jwt('https://id.example/keys').replace(new RegExp(`${name}: .*`), `${name}: ""`);
  const [problem, ...more] = await problemsOf(yaml);
  expect(more).toEqual([]);
  expect(problem).toContain(`admin.jwt.${name}: must be 1 to 512 printable ASCII characters`);
});
