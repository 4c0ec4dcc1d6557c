/** `auth.key_headers` in a whole gateway: reloads, metric, log, scopes, and what the pages and the check of a file say. */
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { rewrite, takeOver } from '../control/reload/support.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { readMetric } from '../support/metrics.ts';
import { startSystem } from '../support/system.ts';

const ROUTES = [
  { path: '/api/v1/conversations', methods: ['GET'] },
  { path: '/api/v1/secrets', methods: ['GET'], scope: 'secrets:read' },
] as unknown as Record<string, unknown>;

it('a reload applies them at once, to requests, responses, metric and log', async () => {
  const { gateway, backend, key } = await startSystem({ config: { routes: ROUTES } });
  const get = (headers: Record<string, string>, path = '/v1/conversations') =>
    fetch(gateway.public + path, { headers });
  const statuses = async () => [(await get(bearer(key))).status, (await get({ 'x-api-key': key })).status];
  const lastLine = () => gateway.logs.findLast(({ msg }) => msg === 'request');

  expect(await statuses()).toEqual([200, 401]);
  expect(lastLine()).not.toHaveProperty('key_header');
  await rewrite(gateway, { auth: { key_headers: ['Authorization', 'X-API-Key'] } });
  expect(await takeOver(gateway)).toBe('applied');
  expect(await statuses()).toEqual([200, 200]);
  expect(lastLine()).toMatchObject({ status: 200, key_header: 'X-API-Key' });
  expect((await get({ 'x-api-key': 'unknown-key' })).status).toBe(401);
  expect(lastLine()).toMatchObject({ code: 'invalid_key', key_header: 'X-API-Key' });
  await rewrite(gateway, { auth: { key_headers: ['X-API-Key'] } });
  expect(await takeOver(gateway)).toBe('applied');
  expect(await statuses()).toEqual([401, 200]);
  expect(await readMetric(gateway, 'tollgate_key_header_total')).toEqual({
    'header="Authorization"': 2,
    'header="X-API-Key"': 2,
  });
  expect(JSON.stringify(backend.seen)).not.toContain(key);
  expect(JSON.stringify(gateway.logs)).not.toContain(key);
});

it('a request whose body still arrives keeps the list with which it began; the next one on its connection has the new', async () => {
  const routes = [{ path: '/api/v1/conversations', methods: ['POST'] }] as unknown as Record<string, unknown>;
  const { gateway, backend, key } = await startSystem({ config: { routes, auth: { key_headers: ['X-API-Key'] } } });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const begin = (headers: Record<string, string>) => {
    const sent = request(`${gateway.public}/v1/conversations`, { method: 'POST', agent, headers });
    const response = once(sent, 'response').then(async ([incoming]: IncomingMessage[]) => {
      if (incoming !== undefined) await buffer(incoming);
      return incoming?.statusCode;
    });
    return { sent, response };
  };
  const first = begin({ 'X-API-Key': key, 'X-Request-Id': key, 'X-Other': 'kept' });
  first.sent.write('the beginning');
  await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 1 });
  await rewrite(gateway, { routes, auth: { key_headers: ['Authorization'] } });
  expect(await takeOver(gateway)).toBe('applied');
  first.sent.end(' and the end');
  expect(await first.response).toBe(200);
  expect(backend.seen[0]?.headers).toMatchObject({ 'x-other': 'kept' });

  const second = begin({ 'X-API-Key': key });
  second.sent.end();
  expect(await second.response).toBe(401);
  const third = begin({ ...bearer(key), 'X-API-Key': 'no-credentials-now' });
  third.sent.end();
  expect(await third.response).toBe(200);
  expect(backend.seen.map(({ headers }) => headers['x-api-key'])).toEqual([undefined, 'no-credentials-now']);
  expect(JSON.stringify([backend.seen, gateway.logs])).not.toContain(key);
});

it.each([
  [['Authorization', 'X-API-Key'], 'Bearer'],
  [['X-API-Key'], 'ApiKey'],
])('the 403 of a missing scope has the scheme of the 401: %j', async (names, scheme) => {
  const { gateway } = await startSystem({ config: { routes: ROUTES, auth: { key_headers: names } } });
  const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body: { scopes: ['other'] } });
  const response = await fetch(`${gateway.public}/v1/secrets`, { headers: { 'x-api-key': body.key } });
  expect(response.status).toBe(403);
  expect(response.headers.get('www-authenticate')).toBe(`${scheme} error="insufficient_scope", scope="secrets:read"`);
  const missing = await fetch(`${gateway.public}/v1/secrets`);
  expect(missing.headers.get('www-authenticate')).toMatch(new RegExp(`^${scheme} realm="api"`));
});

it('the usage path takes the key from the same header', async () => {
  const { gateway, key } = await startSystem({ config: { auth: { key_headers: ['api_key'] } } });
  const usage = await fetch(`${gateway.public}/v1/usage`, { headers: { api_key: key } });
  expect(await usage.json()).toMatchObject({ customer: 'acme' });
  for (const name of ['api-key', 'apikey', 'authorization']) {
    expect((await fetch(`${gateway.public}/v1/usage`, { headers: { [name]: key } })).status).toBe(401);
  }
});
