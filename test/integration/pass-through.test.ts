import { createHash, randomBytes } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearer, createCustomerWithKey } from '../support/admin.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { STORES, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';

const BIG_BODY = randomBytes(5 * 1024 * 1024);

const answer: RequestListener = (req, res) => {
  const { pathname } = new URL(req.url ?? '', 'http://backend');
  switch (pathname.split('/').at(-1)) {
    case 'big':
      res
        .writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': BIG_BODY.length })
        .end(BIG_BODY);
      break;
    case 'chunked':
      res.writeHead(200, { 'Content-Type': 'application/octet-stream' });
      for (let at = 0; at < BIG_BODY.length; at += 300_000) res.write(BIG_BODY.subarray(at, at + 300_000));
      res.end();
      break;
    case 'not-modified':
      res.writeHead(304, { ETag: '"v1"', 'X-Backend': 'yes' }).end();
      break;
    case 'missing':
      res.writeHead(404, { 'Content-Type': 'text/weird; charset=x' }).end('no such thing\n');
      break;
    case 'headers':
      res.writeHead(200, [
        ['X-Unknown', 'one'],
        ['x-unknown', 'two'],
        ['Set-Cookie', 'a=1'],
        ['Set-Cookie', 'b=2'],
        ['X-RateLimit-Limit', 'the backend'],
        ['RateLimit', 'the backend'],
        ['X-Request-Id', 'the backend'],
        ['X-Tollgate-Secret', 'inner'],
        ['Connection', 'X-Hop'],
        ['X-Hop', 'one hop only'],
      ] as unknown as string[]);
      res.end('ok');
      break;
    default:
      res.writeHead(200, { 'Content-Type': 'application/json' }).end('{"data": [ ] }\n');
  }
};

describe.each(STORES)('what passes through the gateway over $name', ({ start }) => {
  let store: TestStore;
  let backend: Backend;
  let gateway: TestGateway;
  let key: string;

  beforeAll(async () => {
    store = await start();
    backend = await startBackend(answer);
    gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url });
    key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'business' });
  });

  afterAll(async () => {
    await gateway.close();
    await backend.close();
    await store.close();
  });

  function read(path: string, init: RequestInit = {}) {
    return fetch(gateway.public + path, { ...init, headers: { ...bearer(key), ...init.headers } });
  }

  it('both prefixes give the same body, byte for byte, and the backend sees one path', async () => {
    const bodies = [];
    for (const prefix of ['/v1', '/api/v1']) bodies.push(await (await read(`${prefix}/conversations/a%20b`)).text());
    expect(bodies).toEqual(['{"data": [ ] }\n', '{"data": [ ] }\n']);
    expect(backend.seen.slice(-2).map(({ url }) => url)).toEqual(Array(2).fill('/api/v1/conversations/a%20b'));
  });

  it('a query string arrives as it was sent', async () => {
    // fetch would normalise it, so this goes out by hand
    const query = '?a=1&a=2&&b=%2F%2e&c=\'"<x>|^`{}&d=../..&e=';
    const { port } = new URL(gateway.public);
    await new Promise<void>((resolve, reject) => {
      const req = request(
        { port, host: '127.0.0.1', path: `/v1/conversations${query}`, headers: bearer(key) },
        (res) => {
          res.resume().on('end', resolve);
        },
      );
      req.on('error', reject).end();
    });
    expect(backend.seen.at(-1)?.url).toBe(`/api/v1/conversations${query}`);
  });

  it.each(['big', 'chunked'])('a %s answer of 5 MB arrives unchanged', async (id) => {
    const res = await read(`/v1/conversations/${id}`);
    const body = Buffer.from(await res.arrayBuffer());
    expect(createHash('sha256').update(body).digest('hex')).toBe(createHash('sha256').update(BIG_BODY).digest('hex'));
  });

  it('a conditional request passes, and a 304 stays one', async () => {
    const res = await read('/v1/conversations/not-modified', { headers: { 'If-None-Match': '"v1"' } });
    expect(res.status).toBe(304);
    expect(res.headers.get('etag')).toBe('"v1"');
    expect(res.headers.get('x-backend')).toBe('yes');
    expect(backend.seen.at(-1)?.headers['if-none-match']).toBe('"v1"');
  });

  it("a 404 of the backend is the backend's own", async () => {
    const res = await read('/v1/conversations/missing');
    expect(res.status).toBe(404);
    expect(res.headers.get('content-type')).toBe('text/weird; charset=x');
    expect(res.headers.get('ratelimit')).toContain('"hourly"');
    expect(await res.text()).toBe('no such thing\n');
  });

  it('unknown headers pass both ways, repeats in order', async () => {
    const res = await read('/v1/conversations/headers', {
      headers: { 'X-Customer-Own': 'v', traceparent: '00-a-b-01' },
    });
    expect(res.headers.get('x-unknown')).toBe('one, two');
    expect(res.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect(backend.seen.at(-1)?.headers).toMatchObject({ 'x-customer-own': 'v', traceparent: '00-a-b-01' });
  });

  it("the gateway's own headers replace the backend's, and inner ones stay inside", async () => {
    const res = await read('/v1/conversations/headers', { headers: { 'X-Request-Id': 'mine' } });
    expect(res.headers.get('x-ratelimit-limit')).toBe('20000');
    expect(res.headers.get('ratelimit')).toMatch(/^"hourly";r=\d+;t=\d+$/);
    expect(res.headers.get('x-request-id')).toBe('mine');
    expect([...res.headers.keys()].filter((name) => name.startsWith('x-tollgate'))).toEqual([]);
    expect(res.headers.get('x-hop')).toBeNull();
  });

  it("HEAD has GET's headers and no content", async () => {
    const res = await read('/v1/conversations/big', { method: 'HEAD' });
    expect(res.headers.get('content-length')).toBe(String(BIG_BODY.length));
    expect((await res.arrayBuffer()).byteLength).toBe(0);
    expect(backend.seen.at(-1)?.method).toBe('HEAD');
  });
});
