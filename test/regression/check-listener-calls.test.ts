/**
 * On the check listener, `/usage` without a `usage_path` was a check for the route `/`: it used quota, and was a yes. It did
 * not look for a key in its query. A forged refusal was an internal error, an HTTP/1.0 client got an interim response, and
 * a refusal of `/verify` had two X-Request-Id. An X-Request-Id with the key that `/verify` was asked about was logged. An
 * empty `check.token_file`, such as one that is just being written, was a listener without a token.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ask, CHECK_TOKEN, startCheckSystem, usedOf, verify } from '../check/support.ts';
import { problemsOf } from '../config/support.ts';
import { temporaryFolder } from '../docs/recipes/support.ts';
import { bearer } from '../support/admin.ts';
import { exchangeRaw } from '../support/raw-http.ts';

test('/usage is 404 where no usage is served, and never a check for another route', async () => {
  const routes = [{ path: '/', methods: ['GET'] }];
  const { gateway, key } = await startCheckSystem({ config: { routes, usage_path: null } as never });
  expect(await ask(gateway, '/ext-authz/', { headers: bearer(key) })).toMatchObject({ status: 200 });
  expect(await ask(gateway, '/usage', { headers: bearer(key) })).toMatchObject({
    status: 404,
    body: { code: 'not_found' },
  });
  expect(await usedOf(gateway)).toBe(1);
});

test('/usage tells of a key in its query, as the public listener does', async () => {
  const { gateway, key } = await startCheckSystem();
  expect(await ask(gateway, `/usage?key=${key}`)).toMatchObject({ status: 401, body: { code: 'key_in_query' } });
  expect(await ask(gateway, '/usage?key=1', { headers: bearer(key) })).toMatchObject({ status: 200 });
  expect(JSON.stringify(gateway.logs)).not.toContain(key);
});

test('/refusal with a header that has no value is 503, and no bug', async () => {
  const { gateway } = await startCheckSystem();
  const refusal = { status: 401, fields: ['Retry-After'], document: { code: 'invalid_key', status: 401 } };
  const headers = { 'X-Tollgate-Refusal': Buffer.from(JSON.stringify(refusal)).toString('base64url') };
  expect(await ask(gateway, '/refusal', { headers })).toMatchObject({ status: 503, body: { code: 'overloaded' } });
  expect(gateway.logs.filter(({ level }) => level === 'error')).toEqual([]);
});

test('an HTTP/1.0 client, which knows no interim responses, gets none', async () => {
  const { gateway, key } = await startCheckSystem();
  const headers = `X-Tollgate-Check-Token: ${CHECK_TOKEN}\r\nAuthorization: Bearer ${key}\r\nExpect: 100-continue\r\n`;
  const request = `POST /ext-authz/v1/open HTTP/1.0\r\n${headers}Content-Length: 1\r\n\r\nx`;
  expect(await exchangeRaw(gateway.check, request)).toMatchObject({ status: 200 });
});

test('a refusal of /verify has one X-Request-Id, that of its document', async () => {
  const { gateway } = await startCheckSystem();
  const { headers, body } = await verify(gateway, { key: 'unknown-key' });
  expect(headers['x-request-id']).toBe(body.problem.request_id);
});

test('a key of /verify is not logged as the id of its request', async () => {
  const { gateway } = await startCheckSystem();
  const key = 'an-imported-key';
  for (const id of [key, `id-of-${key}`]) {
    const { headers } = await verify(gateway, { key }, { 'X-Request-Id': id });
    expect(headers['x-request-id']).not.toContain(key);
  }
  expect(JSON.stringify(gateway.logs)).not.toContain(key);
  expect(await verify(gateway, { key }, { 'X-Request-Id': 'of-a-client' })).toMatchObject({
    headers: { 'x-request-id': 'of-a-client' },
  });
});

test('an empty check.token_file is refused, on a loopback address too', async () => {
  const file = join(temporaryFolder(), 'token');
  writeFileSync(file, '\n');
  const yaml = `store: { url: "redis://127.0.0.1" }\ncheck: { token_file: ${file} }`;
  expect(await problemsOf(yaml)).toEqual([expect.stringContaining('check.token_file: the file is empty')]);
});
