import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createOpsApp } from '../../../src/control/ops/ops-app.ts';
import type { Readiness } from '../../../src/control/ops/readiness.ts';
import { createLogger } from '../../../src/observability/logger.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function startOps({
  readiness = { status: 'ready', reasons: [] } as Readiness,
  text = async () => 'up 1\n',
  publicKeys = { keys: [] as object[] },
} = {}) {
  const logs: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line) => void logs.push(line) } });
  const server = createServer(
    createOpsApp({ metrics: text, readiness: () => readiness, publicKeys: () => publicKeys, logger }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { logs, get: (path: string, method = 'GET') => fetch(origin + path, { method }) };
}

it('/metrics is the exposition in its own content type', async () => {
  const { get } = await startOps();
  const answer = await get('/metrics');
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(await answer.text()).toBe('up 1\n');
});

it.each([
  ['ready', 200],
  ['degraded', 200],
  ['not_ready', 503],
] as const)('/readyz of a gateway that is %s responds with %i and the reasons', async (status, code) => {
  const reasons = status === 'ready' ? [] : (['draining'] as const);
  const { get } = await startOps({ readiness: { status, reasons } });
  const answer = await get('/readyz');
  expect(answer.status).toBe(code);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(await answer.json()).toEqual({ status, reasons });
});

it('/livez is 200 whatever the readiness', async () => {
  const { get } = await startOps({ readiness: { status: 'not_ready', reasons: ['store_never_reached'] } });
  expect((await get('/livez')).status).toBe(200);
});

describe('/.well-known/jwks.json', () => {
  it('has the public keys, and may be kept for as long as the steps of a change of keys are apart', async () => {
    const publicKeys = { keys: [{ kty: 'OKP', crv: 'Ed25519', x: 'abc', kid: 'first' }] };
    const { get } = await startOps({ publicKeys });
    const answer = await get('/.well-known/jwks.json');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/jwk-set+json');
    expect(answer.headers.get('cache-control')).toBe('public, max-age=300');
    expect(await answer.json()).toEqual(publicKeys);
  });

  it('is an empty set where nothing is signed', async () => {
    const { get } = await startOps();
    const answer = await get('/.well-known/jwks.json');
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({ keys: [] });
  });
});

const PATHS = ['/metrics', '/livez', '/readyz', '/.well-known/jwks.json'];

it.each(PATHS)('HEAD %s has the headers of GET and no content', async (path) => {
  const { get } = await startOps();
  const [whole, head] = [await get(path), await get(path, 'HEAD')];
  expect(head.status).toBe(whole.status);
  expect(head.headers.get('content-length')).toBe(whole.headers.get('content-length'));
  expect(await head.text()).toBe('');
});

it.each(['POST', 'DELETE', 'OPTIONS'])('%s is refused with what is allowed', async (method) => {
  const { get } = await startOps();
  for (const path of PATHS) {
    const answer = await get(path, method);
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('GET, HEAD');
    expect(await answer.json()).toMatchObject({ status: 405, code: 'method_not_allowed' });
  }
});

it.each([
  '/',
  '/.well-known',
  '/.well-known/jwks.json/',
  '/metrics/',
  '/Metrics',
  '/status',
  '/%ff',
  '/admin/v1/customers',
])('%s is a 404 problem', async (path) => {
  const { get } = await startOps();
  const answer = await get(path);
  expect(answer.status).toBe(404);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  expect(answer.headers.get('x-powered-by')).toBeNull();
  const problem = (await answer.json()) as { request_id: string };
  expect(problem).toMatchObject({ status: 404, code: 'not_found' });
  expect(answer.headers.get('x-request-id')).toBe(problem.request_id);
});

describe('a scrape that fails', () => {
  it('is a 500, with the reason only in the log', async () => {
    const { get, logs } = await startOps({ text: () => Promise.reject(new Error('inner reason')) });
    const answer = await get('/metrics');
    expect(answer.status).toBe(500);
    const body = await answer.text();
    expect(body).not.toContain('inner reason');
    const [line = ''] = logs;
    expect(JSON.parse(line)).toMatchObject({ level: 'error', request_id: JSON.parse(body).request_id });
    expect(line).toContain('inner reason');
  });
});
