/** What responses say about the end of a route, byte for byte, and what becomes of requests after it. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { ask as check, startCheckSystem, verify } from '../check/support.ts';
import { rewrite } from '../control/reload/support.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { setMaintenance } from '../support/maintenance.ts';
import { startSystem } from '../support/system.ts';

/** After the present, whenever that is. */
const AHEAD = { deprecated_at: '2126-06-30T23:59:59.900Z', sunset_at: '2127-01-01T01:00:00+01:00' };
const PAST = { deprecated_at: '2025-01-01T00:00:00Z', sunset_at: '2025-06-01T00:00:00Z' };
const SUCCESSOR = 'https://api.example.com/v2/things?from=v1&lang=en';
const ROUTES = [
  { path: '/whole', methods: ['GET', 'POST'], ...AHEAD, successor: SUCCESSOR },
  { path: '/deprecated', methods: ['GET'], deprecated_at: '1969-12-31T23:59:50Z' },
  { path: '/sunset', methods: ['GET'], sunset_at: AHEAD.sunset_at },
  { path: '/replaced', methods: ['GET'], successor: SUCCESSOR },
  { path: '/open', methods: ['GET'], key: 'none', ...AHEAD },
  { path: '/gone', methods: ['GET', 'POST'], scope: 'gone', ...PAST, successor: SUCCESSOR },
  { path: '/gone-silently', methods: ['GET'], sunset_at: PAST.sunset_at },
  { path: '/gone-open', methods: ['GET'], key: 'none', ...PAST },
  { path: '/plain', methods: ['GET'] },
];
const CONFIG = { routes: ROUTES, aliases: {}, usage_path: '/usage' } as never;
const DEPRECATION = 'Deprecation: @4938537599';
const SUNSET = 'Sunset: Wed, 01 Jan 2127 00:00:00 GMT';
const LINK = `Link: <${SUCCESSOR}>; rel="successor-version"`;

/** Sets what a route may replace, and other headers with names that are similar. */
const BACKEND_LINES = ['deprecation: true', 'SUNSET: yesterday', 'Link: </next>; rel="next"', 'X-Sunset: a'] as const;

function startRoutes(customer = {}) {
  return startSystem({
    config: CONFIG,
    customer: { id: 'acme', plan: 'enterprise', requests_per_hour: 1000, ...customer },
    answer: (_req, res) => {
      res.writeHead(
        200,
        [...BACKEND_LINES, 'Deprecation: @1'].flatMap((line) => line.split(': ')),
      );
      res.end('{}');
    },
  });
}

type System = Awaited<ReturnType<typeof startRoutes>>;

/** The lines of the response that are about the life of the route, or similar, in order. */
async function linesOf({ gateway, key }: System, path: string, { method = 'GET', token = key } = {}) {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${token}`, 'Connection: close'];
  const { hostname, port } = new URL(gateway.public);
  const socket = connect(Number(port), hostname);
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  const response = await text(socket);
  const [head = ''] = response.split('\r\n\r\n', 1);
  const [status = '', ...headers] = head.split('\r\n');
  return [status.slice(9, 12), ...headers.filter((line) => /^[^:]*(?:deprecation|sunset|link)/i.test(line))];
}

it('a response of the backend has what the route sets, and keeps what it does not set', async () => {
  const system = await startRoutes();
  const [deprecation, sunset, link, other] = BACKEND_LINES;
  for (const [path, lines] of [
    ['/whole', [link, other, DEPRECATION, SUNSET, LINK]],
    ['/deprecated', [sunset, link, other, 'Deprecation: @-10']],
    ['/sunset', [deprecation, link, other, 'Deprecation: @1', SUNSET]],
    ['/replaced', [...BACKEND_LINES, 'Deprecation: @1', LINK]],
    ['/open', [link, other, DEPRECATION, SUNSET]],
    ['/plain', [...BACKEND_LINES, 'Deprecation: @1']],
  ] as const) {
    expect([path, ...(await linesOf(system, path))]).toEqual([path, '200', ...lines]);
    expect(await linesOf(system, path, { method: 'HEAD' })).toEqual(['200', ...lines]);
  }
});

it('problems on the route have the same headers, others have none', async () => {
  const system = await startRoutes();
  const { gateway } = system;
  const all = [DEPRECATION, SUNSET, LINK];
  expect(await linesOf(system, '/whole', { token: 'unknown-key' })).toEqual(['401', ...all]);
  expect(await linesOf(system, '/whole', { method: 'DELETE' })).toEqual(['405', ...all]);
  expect(await linesOf(system, '/nothing')).toEqual(['404']);
  expect(await linesOf(system, '/plain', { token: 'unknown-key' })).toEqual(['401']);
  expect(await linesOf(system, '/usage')).toEqual(['200']);
  await setMaintenance(gateway, { mode: 'down' });
  expect(await linesOf(system, '/whole')).toEqual(['503', ...all]);
});

it('from the sunset on, requests get 410 after the scope and before the quota, and cost nothing', async () => {
  const system = await startRoutes({ requests_per_hour: 1 });
  const { gateway, backend, key } = system;
  const ask = (path: string, token = key) => fetch(gateway.public + path, { headers: bearer(token) });
  expect((await ask('/plain')).status).toBe(200);
  expect((await ask('/plain')).status).toBe(429);
  const refused = await ask('/gone');
  expect([refused.status, refused.headers.get('cache-control')]).toEqual([410, 'no-store']);
  expect(await refused.json()).toMatchObject({
    code: 'gone',
    title: 'No longer available',
    detail: `This path was shut down, and the request was not counted. Use ${SUCCESSOR} instead.`,
    successor: SUCCESSOR,
  });
  const silently = await (await ask('/gone-silently')).json();
  expect(silently).toMatchObject({ status: 410, code: 'gone' });
  expect(silently).not.toHaveProperty('successor');
  expect(await linesOf(system, '/gone')).toEqual([
    '410',
    'Deprecation: @1735689600',
    'Sunset: Sun, 01 Jun 2025 00:00:00 GMT',
    LINK,
  ]);
  expect((await ask('/gone', 'unknown-key')).status).toBe(401);
  const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body: { scopes: ['other'] } });
  expect((await ask('/gone', body.key)).status).toBe(403);
  expect((await fetch(`${gateway.public}/gone-open`)).status).toBe(410);
  expect((await fetch(`${gateway.public}/gone-open`, { method: 'POST' })).status).toBe(405);
  expect(backend.seen).toHaveLength(1);
  expect((await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used).toBe(1);
});

it('checks have the headers too, admitted or refused', async () => {
  const { gateway, key } = await startCheckSystem({ config: { routes: ROUTES as never, aliases: {} } });
  const [deprecation, sunset, link] = [DEPRECATION, SUNSET, LINK].map((line) => line.replace(/^\w+: /, ''));
  const shown = { deprecation, sunset, link };
  const named = { 'X-Original-Method': 'GET', 'X-Original-URI': '/whole' };
  const admitted = await check(gateway, '/nginx', { headers: { ...named, ...bearer(key) } });
  expect(admitted).toMatchObject({ status: 200, headers: shown });
  expect(await verify(gateway, { key, path: '/whole' })).toMatchObject({ body: { allowed: true }, headers: shown });
  expect(await verify(gateway, { key: 'unknown-key', path: '/whole' })).toMatchObject({
    status: 200,
    body: { allowed: false },
    headers: shown,
  });
  const refusal = (await check(gateway, '/nginx', { headers: named })).headers['x-tollgate-refusal'] ?? '';
  const fetched = await check(gateway, '/refusal', { headers: { 'X-Tollgate-Refusal': refusal } });
  expect(fetched).toMatchObject({ status: 401, headers: shown });
  expect(await check(gateway, '/ext-authz/gone-silently', { headers: bearer(key) })).toMatchObject({ status: 410 });
  expect((await verify(gateway, { key, path: '/gone-silently' })).body.problem.code).toBe('gone');
  expect((await check(gateway, '/ext-authz/plain', { headers: bearer(key) })).headers.deprecation).toBeUndefined();
});

it('a reload moves a sunset', async () => {
  const { gateway, key } = await startRoutes();
  const ask = () => fetch(`${gateway.public}/gone-silently`, { headers: bearer(key) });
  expect((await ask()).status).toBe(410);
  const routes = ROUTES.map((route) =>
    route.path === '/gone-silently' ? { ...route, sunset_at: AHEAD.sunset_at } : route,
  );
  await rewrite(gateway, { routes: routes as never });
  const { status, body } = await callAdmin(gateway, '/admin/v1/config/reload', { method: 'POST' });
  expect([status, body.result]).toEqual([200, 'applied']);
  expect((await ask()).status).toBe(200);
});
