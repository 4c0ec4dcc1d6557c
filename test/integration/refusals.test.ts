import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROBLEMS, type ProblemCode } from '../../src/http/problems/table.ts';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { STORES, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';
import { exchangeRaw } from '../support/raw-http.ts';

describe.each(STORES)('refusals over $name', ({ start }) => {
  let store: TestStore;
  let backend: Backend;
  let gateway: TestGateway;
  let key: string;

  beforeAll(async () => {
    store = await start();
    backend = await startBackend();
    gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url });
    key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  });

  afterAll(async () => {
    await gateway.close();
    await backend.close();
    await store.close();
  });

  async function expectRefusal(raw: string, code: ProblemCode): Promise<Awaited<ReturnType<typeof exchangeRaw>>> {
    const seenBefore = backend.seen.length;
    const answer = await exchangeRaw(gateway.public, raw.replaceAll('KEY', key));
    const { status, title } = PROBLEMS[code];
    expect(answer.status, answer.body).toBe(status);
    expect(answer.headers['content-type']).toBe('application/problem+json');
    expect(answer.headers['cache-control']).toBe('no-store');
    const problem = JSON.parse(answer.body);
    expect(problem).toMatchObject({ status, title, code, request_id: answer.headers['x-request-id'] });
    expect(problem.instance).toMatch(/^urn:uuid:[0-9a-f-]{36}$/);
    expect(problem.type).toMatch(/^(urn:tollgate:problem:|https:\/\/iana\.org\/)/);
    expect(problem.detail.length).toBeGreaterThan(10);
    expect(backend.seen).toHaveLength(seenBefore);
    return answer;
  }

  const get = (path: string, ...fields: string[]) =>
    `${[`GET ${path} HTTP/1.1`, 'Host: api.example', ...fields].join('\r\n')}\r\n\r\n`;

  describe('credentials', () => {
    it.each([
      ['none', [], 'missing_key', 'Bearer realm="api"'],
      ['another scheme', ['Authorization: Basic dTpw'], 'missing_key', 'Bearer realm="api"'],
      ['an empty header', ['Authorization:'], 'missing_key', 'Bearer realm="api"'],
      [
        'a scheme without a token',
        ['Authorization: Bearer'],
        'malformed_key',
        'Bearer realm="api", error="invalid_request"',
      ],
      ['two tokens', ['Authorization: Bearer KEY KEY'], 'malformed_key', 'Bearer realm="api", error="invalid_request"'],
      [
        'two headers',
        ['Authorization: Bearer KEY', 'authorization: Bearer KEY'],
        'malformed_key',
        'Bearer realm="api", error="invalid_request"',
      ],
      [
        'bytes that are no token',
        ['Authorization: Bearer abc"defgh'],
        'malformed_key',
        'Bearer realm="api", error="invalid_request"',
      ],
      [
        'a token of 10 KiB',
        [`Authorization: Bearer ${'a'.repeat(10_240)}`],
        'malformed_key',
        'Bearer realm="api", error="invalid_request"',
      ],
      [
        'an unknown key',
        ['Authorization: Bearer unknown-key'],
        'invalid_key',
        'Bearer realm="api", error="invalid_token"',
      ],
    ] as const)('%s', async (_, fields, code, challenge) => {
      const answer = await expectRefusal(get('/v1/conversations', ...fields), code);
      expect(answer.headers['www-authenticate']).toBe(challenge);
    });

    it.each(['Authorization: bearer KEY', 'authorization: BEARER    KEY', 'AUTHORIZATION:Bearer KEY  '])(
      '%s is accepted',
      async (field) => {
        const answer = await exchangeRaw(gateway.public, get('/v1/conversations', field.replace('KEY', key)));
        expect(answer.status).toBe(200);
      },
    );

    it('a mistyped key of our own form is refused like any unknown one', async () => {
      const mistyped = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a');
      await expectRefusal(get('/v1/conversations', `Authorization: Bearer ${mistyped}`), 'invalid_key');
    });

    it('unknown, revoked and expired keys get the same response', async () => {
      const { body: created } = await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body: {} });
      expect((await callAdmin(gateway, `/admin/v1/keys/${created.id}`, { method: 'DELETE' })).status).toBe(204);
      const expiresAt = new Date(Date.now() + 300).toISOString();
      const { body: expiring } = await callAdmin(gateway, '/admin/v1/customers/acme/keys', {
        body: { expires_at: expiresAt },
      });
      await expect
        .poll(async () => (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(expiring.key) })).status)
        .toBe(401);
      const answers = [];
      for (const each of [created.key, expiring.key, 'unknown-key']) {
        const answer = await expectRefusal(get('/v1/conversations', `Authorization: Bearer ${each}`), 'invalid_key');
        const { request_id: _, instance: __, ...problem } = JSON.parse(answer.body);
        answers.push({ problem, challenge: answer.headers['www-authenticate'] });
      }
      expect(answers[1]).toEqual(answers[0]);
      expect(answers[2]).toEqual(answers[0]);
    });
  });

  it('a key that ends within a week says when', async () => {
    const expiresAt = new Date(Date.now() + 6 * 86_400_000).toISOString();
    const { body } = await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body: { expires_at: expiresAt } });
    const answer = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(body.key) });
    expect(answer.headers.get('x-api-key-expires-at')).toBe(expiresAt);
    const unbounded = await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
    expect(unbounded.headers.get('x-api-key-expires-at')).toBeNull();
  });

  it.each(['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])(
    '%s on a known path names the methods',
    async (method) => {
      const raw = `${method} /v1/conversations/x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\n\r\n`;
      const answer = await expectRefusal(raw, 'method_not_allowed');
      expect(answer.headers.allow).toBe('GET, HEAD');
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    },
  );

  it.each(['FOO', 'get', 'PROPFIND'])('%s, which no server here knows, is a method all the same', async (method) => {
    const raw = `${method} /v1/conversations/x?y HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\n\r\n`;
    const answer = await expectRefusal(raw, 'method_not_allowed');
    expect(answer.headers.allow).toBe('GET, HEAD');
    await expectRefusal(raw.replace('/v1/conversations/x', '/nowhere'), 'not_found');
  });

  it('CONNECT is refused in words', async () => {
    const answer = await expectRefusal('CONNECT api.example:443 HTTP/1.1\r\nHost: api.example\r\n\r\n', 'bad_request');
    expect(answer.closed).toBe(true);
  });

  it.each([
    ['/v1/conversations/', 'not_found', 'use /api/v1/conversations instead'],
    ['/api/v2/conversations', 'not_found', 'Version v2 does not exist'],
    ['/V1/conversations', 'not_found', 'Available paths'],
    ['/metrics', 'not_found', 'Available paths'],
    ['/v1/conversations/..%2f..', 'bad_request', 'The path'],
    ['/v1/conversations/%ff', 'bad_request', 'UTF-8'],
    ['/v1/conversations/..', 'bad_request', 'dot segment'],
    [`/v1/conversations?${'x'.repeat(9000)}`, 'target_too_long', '8192'],
    [`/v1/conversations?${'x'.repeat(30_000)}`, 'target_too_long', '8192'],
  ] as const)('%s', async (path, code, detail) => {
    const answer = await expectRefusal(get(path, 'Authorization: Bearer KEY'), code);
    expect(JSON.parse(answer.body).detail).toContain(detail);
  });

  it.each([
    [
      'a body',
      'GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\nContent-Length: 2\r\n\r\n{}',
      'body_not_allowed',
    ],
    [
      'a chunked body',
      'GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'body_not_allowed',
    ],
    ['no Host', 'GET /v1/conversations HTTP/1.1\r\nAuthorization: Bearer KEY\r\n\r\n', 'bad_request'],
    [
      'white space before a colon',
      'GET /v1/conversations HTTP/1.1\r\nHost : a\r\nAuthorization: Bearer KEY\r\n\r\n',
      'bad_request',
    ],
    ['noise', 'this is not HTTP\r\n\r\n', 'bad_request'],
    [
      'large headers',
      `GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`,
      'headers_too_large',
    ],
    [
      'huge headers',
      `GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\nX: ${'x'.repeat(200_000)}\r\n\r\n`,
      'headers_too_large',
    ],
    [
      'many headers',
      `GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\n${'X: x\r\n'.repeat(2000)}\r\n`,
      'headers_too_large',
    ],
    [
      'an expectation and a body',
      'GET /v1/conversations HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n',
      'body_not_allowed',
    ],
  ] as const)('%s is refused and the connection closed', async (_, raw, code) => {
    const answer = await expectRefusal(raw, code);
    expect(answer.headers.connection).toBe('close');
    expect(answer.closed).toBe(true);
  });

  it('a HEAD that is refused has the headers only', async () => {
    const answer = await fetch(`${gateway.public}/v1/nothing`, { method: 'HEAD' });
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(await answer.text()).toBe('');
  });
});
