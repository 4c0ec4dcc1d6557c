import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/store/errors.ts';
import { startAdmin, type TestAdmin, TOKEN } from './support.ts';

let admin: TestAdmin;
beforeAll(async () => {
  admin = await startAdmin();
});
afterAll(() => admin.close());

async function post(body: string | Buffer, headers: Record<string, string>) {
  const answer = await fetch(`${admin.origin}/admin/v1/customers`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, ...headers },
    body,
  });
  const problem = (await answer.json()) as { code: string };
  expect(answer.headers.get('cache-control')).toBe('no-store');
  return { status: answer.status, code: problem.code, contentType: answer.headers.get('content-type') };
}

const JSON_TYPE = { 'content-type': 'application/json' };

describe('a body', () => {
  it.each(['{', '', '{"id":"a",}', "{'id':1}", '\ufeff{', '{"id":"a"}x'])(
    'that is not JSON (%j) is 400',
    async (body) => {
      const { status, code } = await post(body, JSON_TYPE);
      // Nothing at all counts as {}, which lacks members.
      expect([status, code]).toEqual(body === '' ? [422, 'unprocessable'] : [400, 'malformed_json']);
    },
  );

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonx', ''])(
    'declared as %j is 415',
    async (type) => {
      const { status, code } = await post(
        Buffer.from('{"id":"a","plan":"starter"}'),
        type === '' ? {} : { 'content-type': type },
      );
      expect([status, code]).toEqual([415, 'unsupported_media_type']);
    },
  );

  it('in another charset or compressed is 415', async () => {
    const latin = await post('{}', { 'content-type': 'application/json; charset=iso-8859-1' });
    const packed = await post('{}', { ...JSON_TYPE, 'content-encoding': 'gzip' });
    expect([latin.status, packed.status]).toEqual([415, 415]);
  });

  it('of more than 64 KiB is 413, one of 64 KiB is read', async () => {
    const sized = (bytes: number) => `{"id":"${'a'.repeat(bytes - 9)}"}`;
    expect(await post(sized(65_536), JSON_TYPE)).toMatchObject({ status: 422 });
    expect(await post(sized(65_537), JSON_TYPE)).toMatchObject({
      status: 413,
      code: 'body_too_large',
      contentType: 'application/problem+json',
    });
  });

  it('with a charset of UTF-8 is read', async () => {
    expect(
      await post('{"id":"utf","plan":"starter"}', { 'content-type': 'application/json; charset=UTF-8' }),
    ).toMatchObject({
      status: 201,
    });
  });
});

it.each([
  ['PUT', '/admin/v1/customers', 'GET, HEAD, POST'],
  ['OPTIONS', '/admin/v1/customers', 'GET, HEAD, POST'],
  ['POST', '/admin/v1/customers/acme', 'GET, HEAD, PATCH, DELETE'],
  ['POST', '/admin/v1/customers/acme/usage', 'GET, HEAD, DELETE'],
  ['DELETE', '/admin/v1/customers/acme/explain', 'GET, HEAD'],
  ['DELETE', '/admin/v1/customers/acme/keys', 'GET, HEAD, POST'],
  ['POST', '/admin/v1/keys', 'GET, HEAD'],
  ['POST', '/admin/v1/keys/key_1', 'GET, HEAD, PATCH, DELETE'],
  ['GET', '/admin/v1/keys/key_1/rotate', 'POST'],
  ['DELETE', '/admin/v1/audit', 'GET, HEAD'],
  ['PUT', '/admin/v1/config', 'GET, HEAD'],
  ['DELETE', '/status', 'GET, HEAD'],
])('%s %s is 405 with Allow: %s', async (method, path, allow) => {
  const refused = await admin.call(method, path);
  expect(refused.status).toBe(405);
  expect(refused.headers.get('allow')).toBe(allow);
  expect(refused.body).toMatchObject({ status: 405, code: 'method_not_allowed' });
});

it.each([
  '/',
  '/admin/v1',
  '/admin/v1/customers/',
  '/Admin/v1/customers',
  '/admin/v1/keys/key_1/',
  '/admin/v1/keys/key_1/rotate/now',
  '/status/',
  '/admin/v2/customers',
])('%s is a 404 problem', async (path) => {
  const missing = await admin.call('GET', path);
  expect(missing.status).toBe(404);
  expect(missing.headers.get('content-type')).toBe('application/problem+json');
  expect(missing.headers.get('x-powered-by')).toBeNull();
  expect(missing.body.request_id).toBe(missing.headers.get('x-request-id'));
});

it.each(['/admin/v1/customers', '/admin/v1/keys', '/admin/v1/audit', '/admin/v1/config'])(
  'HEAD %s has the head of GET and no content',
  async (path) => {
    const head = await admin.call('HEAD', path);
    const get = await admin.call('GET', path);
    expect([head.status, head.body]).toEqual([200, undefined]);
    expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'));
    expect(get.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(get.headers.get('cache-control')).toBe('no-store');
  },
);

it('the configuration that runs can be read', async () => {
  expect((await admin.call('GET', '/admin/v1/config')).body).toMatchObject({ listen: { port: 8080 }, plans: {} });
});

it('/status says what runs, since when, and what it is connected to', async () => {
  const { status, headers, body } = await admin.call('GET', '/status');
  expect(status).toBe(200);
  expect(headers.get('cache-control')).toBe('no-store');
  expect(body).toEqual({
    problems: [expect.objectContaining({ detail: 'connect ECONNREFUSED' })],
    version: '1.2.3',
    started_at: '2026-03-01T11:00:00.000Z',
    uptime_seconds: 3600,
    config: { file: 'gateway.yaml', hash: 'abc123', loaded_at: '2026-03-01T11:30:00.000Z', last_reload: null },
    store: {
      kind: 'embedded',
      up: true,
      reached: true,
      wiped: false,
      empty: false,
      evicted: false,
      refusing: false,
      last_error: null,
    },
    maintenance: { mode: 'off', routes: null, until: null, message: null, since: null },
    invalidation: { connected: true },
    instances: 3,
    fleet: [],
    notices: { pending: 2, dead: 1 },
    upstreams: [
      {
        backend: 'default',
        url: 'http://conversations:3000',
        up: false,
        reason: 'unreachable',
        fault: 'connect ECONNREFUSED',
      },
    ],
    customers_without_plan: { customers: 0, plans: [] },
    check: { address: '127.0.0.1:8084', has_token: true },
    workers: [],
  });
});

describe('a failure', () => {
  const failing = (error: Error) => startAdmin({ records: { findKeyById: () => Promise.reject(error) } as never });

  it('of the store is 503 and never 404, and the log says whose call it was', async () => {
    const broken = await failing(new StoreUnavailableError('connection lost'));
    try {
      const { status, headers, body } = await broken.call('GET', '/admin/v1/keys/key_1');
      expect(status).toBe(503);
      expect(headers.get('retry-after')).toBe('1');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(body.code).toBe('store_unavailable');
      const line = { level: 'warn', client: '127.0.0.1', actor: 'token', method: 'GET', request_id: body.request_id };
      expect(broken.logs.map((text) => JSON.parse(text)).filter(({ level }) => level !== 'info')).toEqual([
        expect.objectContaining(line),
      ]);
    } finally {
      await broken.close();
    }
  });

  it('that is a bug is 500, with the reason only in the log, and no secret there', async () => {
    const broken = await failing(new Error('no luck with redis://:hunter2@store and tg_secretsecret'));
    try {
      const { status, body } = await broken.call('GET', '/admin/v1/keys/key_1');
      expect(status).toBe(500);
      expect(body.code).toBe('internal_error');
      expect(JSON.stringify(body)).not.toContain('luck');
      const log = broken.logs.join('');
      expect(log).toContain('no luck');
      expect(log).toContain(body.request_id);
      expect(log).not.toMatch(/hunter2|secretsecret/);
      expect(log).not.toContain(TOKEN);
      expect((await broken.call('GET', '/status')).status).toBe(200);
    } finally {
      await broken.close();
    }
  });
});
