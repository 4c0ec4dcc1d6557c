/** From the request_id of a refused or failed request to its cause, without a log. */
import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { CHECK_TOKEN, ask as check, verify } from '../check/support.ts';
import { tollgateHereFor } from '../cli/support.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { closeAtEnd } from '../support/cleanup.ts';
import { STORES, type StoreKind, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { exchangeRaw } from '../support/raw-http.ts';

const ROUTES = [{ path: '/api/v1/{id}', methods: ['GET'] }] as never;
const CONFIG = {
  routes: ROUTES,
  check: { host: '127.0.0.1', port: 0, token: CHECK_TOKEN, trusted_proxies: ['127.0.0.1'] },
};

async function startPair(kind: StoreKind, config: Record<string, Record<string, unknown>> = {}) {
  const store = await kind.start();
  closeAtEnd(() => store.close());
  const left = Promise.withResolvers<void>();
  const backend = await startBackend((req, res) => {
    if (req.url === '/api/v1/fails') res.writeHead(503).end();
    else if (req.url === '/api/v1/missing') res.writeHead(404).end();
    else if (req.url === '/api/v1/resets') res.socket?.resetAndDestroy();
    else if (req.url === '/api/v1/breaks')
      res.writeHead(200, { 'content-length': '9' }).write('1', () => res.destroy());
    else if (req.url === '/api/v1/waits') left.resolve();
    else res.end('ok');
  });
  closeAtEnd(() => backend.close());
  const start = async () => {
    const urls = { storeUrl: store.url, upstreamUrl: backend.url };
    const gateway = await startTestGateway({ ...urls, config: { ...CONFIG, ...config } });
    closeAtEnd(() => gateway.close());
    return gateway;
  };
  return { start, backend, waits: left.promise };
}

async function found(gateway: TestGateway, requestId: string) {
  const { status, body } = await callAdmin(gateway, `/admin/v1/requests/${encodeURIComponent(requestId)}`);
  if (status === 404) return [];
  expect(status).toBe(200);
  return body.items;
}

async function send(gateway: TestGateway, path: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(gateway.public + path, { headers });
  await response.text().catch(() => undefined);
  return response.headers.get('x-request-id') ?? '';
}

describe.each(STORES)('over $name', (kind) => {
  it('each refused or failed request leads to its cause, after a restart too', async () => {
    const { start, backend, waits } = await startPair(kind);
    const gateway = await start();
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
    const keyId = (await callAdmin(gateway, '/admin/v1/customers/acme/keys')).body.items[0].id;
    const startedMs = Date.now();
    const ids = {
      served: await send(gateway, '/api/v1/1', bearer(key)),
      missing: await send(gateway, '/api/v1/missing', bearer(key)),
      unknown: await send(gateway, '/api/v1/1', bearer('unknown-key-of-this-test')),
      unrouted: await send(gateway, '/private/path?of=this', { ...bearer(key), 'x-request-id': 'chosen/1+2' }),
      fails: await send(gateway, '/api/v1/fails', bearer(key)),
      resets: await send(gateway, '/api/v1/resets', bearer(key)),
      breaks: await send(gateway, '/api/v1/breaks', bearer(key)),
    };
    const raw = await exchangeRaw(gateway.public, 'GET / HTTP/1.1\r\nbad header\r\n\r\n');
    const leaving = request(`${gateway.public}/api/v1/waits`, { headers: { ...bearer(key), 'x-request-id': 'left' } });
    leaving.on('error', () => undefined).end();
    await waits;
    leaving.destroy();
    const inFlight = async () =>
      (await (await fetch(`${gateway.ops}/metrics`)).text()).match(/inflight_requests (\d+)/)?.[1];
    await expect.poll(inFlight).toBe('0');
    await gateway.close();

    const next = await start();
    const nothing = { code: null, customer: null, key_id: null, backend: null, upstream: null, failure: null };
    const of = { source: 'gateway', method: 'GET', route: '/api/v1/{id}', client: '127.0.0.1', ...nothing };
    const ofAcme = { ...of, customer: 'acme', key_id: keyId, backend: 'default', upstream: new URL(backend.url).host };
    const facts = { at: expect.any(String), duration_ms: expect.any(Number) };
    const expected = {
      unknown: { ...of, status: 401, code: 'invalid_key', backend: 'default' },
      unrouted: { ...of, status: 404, code: 'not_found', route: 'none' },
      fails: { ...ofAcme, status: 503, source: 'upstream' },
      resets: { ...ofAcme, status: 502, code: 'bad_gateway', failure: 'reset' },
      breaks: { ...ofAcme, status: 200, source: 'upstream', failure: expect.any(String) },
    };
    for (const [what, members] of Object.entries(expected)) {
      const requestId = ids[what as keyof typeof ids];
      expect(await found(next, requestId), what).toStrictEqual([{ request_id: requestId, ...facts, ...members }]);
    }
    const leftEntry = { request_id: 'left', ...facts, ...ofAcme, status: 499 };
    expect(await found(next, 'left')).toStrictEqual([leftEntry]);
    const rawId = JSON.parse(raw.body).request_id;
    const rawEntry = { request_id: rawId, ...of, status: 400, code: 'bad_request', method: 'other', route: 'none' };
    expect(await found(next, rawId)).toStrictEqual([{ ...rawEntry, ...facts, duration_ms: null }]);
    expect([...(await found(next, ids.served)), ...(await found(next, ids.missing))]).toEqual([]);

    const { body } = await callAdmin(next, '/admin/v1/requests');
    expect(body.next_cursor).toBeNull();
    expect(body.items).toHaveLength(7);
    expect(body.items[0]).toStrictEqual(leftEntry);
    const times = body.items.map(({ at }: { at: string }) => Date.parse(at));
    expect(times).toEqual(times.toSorted((a: number, b: number) => b - a));
    expect(Math.min(...times)).toBeGreaterThanOrEqual(startedMs - 1000);
    expect(JSON.stringify(body)).not.toMatch(new RegExp(`private|of=this|unknown-key|${key}`));
    const filtered = await callAdmin(next, '/admin/v1/requests?customer=acme&code=bad_gateway');
    expect(filtered.body.items.map((each: { request_id: string }) => each.request_id)).toEqual([ids.resets]);
    const first = await callAdmin(next, '/admin/v1/requests?limit=2');
    const second = await callAdmin(next, `/admin/v1/requests?limit=9&cursor=${first.body.next_cursor}`);
    expect([...first.body.items, ...second.body.items]).toEqual(body.items);
    expect((await callAdmin(next, '/admin/v1/requests?cursor=x')).status).toBe(422);

    const tollgate = tollgateHereFor(next);
    const shown = await tollgate('requests', 'show', ids.resets);
    expect(shown.stdout).toMatch(/^code +bad_gateway$/m);
    expect(shown.stdout).toMatch(/^failure +reset$/m);
    expect(JSON.parse((await tollgate('requests', 'show', 'left', '--json')).stdout)).toStrictEqual({
      items: [leftEntry],
    });
    expect(await tollgate('requests', 'show', 'unknown')).toMatchObject({ status: 1, stdout: '' });
    const table = (await tollgate('requests', 'list', '--customer', 'acme', '--limit', '2')).stdout;
    expect(table).toMatch(/^AT +STATUS +CODE +SOURCE +CUSTOMER .*\n\S+ +499 /);
    expect(table.trimEnd().split('\n'), table).toHaveLength(3);
    const ofCode = await tollgate('requests', 'list', '--code', 'invalid_key', '--json');
    expect(JSON.parse(ofCode.stdout)).toMatchObject({ items: [{ request_id: ids.unknown }], next_cursor: null });
  });

  it('a check is recorded, but none by nginx and no dry run; portal and admin are not', async () => {
    const { start } = await startPair(kind, { portal: { host: '127.0.0.1', port: 0, public_url: 'http://127.0.0.1' } });
    const gateway = await start();
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
    const nginx = { 'X-Original-Method': 'GET', 'X-Original-URI': '/api/v1/1', 'X-Request-Id': 'by-nginx' };
    expect((await check(gateway, '/nginx', { headers: nginx })).status).toBe(403);
    expect((await check(gateway, '/nginx', { headers: nginx, token: 'wrong' })).status).toBe(500);
    await check(gateway, '/ext-authz/api/v1/1', { headers: { 'X-Request-Id': 'by-envoy' } });
    await verify(gateway, { key: 'wrong-key-1234' }, { 'X-Request-Id': 'wrong-key-1234-and-more' });
    await verify(gateway, { key: 'wrong-key-1234', dry_run: true }, { 'X-Request-Id': 'dry-run' });
    await verify(gateway, { key, path: '/none', dry_run: true }, { 'X-Request-Id': 'dry-run' });
    await callAdmin(gateway, '/admin/v1/customers/nobody');
    await fetch(`${gateway.admin}/admin/v1/customers`);
    await fetch(`${gateway.portal}/portal/v1/usage`);
    await gateway.close();
    const { items } = (await callAdmin(await start(), '/admin/v1/requests')).body;
    const of = { source: 'check', client: 'unknown', customer: null };
    expect(items).toMatchObject([
      { ...of, code: 'invalid_key', route: 'none', method: 'GET' },
      { ...of, code: 'missing_key', route: '/api/v1/{id}', request_id: 'by-envoy' },
    ]);
    expect(JSON.stringify(items)).not.toContain('wrong-key');
  });

  it('a key that is sent as request id is not recorded', async () => {
    const { start } = await startPair(kind);
    const gateway = await start();
    const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' }, 'plain-key-of-another-format');
    await send(gateway, '/none', { ...bearer(key), 'x-request-id': key });
    await send(gateway, '/none', { ...bearer(key), 'x-request-id': `${key}-2` });
    await send(gateway, '/none', { ...bearer(key), 'x-request-id': key.slice(4, 20) });
    await gateway.close();
    const { items } = (await callAdmin(await start(), '/admin/v1/requests')).body;
    expect(items).toHaveLength(3);
    expect(JSON.stringify(items)).not.toContain(key.slice(4, 20));
  });

  it('many requests with one id: the newest 20; an unknown or impossible id: 404 that does not repeat it', async () => {
    const { start } = await startPair(kind);
    const gateway = await start();
    const same = { 'x-request-id': 'same' };
    await Promise.all(Array.from({ length: 20 }, () => send(gateway, '/none', same)));
    await gateway.close();
    const second = await start();
    for (let at = 0; at < 5; at++) await send(second, '/none', same);
    await second.close();
    const last = await start();
    expect(await found(last, 'same')).toHaveLength(20);
    for (const id of ['unknown', 'sam*', 'tg_secret', 'a b', '"', 'ä', '.', `${'x'.repeat(500)}`]) {
      const { status, body } = await callAdmin(last, `/admin/v1/requests/${encodeURIComponent(id)}`);
      expect([status, body.code]).toEqual([404, 'not_found']);
      if (id.length > 1) expect(body.detail).not.toContain(id);
    }
  });
});
