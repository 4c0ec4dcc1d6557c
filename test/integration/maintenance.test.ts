/** Maintenance: what is refused, that it is free and the same for everyone, and what happens when the store is away. */
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { ask as check, startCheckSystem, verify } from '../check/support.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { setMaintenance, switchUnderLoad } from '../support/maintenance.ts';
import { readMetric } from '../support/metrics.ts';
import { keyName, startRedisSystem } from '../support/redis-system.ts';
import { startSystem } from '../support/system.ts';

const ROUTES = [
  { path: '/things', methods: ['GET', 'POST'], scope: 'things' },
  { path: '/others', methods: ['GET', 'POST'] },
  { path: '/others', methods: ['OPTIONS'], key: 'none' },
  { path: '/health', methods: ['GET', 'POST'], key: 'none' },
];
const CONFIG = { routes: ROUTES, aliases: {}, usage_path: '/usage' } as never;
const PATH = '/admin/v1/maintenance';

const inMinutes = (minutes: number) => new Date(Date.now() + 60_000 * minutes).toISOString();

async function ask(gateway: TestGateway, path: string, key?: string, method = 'GET') {
  const response = await fetch(gateway.public + path, { method, headers: key === undefined ? {} : bearer(key) });
  const text = await response.text();
  const code: unknown = text.startsWith('{"type"') ? JSON.parse(text).code : undefined;
  return { status: response.status, code, text, headers: response.headers };
}

const codeOf = async (...request: Parameters<typeof ask>) => (await ask(...request)).code ?? 'served';

async function usedOf(gateway: TestGateway): Promise<number> {
  return (await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used;
}

it('down refuses every route with the same 503, whatever the key, and counts and forwards nothing', async () => {
  const { gateway, backend, key } = await startSystem({ config: CONFIG });
  const message = 'New disks, until noon – sorry.';
  await setMaintenance(gateway, { mode: 'down', message, until: inMinutes(2) });
  for (const [path, method] of [
    ['/things', 'GET'],
    ['/others', 'POST'],
    ['/others', 'OPTIONS'],
    ['/health', 'GET'],
  ] as const) {
    for (const each of [key, 'unknown-key', undefined]) {
      const { status, code, text, headers } = await ask(gateway, path, each, method);
      expect([path, status, code]).toEqual([path, 503, 'maintenance']);
      expect(JSON.parse(text).detail).toBe(message);
      const seconds = Number(headers.get('retry-after'));
      expect(seconds > 100 && seconds <= 120).toBe(true);
      expect(headers.get('www-authenticate')).toBeNull();
      expect(headers.get('ratelimit')).toBeNull();
    }
  }
  expect((await ask(gateway, '/things', key, 'HEAD')).status).toBe(503);
  expect(await codeOf(gateway, '/things', key, 'PUT')).toBe('method_not_allowed');
  expect(await codeOf(gateway, '/nothing', key)).toBe('not_found');
  expect((await ask(gateway, '/usage', key)).status).toBe(200);
  expect(await codeOf(gateway, '/usage', 'unknown-key')).toBe('invalid_key');
  expect(backend.seen).toEqual([]);
  expect(await usedOf(gateway)).toBe(0);
  expect((await fetch(`${gateway.ops}/readyz`)).status).toBe(200);
  const { body: status } = await callAdmin(gateway, '/status');
  expect(status.maintenance).toMatchObject({ mode: 'down', routes: null, message });
  expect(await readMetric(gateway, 'tollgate_maintenance_since_timestamp_seconds')).toEqual({
    'mode="read_only"': 0,
    'mode="down"': Date.parse(status.maintenance.since) / 1000,
  });

  const ended = await setMaintenance(gateway, { mode: 'off' });
  expect(ended).toEqual({ mode: 'off', routes: null, until: null, message: null, since: null });
  expect((await ask(gateway, '/things', key)).status).toBe(200);
  const { body } = await callAdmin(gateway, '/admin/v1/audit?action=maintenance.set');
  expect(body.items).toMatchObject([
    { details: { mode: 'off', message: null }, before: { mode: 'down', message } },
    { details: { mode: 'down', message }, before: { mode: 'off' } },
  ]);
});

it('read_only lets GET, HEAD and OPTIONS pass', async () => {
  const { gateway, key } = await startSystem({ config: CONFIG });
  await setMaintenance(gateway, { mode: 'read_only' });
  const refused = await ask(gateway, '/others', key, 'POST');
  expect([refused.code, refused.headers.get('retry-after')]).toEqual(['maintenance', null]);
  expect(await codeOf(gateway, '/health', undefined, 'POST')).toBe('maintenance');
  for (const method of ['GET', 'HEAD', 'OPTIONS']) {
    expect((await ask(gateway, '/others', key, method)).status).toBe(200);
  }
});

it('with routes, only those are refused', async () => {
  const { gateway, key } = await startSystem({ config: CONFIG });
  await setMaintenance(gateway, { mode: 'down', routes: ['/others', '/health'] });
  expect(await codeOf(gateway, '/things', key)).toBe('served');
  for (const path of ['/others', '/health']) expect(await codeOf(gateway, path, key)).toBe('maintenance');
});

it('ends by itself, and a change does not move its beginning', async () => {
  const { gateway, key } = await startSystem({ config: CONFIG });
  const begun = await setMaintenance(gateway, { mode: 'read_only' });
  const until = new Date(Date.now() + 4000).toISOString();
  expect(await setMaintenance(gateway, { mode: 'down', until })).toMatchObject({ until, since: begun.since });
  expect(await codeOf(gateway, '/things', key)).toBe('maintenance');
  await expect.poll(() => codeOf(gateway, '/things', key), { timeout: 20_000 }).toBe('served');
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(until));
  expect((await callAdmin(gateway, PATH)).body).toMatchObject({ mode: 'off', since: null });
});

it('an unknown route, an end in the past, and what cannot be shown are 422, and change nothing', async () => {
  const { gateway } = await startSystem({ config: CONFIG });
  for (const [change, detail] of [
    [{ mode: 'down', routes: ['/things', '/nothing'] }, 'routes: '],
    [{ mode: 'down', routes: ['/usage'] }, 'routes: '],
    [{ mode: 'down', routes: [] }, 'routes: '],
    [{ mode: 'down', until: '2020-01-01T00:00:00Z' }, 'until: '],
    [{ mode: 'down', until: 'tomorrow' }, 'until: '],
    [{ mode: 'down', message: 'x'.repeat(501) }, 'message: '],
    [{ mode: 'down', message: 'a\u0000b' }, 'message: '],
    [{ mode: 'maybe' }, 'mode: '],
    [{}, 'mode: '],
    [{ mode: 'off', paths: [] }, '"paths": '],
  ] as const) {
    const { status, body } = await callAdmin(gateway, PATH, { method: 'PUT', body: change });
    expect([status, body.detail.slice(0, detail.length)]).toEqual([422, detail]);
  }
  expect((await callAdmin(gateway, PATH)).body.mode).toBe('off');
  expect((await callAdmin(gateway, '/admin/v1/audit?action=maintenance.set')).body.items).toEqual([]);
});

it('a request that waits for its body is refused if maintenance begins meanwhile, and costs nothing', async () => {
  const { gateway, backend, key } = await startSystem({ config: CONFIG });
  const { hostname, port } = new URL(gateway.public);
  const requests = ['/others', '/health'].map((path) => {
    const lines = [`POST ${path} HTTP/1.1`, 'Host: a', `Authorization: Bearer ${key}`, 'Content-Length: 4'];
    return `${lines.join('\r\n')}\r\n\r\nab`;
  });
  for (const request of requests) {
    const client = connect(Number(port), hostname).setEncoding('latin1');
    onTestFinished(() => void client.destroy());
    let received = '';
    client.on('data', (data) => (received += data));
    client.write(request);
    await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 1 });
    await setMaintenance(gateway, { mode: 'down' });
    client.write('cd');
    await expect.poll(() => received).toMatch(/^HTTP\/1\.1 503 .*"code":"maintenance"/s);
    await setMaintenance(gateway, { mode: 'off' });
  }
  expect(backend.seen).toEqual([]);
  expect(await usedOf(gateway)).toBe(0);
  expect(await readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 0 });
});

it('holds in all calls of the check listener that name a request, and counts no check', async () => {
  const { gateway, key } = await startCheckSystem();
  await setMaintenance(gateway, { mode: 'down', message: 'Back soon.', until: inMinutes(1) });
  const named = { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/v1/open', ...bearer(key) };
  for (const refused of [
    await check(gateway, '/ext-authz/v1/open', { headers: bearer(key) }),
    await check(gateway, '/ext-authz/health'),
    await check(gateway, '/forward-auth', { headers: named }),
  ]) {
    expect(refused).toMatchObject({ status: 503, body: { code: 'maintenance', detail: 'Back soon.' } });
  }
  for (const question of [{ key, path: '/v1/open' }, { key, path: '/v1/open', dry_run: true }, { key }]) {
    const problem = { status: 503, code: 'maintenance', detail: 'Back soon.' };
    expect(await verify(gateway, question)).toMatchObject({ status: 200, body: { allowed: false, problem } });
  }
  const original = { 'X-Original-Method': 'GET', 'X-Original-URI': '/v1/open', ...bearer(key) };
  const nginx = await check(gateway, '/nginx', { headers: original });
  expect(nginx.status).toBe(403);
  const refusal = { 'X-Tollgate-Refusal': nginx.headers['x-tollgate-refusal'] ?? '' };
  const fetched = await check(gateway, '/refusal', { headers: refusal });
  expect(fetched).toMatchObject({ status: 503, body: { code: 'maintenance' } });
  expect(Number(fetched.headers['retry-after'])).toBeGreaterThan(30);
  expect(await usedOf(gateway)).toBe(0);
  expect((await check(gateway, '/usage', { headers: bearer(key) })).status).toBe(200);

  await setMaintenance(gateway, { mode: 'down', routes: ['/v1/orders'] });
  expect(await verify(gateway, { key })).toMatchObject({ body: { allowed: true } });
  expect(await verify(gateway, { key, path: '/v1/orders' })).toMatchObject({ body: { allowed: false } });
});

it('holds after a restart, and without the store as last known', async () => {
  const { gateway, gateways, redis, backend, key } = await startRedisSystem({ gateways: 2, config: CONFIG });
  const [, other] = gateways;
  if (other === undefined) throw new Error('there are two gateways');
  expect(await codeOf(other, '/things', key)).toBe('served');
  await setMaintenance(gateway, { mode: 'down' });
  await expect.poll(() => codeOf(other, '/things', key)).toBe('maintenance');
  const later = await startTestGateway({ storeUrl: redis.url, upstreamUrl: backend.url, config: CONFIG });
  onTestFinished(() => later.close());
  const all = [gateway, other, later];
  for (const each of all) expect(await codeOf(each, '/things', key)).toBe('maintenance');

  await redis.kill();
  await expect.poll(async () => (await callAdmin(other, '/status')).body.store.up).toBe(false);
  for (const each of all) expect(await codeOf(each, '/health')).toBe('maintenance');
  expect((await callAdmin(other, '/status')).body.maintenance.mode).toBe('down');
  for (const method of ['GET', 'PUT']) {
    const refused = await callAdmin(other, PATH, { method, ...(method === 'PUT' && { body: { mode: 'off' } }) });
    expect([refused.status, refused.body.code]).toEqual([503, 'store_unavailable']);
  }
});

it('a store that lost its data does not end it, and it can be ended there', async () => {
  const { gateway, redis, key } = await startRedisSystem({ config: CONFIG });
  expect(await codeOf(gateway, '/things', key)).toBe('served');
  await setMaintenance(gateway, { mode: 'down' });
  await expect.poll(() => codeOf(gateway, '/things', key)).toBe('maintenance');
  await redis.command('FLUSHALL');
  await expect.poll(async () => (await callAdmin(gateway, '/status')).body.store.wiped).toBe(true);
  expect(await codeOf(gateway, '/things', key)).toBe('maintenance');
  await setMaintenance(gateway, { mode: 'off' });
  await expect.poll(() => codeOf(gateway, '/health')).toBe('served');
  // A record of the maintenance proves nothing about keys.
  expect(await codeOf(gateway, '/things', 'unknown-key')).toBe('store_unavailable');
});

it('a record that cannot be read leaves the last known state in force', async () => {
  const { gateway, redis, key } = await startRedisSystem({ config: CONFIG });
  await setMaintenance(gateway, { mode: 'down' });
  await expect.poll(() => codeOf(gateway, '/things', key)).toBe('maintenance');
  for (const text of ['down', '{}', '{"mode":"down","until":"noon"}', '{"mode":"off","routes":[1]}']) {
    await redis.command('SET', 'tollgate:maintenance', text);
    expect((await callAdmin(gateway, PATH)).status).toBe(503);
    expect(await codeOf(gateway, '/things', key)).toBe('maintenance');
  }
  await redis.command('DEL', 'tollgate:maintenance');
  await expect.poll(() => codeOf(gateway, '/things', key)).toBe('served');
  expect(await redis.command('EXISTS', keyName(key))).toBe(1);
});

it('switched on and off in two gateways under load, each response is 200 or 503 maintenance, and only 200 is counted', async () => {
  await switchUnderLoad(4);
});
