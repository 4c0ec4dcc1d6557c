/** Routes with `key: none`: what passes, what the backend learns, and what such requests may hold. */
import type { RequestListener, ServerResponse } from 'node:http';
import { unescape as decodePercent } from 'node:querystring';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { createApiKey } from '../../src/formats/api-key.ts';
import { temporaryFile } from '../cli/support.ts';
import { rewrite, takeOver } from '../control/reload/support.ts';
import { openSession, type Session } from '../limits/support.ts';
import { startCollector } from '../observability/tracing/collector.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { startTestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { startSystem } from '../support/system.ts';
import { createPemPair } from '../upstream/identity/support.ts';

const ROUTES = [
  { path: '/health', methods: ['GET'], key: 'none' },
  { path: '/hooks/{name}', methods: ['POST'], key: 'none', max_body_bytes: 100_000 },
  { path: '/things/{id}', methods: ['GET', 'POST'] },
  { path: '/things/{id}', methods: ['OPTIONS'], key: 'none' },
];

function startKeyless(config: Record<string, unknown> = {}, answer?: RequestListener) {
  const sections = { routes: ROUTES, aliases: {}, usage_path: '/usage', ...config } as never;
  return startSystem({ config: sections, ...(answer && { answer }) });
}

/** Requests that the backend leaves open until `release`, and clients at addresses of their own. */
async function startHolding(limits: Record<string, unknown>) {
  const held: ServerResponse[] = [];
  const config = { listen: { trusted_proxies: ['127.0.0.1'] }, ...limits };
  const system = await startKeyless(config, (req, res) => {
    if (req.url?.includes('hold')) held.push(res);
    else res.end('{}');
  });
  const { gateway } = system;
  return {
    ...system,
    held,
    async send(address: string, target = '/health?hold', ...fields: string[]): Promise<Session> {
      const session = await openSession(gateway.public);
      const lines = [`GET ${target} HTTP/1.1`, 'Host: a', `X-Forwarded-For: ${address}`, ...fields];
      session.send(`${lines.join('\r\n')}\r\n\r\n`);
      return session;
    },
    async statusOf(address: string): Promise<number> {
      return (await fetch(`${gateway.public}/health`, { headers: { 'X-Forwarded-For': address } })).status;
    },
  };
}

const encoded = (text: string) => Buffer.from(text).toString('hex').replaceAll(/../g, '%$&');

it('a request without a key is forwarded without identity, and belongs to no customer', async () => {
  const config = { identity: { headers: true }, upstream: { credentials: 'replace', authorization: 'Basic inner' } };
  const { gateway, backend, key } = await startKeyless(config);
  const answer = await fetch(`${gateway.public}/health?a=b`, {
    headers: { 'X-Tollgate-Customer': 'acme', x_tollgate_plan: 'business', 'X-Own': '1', 'X-Request-Id': 'own-1' },
  });
  expect(answer.status).toBe(200);
  const names = [...answer.headers.keys()];
  expect(names.filter((name) => /ratelimit|tollgate|expires-at/.test(name))).toEqual([]);
  expect(answer.headers.get('x-request-id')).toBe('own-1');
  const [seen] = backend.seen;
  expect(seen).toMatchObject({ method: 'GET', url: '/health?a=b' });
  expect(seen?.headers).toMatchObject({
    'x-own': '1',
    'x-request-id': 'own-1',
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-proto': 'http',
    via: '1.1 tollgate',
  });
  expect(Object.keys(seen?.headers ?? {}).filter((name) => /tollgate|authorization/.test(name))).toEqual([]);

  const http = await readMetric(gateway, 'tollgate_http_requests_total');
  expect(http).toEqual({ 'route="/health",method="GET",code="200",source="upstream",plan="none"': 1 });
  expect(await readMetric(gateway, 'tollgate_spoofed_fields_total')).toEqual({ '': 2 });
  const auth = Object.values(await readMetric(gateway, 'tollgate_auth_total'));
  expect(auth.every((count) => count === 0)).toBe(true);
  const logged = () => gateway.logs.find(({ msg }) => msg === 'request');
  await expect.poll(logged).toMatchObject({ route: '/health', status: 200, plan: 'none' });
  expect(logged()).not.toHaveProperty('customer');
  expect(await (await fetch(`${gateway.public}/usage`, { headers: bearer(key) })).json()).toMatchObject({ used: 0 });
});

it.each(['strip', 'forward', 'replace'])(
  'with credentials: %s, what the client sent passes unchanged',
  async (mode) => {
    const upstream = { credentials: mode, ...(mode === 'replace' && { authorization: 'Basic inner' }) };
    const { gateway, backend } = await startKeyless({
      upstream,
      auth: { key_headers: ['X-API-Key', 'Authorization'] },
    });
    const fields = [
      'Authorization: Basic dXNlcg==',
      'Authorization: Digest x',
      'X_API_KEY: of-another',
      'X-Api-Key: ab',
    ];
    const answer = await exchangeRaw(
      gateway.public,
      `GET /health HTTP/1.1\r\nHost: a\r\n${fields.join('\r\n')}\r\n\r\n`,
    );
    expect(answer.status).toBe(200);
    const raw = backend.seen[0]?.rawHeaders ?? [];
    const sent = raw.flatMap((name, i) => (i % 2 === 0 && /auth|key/i.test(name) ? `${name}: ${raw[i + 1]}` : []));
    expect(sent).toEqual(fields);
  },
);

it('a generated key never reaches the backend, wherever the client puts it', async () => {
  const { gateway, backend, key } = await startKeyless({
    listen: { trusted_proxies: ['127.0.0.1'], trust_forwarded_host: true },
    upstream: { preserve_host: true },
    logging: { level: 'trace' },
  });
  const unknown = createApiKey();
  const request = [
    `GET /health?a=1&key=${key}&b=2&c=${encoded(unknown)}&${key} HTTP/1.1`,
    `Host: ${key}`,
    `Authorization: Bearer ${key}`,
    `X-API-Key: ${unknown}`,
    `Cookie: a=b; session=${key}; c=d`,
    `Referer: https://example.org/?key=${encoded(key)}`,
    `X-Request-Id: ${key}`,
    `X-Forwarded-For: ${key}, 192.0.2.1`,
    `X-Forwarded-Host: ${key}`,
    `tracestate: a=${key}`,
    'X-Kept: tg_not_a_key %zz%ff',
    `X-Also-Kept: ${key.slice(0, -1)}`,
  ];
  expect((await exchangeRaw(gateway.public, `${request.join('\r\n')}\r\n\r\n`)).status).toBe(200);
  const [seen] = backend.seen;
  expect(seen?.url).toBe('/health?a=1&b=2');
  expect(seen?.headers).toMatchObject({ 'x-kept': 'tg_not_a_key %zz%ff', 'x-also-kept': key.slice(0, -1) });
  expect(seen?.headers).toMatchObject({ 'x-forwarded-for': '192.0.2.1', via: '1.1 tollgate' });
  const given = decodePercent(JSON.stringify(seen));
  expect(given).not.toContain(key);
  expect(given).not.toContain(unknown);
  expect(Object.keys(seen?.headers ?? {})).not.toContain('cookie');

  expect((await fetch(`${gateway.public}/health?${key}`)).status).toBe(200);
  expect(backend.seen[1]?.url).toBe('/health');
  await expect.poll(() => gateway.logs.filter(({ msg }) => msg === 'request')).toHaveLength(2);
  expect(JSON.stringify(gateway.logs)).not.toContain(key);
});

it('methods of one path may differ: OPTIONS needs no key, GET does, and others get 405', async () => {
  const { gateway, backend, key } = await startKeyless();
  const statusOf = async (method: string, headers = {}) =>
    (await fetch(`${gateway.public}/things/5`, { method, headers })).status;
  expect(await statusOf('OPTIONS', { Origin: 'https://a.example', 'Access-Control-Request-Method': 'GET' })).toBe(200);
  expect(backend.seen[0]?.headers).toMatchObject({
    origin: 'https://a.example',
    'access-control-request-method': 'GET',
  });
  expect(await statusOf('GET')).toBe(401);
  expect(await statusOf('HEAD')).toBe(401);
  expect(await statusOf('POST')).toBe(401);
  expect(await statusOf('GET', bearer(key))).toBe(200);
  expect(await statusOf('DELETE')).toBe(405);
  expect(backend.seen.map(({ method }) => method)).toEqual(['OPTIONS', 'GET']);
  const used = await fetch(`${gateway.public}/usage`, { headers: bearer(key) });
  expect(await used.json()).toMatchObject({ used: 1 });
  expect((await fetch(`${gateway.public}/usage`)).status).toBe(401);
});

it('a body is bounded and forwarded as with a key, after 100 Continue if the client waits for it', async () => {
  const bodies: string[] = [];
  const { gateway } = await startKeyless({}, async (req, res) => {
    const body = await text(req).catch(() => undefined); // aborted
    if (body !== undefined) bodies.push(body);
    res.end();
  });
  const post = (body: string | ReadableStream) =>
    fetch(`${gateway.public}/hooks/stripe`, { method: 'POST', body, ...({ duplex: 'half' } as object) });
  expect((await post('small')).status).toBe(200);
  expect((await post('x'.repeat(99_999))).status).toBe(200);
  const chunked = await post(new Blob(['a'.repeat(50_000), 'b'.repeat(50_001)]).stream());
  expect(chunked.status).toBe(413);
  expect(await chunked.json()).toMatchObject({ code: 'body_too_large' });
  expect((await post('x'.repeat(100_001))).status).toBe(413);

  const session = await openSession(gateway.public);
  session.send('POST /hooks/a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n');
  await expect.poll(() => session.statuses()).toEqual([100]);
  session.send('later');
  await expect.poll(() => session.statuses()).toEqual([100, 200]);
  expect(bodies.filter((body) => body.length < 6)).toEqual(['small', 'later']);
});

it('together they hold a quarter of limits.in_flight, and one address a quarter of that', async () => {
  const { gateway, held, send, statusOf, key } = await startHolding({ limits: { in_flight: 35 } });
  // 35 / 4 = 8 in all, and 2 for each address.
  for (const address of ['192.0.2.1', '192.0.2.1', '2001:db8::1', '2001:db8::ffff:1']) await send(address);
  await expect.poll(() => held.length).toBe(4);
  const refused = await send('192.0.2.1');
  await expect.poll(() => refused.statuses()).toEqual([503]);
  expect(refused.received()).toMatch(/^Retry-After: 1\r$/m);
  expect(JSON.parse(refused.received().split('\r\n\r\n')[1] ?? '')).toMatchObject({
    code: 'overloaded',
    detail: 'Too many requests without an API key are in progress: try again shortly.',
  });
  expect(await statusOf('2001:db8:0:0:1::')).toBe(503);
  expect(await statusOf('2001:db8:0:1::')).toBe(200);
  expect(await statusOf('::ffff:192.0.2.1')).toBe(503);

  for (const address of ['127.0.0.2', '127.0.0.2', '127.0.0.3', '127.0.0.3']) await send(address);
  await expect.poll(() => held.length).toBe(8);
  expect(await statusOf('192.0.2.4')).toBe(503);
  const keyed = await fetch(`${gateway.public}/things/1`, { headers: bearer(key) });
  expect(keyed.status).toBe(200);
  expect(await readMetric(gateway, 'tollgate_refusals_total')).toEqual({ 'problem="overloaded",plan="none"': 4 });
  held[0]?.end();
  await expect.poll(() => statusOf('192.0.2.1')).toBe(200);
});

it('together they hold a quarter of the connections to the backend, and one address a quarter of that', async () => {
  const { gateway, held, send, statusOf } = await startHolding({ upstream: { max_connections: 33 } });
  // 33 / 4 = 8 in all, and 2 for each address.
  for (const address of ['192.0.2.1', '192.0.2.1', '2001:db8::1', '2001:db8::2']) await send(address);
  await expect.poll(() => held.length).toBe(4);
  expect(await statusOf('192.0.2.1')).toBe(503);
  expect(await statusOf('2001:db8::3')).toBe(503);
  for (const address of ['192.0.2.2', '192.0.2.2', '192.0.2.3', '192.0.2.3']) await send(address);
  await expect.poll(() => held.length).toBe(8);
  expect(await statusOf('192.0.2.4')).toBe(503);
  expect(gateway.logs.filter(({ msg }) => /^requests without a key use up/.test(String(msg)))).toHaveLength(1);

  const others = await createCustomerWithKey(gateway, { id: 'other', plan: 'starter' });
  const calls = Array.from({ length: 25 }, () => fetch(`${gateway.public}/things/1`, { headers: bearer(others) }));
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(25).fill(200));
  for (const res of held) res.end();
  await expect.poll(() => statusOf('192.0.2.4')).toBe(200);
});

it('a customer whose id is an address has a share of its own', async () => {
  const { gateway, held, send, statusOf } = await startHolding({ upstream: { max_connections: 4 } });
  const key = await createCustomerWithKey(gateway, { id: '192.0.2.1', plan: 'starter' });
  await send('192.0.2.1', '/things/1?hold', `Authorization: Bearer ${key}`);
  await expect.poll(() => held.length).toBe(1);
  expect(await statusOf('192.0.2.1')).toBe(200);
});

it('each request gives its slot back, however it ends', async () => {
  const broken: RequestListener = (req, res) => {
    const { searchParams } = new URL(req.url ?? '', 'http://backend');
    if (searchParams.has('reset')) req.socket.resetAndDestroy();
    else if (searchParams.has('garbage')) req.socket.end('garbage\r\n\r\n');
    else if (searchParams.has('half')) res.writeHead(200, { 'Content-Length': 9 }).write('half', () => res.destroy());
    else if (!searchParams.has('hold')) req.resume().once('end', () => res.end('{}'));
  };
  // One slot in all.
  const { gateway, backend } = await startKeyless(
    { limits: { in_flight: 4, request_timeout_ms: 1000, headers_timeout_ms: 1000 } },
    broken,
  );
  const isFree = () => expect.poll(async () => (await fetch(`${gateway.public}/health`)).status).toBe(200);
  const endings: Record<string, (session: Session) => Promise<void> | void> = {
    'GET /health?reset': () => {},
    'GET /health?garbage': () => {},
    'GET /health?half': () => {},
    'GET /health?hold': async ({ socket }) => {
      await expect.poll(() => backend.seen.at(-1)?.url).toBe('/health?hold');
      socket.destroy();
    },
    'POST /hooks/gone': ({ socket }) => void socket.end(),
    'POST /hooks/slow': async (session) => {
      await expect.poll(() => session.statuses()).toEqual([408]);
    },
    'DELETE /health': () => {},
    'GET /hooks/x': () => {},
    'GET /health\t': () => {},
  };
  for (let round = 0; round < 2; round++) {
    for (const [start, end] of Object.entries(endings)) {
      const session = await openSession(gateway.public);
      const length = start.startsWith('POST') ? 'Content-Length: 5\r\n' : '';
      session.send(`${start} HTTP/1.1\r\nHost: a\r\n${length}\r\n`);
      if (length !== '') session.send('a');
      await end(session);
      if (!start.includes('hold'))
        await expect.poll(() => session.isClosed() || session.statuses().length > 0).toBe(true);
      session.socket.destroy();
      await isFree();
    }
  }
  await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 0 });
});

it('while the store is away, requests without a key are served', async () => {
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  const config = { routes: ROUTES, aliases: {}, usage_path: '/usage', store: { on_error: 'deny' } } as never;
  const urls = { storeUrl: 'redis://127.0.0.1:1', upstreamUrl: backend.url };
  const gateway = await startTestGateway({ ...urls, config });
  onTestFinished(() => gateway.close());
  expect((await fetch(`${gateway.public}/health`)).status).toBe(200);
  expect((await fetch(`${gateway.public}/things/1`, { headers: bearer(createApiKey()) })).status).toBe(503);
});

it('a failure of the backend is not said to be counted', async () => {
  const { gateway } = await startKeyless({}, (req) => void req.socket.end('garbage\r\n\r\n'));
  const answer = await fetch(`${gateway.public}/health`);
  expect(answer.status).toBe(502);
  expect(await answer.json()).toMatchObject({ code: 'bad_gateway', detail: 'The backend sent no valid response.' });
});

it('usage totals have them under the plan none, and no customer has them', async () => {
  const { gateway } = await startKeyless();
  for (let i = 0; i < 3; i++) expect((await fetch(`${gateway.public}/health`)).status).toBe(200);
  const totals = async () => {
    const { body } = await callAdmin(gateway, '/admin/v1/usage/history');
    return body.points.findLast(({ plans }: { plans: object }) => 'none' in plans)?.plans;
  };
  await expect.poll(totals, { interval: 500 }).toMatchObject({ none: { requests: 3, refused: 0 } });
  const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/usage/history');
  expect(body.points.every(({ requests }: { requests: number }) => requests === 0)).toBe(true);
});

it('a reload takes the key away from a route and asks for it again, and never for a request in progress', async () => {
  const { gateway, backend, held, send } = await startHolding({ limits: { in_flight: 16 } });
  const withKey = (key: string) => ROUTES.map((route) => (route.path === '/health' ? { ...route, key } : route));
  const inProgress = await send('192.0.2.1');
  await expect.poll(() => held.length).toBe(1);
  await rewrite(gateway, { routes: withKey('required') });
  expect(await takeOver(gateway)).toBe('applied');
  expect((await fetch(`${gateway.public}/health`)).status).toBe(401);
  held[0]?.end('done');
  await expect.poll(() => inProgress.statuses()).toEqual([200]);
  await rewrite(gateway, { routes: withKey('none') });
  expect(await takeOver(gateway)).toBe('applied');
  expect((await fetch(`${gateway.public}/health`)).status).toBe(200);
  expect(backend.seen).toHaveLength(2);
  onTestFinished(() => void inProgress.socket.destroy());
});

it('requests of one connection are told apart, in any order and form of target', async () => {
  const { gateway, backend, key } = await startKeyless();
  const session = await openSession(gateway.public);
  const withKey = `Host: a\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  session.send(
    [
      'GET /health HTTP/1.1\r\nHost: a\r\n\r\n',
      `GET /things/1 HTTP/1.1\r\n${withKey}`,
      'GET /things/2 HTTP/1.1\r\nHost: a\r\n\r\n',
      `GET http://b/health?x HTTP/1.1\r\n${withKey}`,
      'GET http://b/things/3 HTTP/1.1\r\nHost: a\r\n\r\n',
    ].join(''),
  );
  await expect.poll(() => session.statuses()).toEqual([200, 200, 401, 200, 401]);
  const seen = backend.seen.map(({ url, headers }) => [url, headers['x-tollgate-customer'], headers.authorization]);
  expect(seen.toSorted()).toEqual([
    ['/health', undefined, undefined],
    ['/health?x', undefined, undefined],
    ['/things/1', 'acme', undefined],
  ]);
  const usage = await fetch(`${gateway.public}/usage`, { headers: bearer(key) });
  expect(await usage.json()).toMatchObject({ used: 1 });
});

it('with assertions and traces, the backend gets no assertion, and the trace names no plan', async () => {
  const signing_key_file = await temporaryFile('signing.pem', createPemPair().privatePem);
  const collector = await startCollector();
  const { gateway, backend, key } = await startKeyless({
    identity: { headers: true, assertion: { signing_key_file } },
    tracing: { endpoint: collector.endpoint, sample_ratio: 1, customer: true },
  });
  const parent = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: `x=${key}` };
  expect((await fetch(`${gateway.public}/health`, { headers: { ...parent, ...bearer(key) } })).status).toBe(200);
  const [seen] = backend.seen;
  expect(Object.keys(seen?.headers ?? {}).filter((name) => name.startsWith('x-tollgate'))).toEqual([]);
  expect(seen?.headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  expect(JSON.stringify(seen)).not.toContain(key);
  await gateway.close();
  const server = collector.spans.find(({ kind }) => kind === 'server');
  expect(server).toMatchObject({ name: 'GET /health' });
  expect(Object.keys(server?.attributes ?? {}).filter((name) => /plan|customer/.test(name))).toEqual([]);
});

it('a route that asks for a key again by a reload still serves the upload that came before', async () => {
  const { gateway, backend } = await startKeyless({}, (req, res) => void text(req).then((body) => res.end(body)));
  const session = await openSession(gateway.public);
  session.send('POST /hooks/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n');
  await expect.poll(() => readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 1 });
  await rewrite(gateway, { routes: ROUTES.map((route) => ({ ...route, key: 'required' })) });
  expect(await takeOver(gateway)).toBe('applied');
  for (const byte of 'bcdef') session.send(`1\r\n${byte}\r\n`);
  session.send('0\r\n\r\n');
  await expect.poll(() => session.received()).toMatch(/abcdef/);
  expect(session.statuses()).toEqual([200]);
  expect(Object.keys(backend.seen[0]?.headers ?? {}).filter((name) => name.startsWith('x-tollgate'))).toEqual([]);
  expect((await fetch(`${gateway.public}/hooks/a`, { method: 'POST', body: 'x' })).status).toBe(401);
});
