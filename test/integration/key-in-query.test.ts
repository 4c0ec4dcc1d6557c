import { expect, it } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { startSystem } from '../support/system.ts';

const encoded = (text: string) => Buffer.from(text).toString('hex').replaceAll(/../g, '%$&');

it('a key in the query, without an Authorization header, is refused as exposed and repeated nowhere', async () => {
  const { gateway, backend, key } = await startSystem({ config: { logging: { level: 'trace' } } });
  const targets = [
    `/v1/conversations?api_key=${key}`,
    `/v1/conversations/x?limit=1&${key}`,
    `/v1/usage?a=${encoded(key)}&b=%zz`,
    `http://api.example/api/v1/conversations?key=${key}`,
  ];
  const said: string[] = [];
  for (const target of targets) {
    const answer = await exchangeRaw(gateway.public, `GET ${target} HTTP/1.1\r\nHost: api.example\r\n\r\n`);
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="api"');
    const problem = JSON.parse(answer.body);
    expect(problem).toMatchObject({ code: 'key_in_query', type: 'urn:tollgate:problem:key-in-query' });
    expect(problem.detail).toContain('Consider it exposed: ask whoever gave you the key for a new one');
    said.push(JSON.stringify(answer));
  }
  expect(backend.seen).toEqual([]);
  await expect
    .poll(() => gateway.logs.filter(({ msg, code }) => msg === 'request' && code === 'key_in_query'))
    .toHaveLength(targets.length);
  expect(await readMetric(gateway, 'tollgate_auth_total')).toMatchObject({ 'result="in_query"': targets.length });
  said.push(await (await fetch(`${gateway.ops}/metrics`)).text(), JSON.stringify(gateway.logs));
  said.push(JSON.stringify((await callAdmin(gateway, '/status')).body));
  for (const shape of [key, encoded(key), key.slice(3, -8)]) expect(said.join()).not.toContain(shape);
});

it('a key in the query is forwarded as it is when the request has a good one where it belongs', async () => {
  const { gateway, backend, key } = await startSystem();
  const query = `?api_key=${key}&a=%zz&a=${encoded(key)}`;
  const target = `GET /v1/conversations${query} HTTP/1.1`;
  const answer = await exchangeRaw(gateway.public, `${target}\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  expect(answer.status).toBe(200);
  expect(backend.seen.map(({ url }) => url)).toEqual([`/api/v1/conversations${query}`]);
});

it.each([
  ['a bad key in its place', bearer('unknown-key'), 'invalid_key'],
  ['another scheme', { authorization: 'Basic dTpw' }, 'missing_key'],
  ['what cannot be a key', { authorization: 'Bearer !' }, 'malformed_key'],
])('with %s, that is what is wrong, whatever is in the query', async (_, headers, code) => {
  const { gateway, key } = await startSystem();
  const answer = await fetch(`${gateway.public}/v1/conversations?api_key=${key}`, { headers });
  expect(await answer.json()).toMatchObject({ code });
});

it('what only looks like a key is a missing one', async () => {
  const { gateway, key } = await startSystem();
  const mistyped = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
  for (const value of [mistyped, key.slice(0, -1), 'tg_demo_starter', 'made-elsewhere-0123456789']) {
    const answer = await fetch(`${gateway.public}/v1/conversations?api_key=${value}`);
    expect(await answer.json()).toMatchObject({ status: 401, code: 'missing_key' });
  }
});
