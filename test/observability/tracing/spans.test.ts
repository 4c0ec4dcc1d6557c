import { once } from 'node:events';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import * as names from '@opentelemetry/semantic-conventions';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createApiKey } from '../../../src/formats/api-key.ts';
import { bearer, createCustomerWithKey } from '../../support/admin.ts';
import { awakeMs } from '../../support/awake-clock.ts';
import { startBackend } from '../../support/backend.ts';
import { exchangeRaw } from '../../support/raw-http.ts';
import { type SystemSettings, startSystem, type TestSystem } from '../../support/system.ts';
import { type Collector, type ReceivedSpan, startCollector } from './collector.ts';

const LIST = '/api/v1/conversations';
const ONE = '/api/v1/conversations/{id}';
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

interface TracedSystem extends TestSystem {
  readonly collector: Collector;
  /** Closes the gateway. Resolves to the spans of the only server span's request: its own, and those of its attempts. */
  spans(): Promise<[server: ReceivedSpan, ...attempts: ReceivedSpan[]]>;
}

async function startTraced({ config, ...settings }: SystemSettings = {}): Promise<TracedSystem> {
  const collector = await startCollector();
  const tracing = { endpoint: collector.endpoint, sample_ratio: 1, ...config?.tracing };
  const system = await startSystem({ ...settings, config: { ...config, tracing } });
  return {
    ...system,
    collector,
    async spans() {
      await system.gateway.close();
      const [server, ...others] = collector.spans.filter(({ kind }) => kind === 'server');
      if (server === undefined || others.length > 0) throw new Error(`${others.length} other server spans`);
      const attempts = collector.spans.filter(({ kind }) => kind === 'client');
      return [server, ...attempts.toSorted((a, b) => Number(a.start - b.start))];
    },
  };
}

const get = ({ gateway, key }: TestSystem, path: string, headers: Record<string, string> = {}) =>
  fetch(gateway.public + path, { headers: { ...bearer(key), ...headers } });

const durationMs = ({ start, end }: ReceivedSpan) => Number(end - start) / 1e6;

describe('a sampled request', () => {
  it('is a server span and a client span, by the names and types of the conventions for HTTP', async () => {
    const system = await startTraced();
    await (await get(system, '/v1/conversations/c_42?limit=3')).text();
    const [server, client, ...others] = await system.spans();
    const { port } = new URL(system.backend.url);
    expect(others).toEqual([]);
    expect(server).toMatchObject({ name: `GET ${ONE}`, parentSpanId: undefined, isError: false });
    expect(server.attributes).toEqual({
      [names.ATTR_HTTP_REQUEST_METHOD]: 'GET',
      [names.ATTR_HTTP_ROUTE]: ONE,
      [names.ATTR_HTTP_RESPONSE_STATUS_CODE]: 200,
      [names.ATTR_NETWORK_PROTOCOL_VERSION]: '1.1',
      [names.ATTR_URL_PATH]: ONE,
      [names.ATTR_URL_SCHEME]: 'http',
      'tollgate.plan': 'starter',
      'tollgate.quota.mode': expect.stringMatching(/^(lease|store)$/),
      'tollgate.backend': 'default',
    });
    expect(client).toMatchObject({ name: 'GET', traceId: server.traceId, parentSpanId: server.spanId, isError: false });
    expect(client?.attributes).toEqual({
      [names.ATTR_HTTP_REQUEST_METHOD]: 'GET',
      [names.ATTR_HTTP_RESPONSE_STATUS_CODE]: 200,
      [names.ATTR_NETWORK_PROTOCOL_VERSION]: '1.1',
      [names.ATTR_SERVER_ADDRESS]: '127.0.0.1',
      [names.ATTR_SERVER_PORT]: Number(port),
      [names.ATTR_URL_FULL]: `${system.backend.url}${ONE}`,
      'tollgate.backend': 'default',
    });
    expect(server.resource).toMatchObject({
      [names.ATTR_SERVICE_NAME]: 'tollgate',
      [names.ATTR_SERVICE_VERSION]: expect.any(String),
      [names.ATTR_SERVICE_INSTANCE_ID]: expect.any(String),
    });
    expect(client?.start).toBeGreaterThanOrEqual(server.start);
    expect(client?.end).toBeLessThanOrEqual(server.end);
    expect(Math.abs(Date.now() - Number(server.end) / 1e6)).toBeLessThan(60_000);
  });

  it('without a context starts a trace, which the backend continues and the log names', async () => {
    const system = await startTraced();
    await (await get(system, '/v1/conversations', { tracestate: 'vendor=1' })).text();
    const [server, client] = await system.spans();
    expect(system.backend.seen[0]?.headers.traceparent).toBe(`00-${server.traceId}-${client?.spanId}-01`);
    expect(system.backend.seen[0]?.headers).not.toHaveProperty('tracestate');
    const line = system.gateway.logs.find(({ msg }) => msg === 'request');
    expect(line).toMatchObject({ trace_id: server.traceId });
  });

  it.each(['00', '01'])('continues the trace of a context with flags %s, whose state passes', async (flags) => {
    const system = await startTraced();
    const tracestate = 'vendor=1,other=a b';
    await (
      await get(system, '/v1/conversations', { traceparent: `00-${TRACE}-${PARENT}-${flags}`, tracestate })
    ).text();
    const [server, client] = await system.spans();
    expect(server).toMatchObject({ traceId: TRACE, parentSpanId: PARENT });
    expect(system.backend.seen[0]?.headers).toMatchObject({
      traceparent: `00-${TRACE}-${client?.spanId}-01`,
      tracestate,
    });
  });

  it.each(['mine', `00-${'0'.repeat(32)}-${PARENT}-01`, `ff-${TRACE}-${PARENT}-01`, `00-${TRACE}-${PARENT}-01-x`])(
    'with the invalid context %s starts a trace of its own, without the state of the old one',
    async (traceparent) => {
      const system = await startTraced();
      await (await get(system, '/v1/conversations', { traceparent, TraceState: 'vendor=1' })).text();
      const [server, client] = await system.spans();
      expect(server.traceId).not.toBe(TRACE);
      expect(server.parentSpanId).toBeUndefined();
      expect(system.backend.seen[0]?.headers.traceparent).toBe(`00-${server.traceId}-${client?.spanId}-01`);
      expect(system.backend.seen[0]?.headers).not.toHaveProperty('tracestate');
    },
  );

  it('names the customer only if that is configured', async () => {
    const system = await startTraced({ config: { tracing: { customer: true } } });
    await (await get(system, '/v1/conversations')).text();
    const [server] = await system.spans();
    expect(server.attributes).toMatchObject({ 'tollgate.customer': 'acme' });
  });

  it('that was retried is two client spans, each with a context of its own', async () => {
    const system = await startTraced({
      answer: (_req, res) => (system.backend.seen.length === 1 ? res.destroy() : res.end('{}')),
    });
    expect((await get(system, '/v1/conversations')).status).toBe(200);
    const [server, first, second, ...others] = await system.spans();
    expect(others).toEqual([]);
    expect(server).toMatchObject({ isError: false, attributes: { [names.ATTR_HTTP_RESPONSE_STATUS_CODE]: 200 } });
    expect(first).toMatchObject({ isError: true, attributes: { [names.ATTR_ERROR_TYPE]: 'reset' } });
    expect(first?.attributes).not.toHaveProperty([names.ATTR_HTTP_REQUEST_RESEND_COUNT]);
    expect(first?.attributes).not.toHaveProperty([names.ATTR_HTTP_RESPONSE_STATUS_CODE]);
    expect(second).toMatchObject({ isError: false, attributes: { [names.ATTR_HTTP_REQUEST_RESEND_COUNT]: 1 } });
    expect(system.backend.seen.map(({ headers }) => headers.traceparent)).toEqual(
      [first, second].map((span) => `00-${server.traceId}-${span?.spanId}-01`),
    );
    expect(second?.start).toBeGreaterThanOrEqual(first?.end ?? 0n);
  });

  it('ends with the last byte of a streamed response', async () => {
    const system = await startTraced({
      answer: (_req, res) => {
        res.write('first');
        setTimeout(() => res.end('last'), 150);
      },
    });
    await (await get(system, '/v1/conversations')).text();
    const [server, client] = await system.spans();
    for (const span of [server, client]) expect(span && durationMs(span)).toBeGreaterThanOrEqual(145);
  });

  it('has a client span that ends with the response of the backend, however late its client gets it', async () => {
    const held = Promise.withResolvers<ServerResponse>();
    const system = await startTraced({
      answer: (req, res) => void (req.url === LIST ? held.resolve(res) : res.end('{}')),
    });
    const { hostname, port } = new URL(system.gateway.public);
    const socket = connect(Number(port), hostname);
    onTestFinished(() => void socket.destroy());
    // Pipelined: the second response waits for the first.
    for (const path of [LIST, `${LIST}/1`]) {
      socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${system.key}\r\n\r\n`);
    }
    const res = await held.promise;
    await expect.poll(() => system.backend.seen.length).toBe(2);
    const answeredAtMs = awakeMs();
    await expect.poll(() => awakeMs() - answeredAtMs).toBeGreaterThan(200);
    res.end('{}');
    await once(socket, 'data');
    await system.gateway.close();
    const [second, client] = ['server', 'client'].map((kind) =>
      system.collector.spans.find((span) => span.kind === kind && JSON.stringify(span.attributes).includes(ONE)),
    );
    expect(Number((second?.end ?? 0n) - (client?.end ?? 0n)) / 1e6).toBeGreaterThan(100);
  });

  it('over a unix socket names the socket', async () => {
    const path = `/tmp/tollgate-tracing-${process.pid}.sock`;
    const { createServer } = await import('node:http');
    const server = createServer((_req, res) => res.end('{}')).listen(path);
    onTestFinished(() => void server.close());
    const system = await startTraced({ config: { upstream: { urls: [`unix:${path}`] } } });
    await (await get(system, '/v1/conversations')).text();
    const [, client] = await system.spans();
    expect(client?.attributes).toMatchObject({
      [names.ATTR_SERVER_ADDRESS]: path,
      [names.ATTR_NETWORK_TRANSPORT]: 'unix',
      [names.ATTR_URL_FULL]: expect.stringMatching(/^http:\/\/[^/]+\/api\/v1\/conversations$/),
    });
  });
});

describe('the span of a request that failed', () => {
  const server = (status: number | undefined, errorType: string | undefined, refusal?: string) => ({
    isError: errorType !== undefined,
    attributes: {
      ...(status !== undefined && { [names.ATTR_HTTP_RESPONSE_STATUS_CODE]: status }),
      ...(errorType !== undefined && { [names.ATTR_ERROR_TYPE]: errorType }),
      ...(refusal !== undefined && { 'tollgate.refusal': refusal }),
    },
  });

  it.each([
    ['missing_key', 401, '/v1/conversations', {}, `GET ${LIST}`],
    ['invalid_key', 401, '/v1/conversations', bearer(createApiKey()), `GET ${LIST}`],
    ['not_found', 404, '/secret-path', {}, 'GET'],
  ])('by %s has the refusal, and is no error of the server', async (code, status, path, headers, name) => {
    const system = await startTraced();
    await fetch(system.gateway.public + path, { headers });
    const [span, ...attempts] = await system.spans();
    expect(span).toMatchObject({ name, ...server(status, undefined, code) });
    expect(span.attributes).not.toHaveProperty([names.ATTR_ERROR_TYPE]);
    expect(span.attributes[names.ATTR_URL_PATH]).toBe(name === 'GET' ? 'REDACTED' : LIST);
    expect(attempts).toEqual([]);
  });

  it('over quota has the refusal and the mode of the decision', async () => {
    const system = await startTraced();
    const spent = await createCustomerWithKey(system.gateway, { id: 's', plan: 'enterprise', requests_per_hour: 1 });
    for (let i = 0; i < 2; i++) await (await get({ ...system, key: spent }, '/v1/conversations')).text();
    await system.gateway.close();
    const refused = system.collector.spans.find(
      ({ attributes }) => attributes['tollgate.refusal'] === 'quota_exceeded',
    );
    expect(refused).toMatchObject(server(429, undefined));
    expect(refused?.attributes).toMatchObject({
      'tollgate.plan': 'enterprise',
      'tollgate.quota.mode': expect.any(String),
    });
  });

  it.each([
    ['404', (res: ServerResponse) => void res.writeHead(404).end(), server(404, undefined), server(404, '404')],
    ['500', (res: ServerResponse) => void res.writeHead(500).end(), server(500, '500'), server(500, '500')],
    [
      'a response that is cut',
      (res: ServerResponse) => void res.writeHead(200, { 'Content-Length': 9 }).write('half', () => res.destroy()),
      server(200, 'reset'),
      server(200, 'reset'),
    ],
    [
      'nonsense',
      (res: ServerResponse) => void res.socket?.end('nonsense\r\n\r\n'),
      server(502, 'bad_gateway', 'bad_gateway'),
      server(undefined, 'invalid_response'),
    ],
    ['nothing', () => {}, server(504, 'gateway_timeout', 'gateway_timeout'), server(undefined, 'response_timeout')],
  ])('by %s of the backend has its error type', async (name, answer, expectedServer, expectedClient) => {
    const system = await startTraced({
      answer: (_req, res) => answer(res),
      config: { upstream: { response_timeout_ms: name === 'nothing' ? 200 : 10_000 } },
    });
    await get(system, '/v1/conversations')
      .then((res) => res.text())
      .catch(() => {});
    const [span, ...attempts] = await system.spans();
    expect(span).toMatchObject(expectedServer);
    expect(attempts.at(-1)).toMatchObject(expectedClient);
    if (!span.isError) expect(span.attributes).not.toHaveProperty([names.ATTR_ERROR_TYPE]);
  });

  it('because no connection could be made has it too', async () => {
    const backend = await startBackend();
    await backend.close();
    const system = await startTraced({ config: { upstream: { urls: [backend.url] } } });
    expect((await get(system, '/v1/conversations')).status).toBe(503);
    const [span, attempt] = await system.spans();
    expect(span).toMatchObject(server(503, 'upstream_unavailable', 'upstream_unavailable'));
    expect(attempt).toMatchObject(server(undefined, 'refused'));
    const failure = system.gateway.logs.find(({ msg }) => msg === 'upstream failed');
    expect(failure).toMatchObject({ trace_id: span.traceId });
  });

  it.each(['before', 'after'])('because its client left %s the head of the response says so', async (when) => {
    const arrived = Promise.withResolvers<ServerResponse>();
    const system = await startTraced({ answer: (_req, res) => arrived.resolve(res) });
    const { hostname, port } = new URL(system.gateway.public);
    const socket = connect(Number(port), hostname).on('error', () => {});
    socket.write(`GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${system.key}\r\n\r\n`);
    const res = await arrived.promise;
    if (when === 'after') {
      res.write('the beginning');
      await once(socket, 'data');
    }
    socket.destroy();
    await once(res, 'close');
    const spans = await system.spans();
    const expected = server(when === 'after' ? 200 : undefined, 'client_closed_request');
    expect(spans).toMatchObject([expected, expected]);
    if (when === 'after') return;
    for (const span of spans) expect(span.attributes).not.toHaveProperty([names.ATTR_HTTP_RESPONSE_STATUS_CODE]);
  });

  it('by the body of its client has the refusal, and its attempt the reason', async () => {
    const config = { routes: [{ path: '/api/v1/notes', methods: ['POST'], max_body_bytes: 20_000 }] };
    const system = await startTraced({ answer: () => {}, config: config as never });
    const req = request(`${system.gateway.public}/api/v1/notes`, { method: 'POST', headers: bearer(system.key) });
    req.on('error', () => {}).write('x'.repeat(17_000));
    await expect.poll(() => system.backend.seen.length).toBe(1);
    req.end('x'.repeat(17_000));
    const [res] = (await once(req, 'response')) as [IncomingMessage];
    await text(res);
    const [span, attempt] = await system.spans();
    expect(span).toMatchObject({ name: 'POST /api/v1/notes', ...server(413, undefined, 'body_too_large') });
    expect(attempt).toMatchObject(server(undefined, 'body_too_large'));
  });
});

it('a method without a name of its own in the conventions is _OTHER, with the original', async () => {
  const config = { routes: [{ path: '/api/v1/notes', methods: ['PROPFIND'] }] };
  const system = await startTraced({ config: config as never });
  await fetch(`${system.gateway.public}/api/v1/notes`, { method: 'PROPFIND', headers: bearer(system.key) });
  const [server, client] = await system.spans();
  expect(server.name).toBe('HTTP /api/v1/notes');
  for (const span of [server, client]) {
    expect(span?.attributes).toMatchObject({
      [names.ATTR_HTTP_REQUEST_METHOD]: '_OTHER',
      [names.ATTR_HTTP_REQUEST_METHOD_ORIGINAL]: 'PROPFIND',
    });
  }
});

it('no byte that is exported has a key, an id, a path, a query, a header or the customer of a client', async () => {
  const mark = 'marked4c7e';
  const key = `${mark}-key-of-the-customer`;
  const system = await startTraced({ customer: { id: `${mark}-customer`, plan: 'starter' } });
  await createCustomerWithKey(system.gateway, { id: `${mark}-other`, plan: 'starter' }, key);
  const { gateway } = system;
  const send = (target: string, lines: readonly string[] = [], method = 'GET') =>
    exchangeRaw(
      gateway.public,
      `${[`${method} ${target} HTTP/1.1`, ...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`,
    );
  const [host, authorization] = [`Host: ${mark}.example`, `Authorization: Bearer ${key}`];
  const marked = [`X-Request-Id: ${mark}`, `User-Agent: ${mark}`, `X-Forwarded-For: ${mark}`, `tracestate: ${mark}=1`];
  await send(`/v1/conversations/${mark}?q=${mark}`, [host, authorization, ...marked, `Cookie: ${mark}`]);
  await send(`/v1/conversations/${mark}`, [host, authorization, `traceparent: 00-${TRACE}-${PARENT}-01`, ...marked]);
  await send(`/v1/conversations?key=${key}`, [host, `traceparent: ${mark}`]);
  await send(`/${mark}/${key}`, [host, authorization]);
  await send(`http://${mark}.example/v1/conversations`, [host, `Authorization: Bearer ${mark}-unknown`]);
  await send(`/v1/conversations/%ff${mark}`, [host, authorization]);
  await send(`/v1/conversations/${mark}`, [host, authorization], 'DELETE');
  await gateway.close();
  const { spans, bytes } = system.collector;
  expect(spans.filter(({ kind }) => kind === 'server')).toHaveLength(7);
  expect(spans.filter(({ kind }) => kind === 'client')).toHaveLength(2);
  expect(bytes.join('\n')).not.toContain(mark);
});
