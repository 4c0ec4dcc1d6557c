/** What the check listener decides is what the public listener would: the same key, route, scope and quota. */
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { temporaryFile } from '../cli/support.ts';
import { startCollector } from '../observability/tracing/collector.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import { EMBEDDED_STORE, STORES } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import {
  ask,
  CHECK_TOKEN,
  createLimitedKey,
  FORMS,
  PATIENT,
  refusalOf,
  startCheckGateway,
  startCheckSystem,
  usedOf,
  verify,
} from './support.ts';

const PROXIED = { 'X-Forwarded-For': '203.0.113.9' };

describe.each(FORMS)('$name', ({ ask: askForm, codeOf }) => {
  test('an admitted request is 200 without content, with every identity header and the quota, and uses one unit', async () => {
    const { gateway, key, keyId } = await startCheckSystem({ limit: 10 });
    const answer = await askForm(gateway, 'GET', '/v1/open/1?q=2', bearer(key));
    expect(answer).toMatchObject({ status: 200, text: '' });
    expect(answer.headers).toMatchObject({
      'cache-control': 'no-store',
      'content-length': '0',
      'x-tollgate-customer': 'acme',
      'x-tollgate-plan': 'enterprise',
      'x-tollgate-key-id': keyId,
      'x-tollgate-assertion': '',
      'x-ratelimit-limit': '10',
      'ratelimit-policy': '"hourly";q=10;w=3600',
      'x-request-id': expect.any(String),
    });
    expect(await usedOf(gateway)).toBe(1);
  });

  test('a refusal has the code of the public listener, and uses nothing', async () => {
    const { gateway, key } = await startCheckSystem({ limit: 1 });
    const limited = await createLimitedKey(gateway);
    const codes: Record<string, string | undefined> = {};
    const seeCode = async (what: string, method: string, target: string, headers: object) => {
      codes[what] = codeOf(await askForm(gateway, method, target, headers));
    };
    await seeCode('no key', 'GET', '/v1/open', {});
    await seeCode('unknown key', 'GET', '/v1/open', bearer('unknown-key'));
    await seeCode('two keys', 'GET', '/v1/open', { Authorization: [`Bearer ${key}`, `Bearer ${key}`] });
    await seeCode('no scope', 'GET', '/v1/orders', bearer(limited));
    await seeCode('method', 'DELETE', '/v1/open', bearer(key));
    await seeCode('path', 'GET', '/v1/nothing', bearer(key));
    await seeCode('usage path', 'GET', '/api/v1/usage', bearer(key));
    await seeCode('dot segment', 'GET', '/v1/open/../orders', bearer(key));
    expect(await usedOf(gateway)).toBe(0);
    expect((await askForm(gateway, 'GET', '/v1/open', bearer(key))).status).toBe(200);
    await seeCode('used up', 'GET', '/v1/open', bearer(key));
    expect(codes).toEqual({
      'no key': 'missing_key',
      'unknown key': 'invalid_key',
      'two keys': 'malformed_key',
      'no scope': 'insufficient_scope',
      method: 'method_not_allowed',
      path: 'not_found',
      'usage path': 'not_found',
      'dot segment': 'bad_request',
      'used up': 'quota_exceeded',
    });
  });

  test('a route without a key is admitted for everybody, with no identity and no quota', async () => {
    const { gateway, key } = await startCheckSystem({ config: { limits: { in_flight: 4 } } });
    for (let i = 0; i < 8; i++) {
      const { status, headers } = await askForm(gateway, 'GET', '/health', i % 2 === 0 ? {} : bearer(key));
      expect(status).toBe(200);
      const identity = ['customer', 'plan', 'key-id'].map((name) => headers[`x-tollgate-${name}`]);
      expect(identity).toEqual(['', '', '']);
      expect(headers.ratelimit).toBeUndefined();
    }
    expect(await usedOf(gateway)).toBe(0);
  });

  test.each([
    'X-Tollgate-Customer',
    'X_Tollgate_Plan',
    'x-tollgate_key-id',
    'X-Tollgate-Refusal',
    'X_Tollgate_Check_Token',
  ])('the header %s of a client is 400', async (name) => {
    const { gateway, key } = await startCheckSystem();
    const answer = await askForm(gateway, 'GET', '/v1/open', { ...bearer(key), [name]: 'x' });
    expect(codeOf(answer)).toBe('bad_request');
    expect(await usedOf(gateway)).toBe(0);
  });

  test.each([
    ['missing', undefined],
    ['wrong', 'wrong'],
    ['empty', ''],
    ['doubled', [CHECK_TOKEN, CHECK_TOKEN]],
  ])('a token that is %s is 500, which nobody takes for a refusal of the client', async (_, token) => {
    const { gateway, key } = await startCheckSystem();
    const headers = { ...bearer(key), 'X-Original-Method': 'GET', 'X-Original-URI': '/v1/open' };
    for (const path of ['/ext-authz/v1/open', '/forward-auth', '/nginx', '/refusal', '/nowhere']) {
      expect(await ask(gateway, path, { headers, token })).toMatchObject({
        status: 500,
        body: { code: 'check_token' },
      });
    }
    for (const [path, method] of [
      ['/usage', 'GET'],
      ['/verify', 'POST'],
    ] as const) {
      expect(await ask(gateway, path, { method, headers, token })).toMatchObject({
        status: 401,
        headers: { 'www-authenticate': 'ApiKey realm="check", header="X-Tollgate-Check-Token"' },
        body: { code: 'unauthorized' },
      });
    }
    expect(await usedOf(gateway)).toBe(0);
  });

  test('a handshake of a WebSocket, an expectation and a body do not matter', async () => {
    const { gateway, key } = await startCheckSystem();
    const upgrade = { ...bearer(key), Connection: 'Upgrade', Upgrade: 'websocket' };
    expect((await askForm(gateway, 'GET', '/v1/open', upgrade)).status).toBe(200);
    const body = { ...bearer(key), Expect: 'something', 'Content-Length': '0' };
    expect((await askForm(gateway, 'POST', '/v1/open', body)).status).toBe(200);
    expect(await usedOf(gateway)).toBe(2);
  });
});

describe('a request is named by exactly one means', () => {
  const named = { 'X-Original-Method': 'GET', 'X-Original-URI': '/v1/open' };
  test.each<[string, string, Record<string, string | string[]>, string | undefined]>([
    ['/nginx', 'no target', { 'X-Original-Method': 'GET' }, 'bad_request'],
    ['/nginx', 'no method', { 'X-Original-URI': '/v1/open' }, 'bad_request'],
    ['/nginx', 'an empty target', { ...named, 'X-Original-URI': '' }, 'bad_request'],
    ['/nginx', 'a doubled target', { ...named, 'X-Original-URI': ['/v1/open', '/v1/open'] }, 'bad_request'],
    ['/nginx', 'both headers', { ...named, 'X-Original-URL': 'http://api/v1/open' }, 'bad_request'],
    ['/nginx', 'a doubled method', { ...named, 'X-Original-Method': ['GET', 'GET'] }, 'bad_request'],
    ['/nginx', 'an absolute URI', { ...named, 'X-Original-URI': 'http://api/v1/open' }, 'bad_request'],
    ['/nginx', 'a method with a space', { ...named, 'X-Original-Method': 'GET /' }, 'bad_request'],
    ['/nginx', 'the headers of another call too', { ...named, 'X-Forwarded-Uri': '/v1/orders' }, undefined],
    ['/nginx', 'a URL', { 'X-Original-Method': 'GET', 'X-Original-URL': 'https://api:8443/v1/open?a' }, undefined],
    [
      '/nginx',
      'a URL with user',
      { 'X-Original-Method': 'GET', 'X-Original-URL': 'http://u@api/v1/open' },
      'bad_request',
    ],
    [
      '/nginx',
      'a URL without a path',
      { 'X-Original-Method': 'GET', 'X-Original-URL': 'http://api?/v1/open' },
      'bad_request',
    ],
    ['/nginx', 'another scheme', { 'X-Original-Method': 'GET', 'X-Original-URL': 'ws://api/v1/open' }, 'bad_request'],
    ['/forward-auth', 'no target', { 'X-Forwarded-Method': 'GET' }, 'bad_request'],
    [
      '/forward-auth',
      'two targets',
      { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': ['/v1/open', '/v1/orders'] },
      'bad_request',
    ],
    ['/forward-auth', 'the headers of nginx', named, 'bad_request'],
  ])('%s: %s', async (path, _, headers, code) => {
    const { gateway, key } = await startCheckSystem();
    const answer = await ask(gateway, path, { headers: { ...headers, ...bearer(key) } });
    expect(answer.status === 403 ? refusalOf(answer).document.code : answer.body?.code).toBe(code);
    expect(answer.status === 200).toBe(code === undefined);
  });
});

test('what nginx is told is what the client gets from /refusal', async () => {
  const { gateway, key } = await startCheckSystem({ limit: 1 });
  const [, , nginx] = FORMS;
  await nginx.ask(gateway, 'GET', '/v1/open', bearer(key));
  const told = await nginx.ask(gateway, 'GET', '/v1/open', bearer(key));
  const refusal = told.headers['x-tollgate-refusal'] ?? '';
  expect(refusal.length).toBeLessThanOrEqual(3072);
  const sent = await ask(gateway, '/refusal', { headers: { 'X-Tollgate-Refusal': refusal } });
  expect(sent).toMatchObject({ status: 429, body: { code: 'quota_exceeded', status: 429 } });
  expect(sent.headers).toMatchObject({
    'content-type': 'application/problem+json',
    'retry-after': expect.stringMatching(/^\d+$/),
    'x-ratelimit-remaining': '0',
    'x-request-id': told.headers['x-request-id'],
  });
  // Fetching a refusal is no second one.
  expect(await readMetric(gateway, 'tollgate_refusals_total')).toEqual({
    'problem="quota_exceeded",plan="enterprise"': 1,
  });
});

test.each([
  ['nothing', undefined],
  ['no JSON', Buffer.from('{').toString('base64url')],
  ['an unknown code', encoded({ status: 200, fields: [], document: { code: 'fine', status: 200 } })],
  ['another status', encoded({ status: 200, fields: [], document: { code: 'invalid_key', status: 200 } })],
  [
    'a field with a line break',
    encoded({ status: 401, fields: ['Allow', 'a\r\nb'], document: { code: 'invalid_key', status: 401 } }),
  ],
  ['too much', 'A'.repeat(4000)],
])('/refusal with %s is 503', async (_, refusal) => {
  const { gateway } = await startCheckSystem();
  const headers = refusal === undefined ? {} : { 'X-Tollgate-Refusal': refusal };
  expect(await ask(gateway, '/refusal', { headers })).toMatchObject({ status: 503, body: { code: 'overloaded' } });
});

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

describe.each(STORES)('/verify over $name', (store) => {
  test('decides by key and route, and says so with 200', async () => {
    const { gateway, key, keyId } = await startCheckSystem({ store, limit: 3, config: PATIENT });
    const limited = await createLimitedKey(gateway);
    expect(await verify(gateway, { key, path: '/v1/orders/1', method: 'POST' })).toMatchObject({
      status: 200,
      body: {
        allowed: true,
        customer: 'acme',
        plan: 'enterprise',
        key_id: keyId,
        scopes: null,
        limit: 3,
        remaining: 2,
      },
    });
    expect(await verify(gateway, { key: limited, path: '/v1/orders/1' })).toMatchObject({
      status: 200,
      body: { allowed: false, problem: { code: 'insufficient_scope', status: 403 } },
    });
    expect(await verify(gateway, { key: limited })).toMatchObject({ body: { allowed: true, scopes: ['other'] } });
    expect(await verify(gateway, { key, path: '/v1/orders', method: 'PATCH' })).toMatchObject({
      status: 200,
      body: { allowed: false, problem: { code: 'method_not_allowed' } },
    });
    expect(await verify(gateway, { key: 'no' })).toMatchObject({ body: { problem: { code: 'malformed_key' } } });
    expect(await usedOf(gateway)).toBe(2);
    await verify(gateway, { key });
    expect(await verify(gateway, { key })).toMatchObject({
      status: 200,
      headers: { 'retry-after': expect.any(String) },
      body: { allowed: false, problem: { code: 'quota_exceeded', 'violated-policies': ['hourly'] } },
    });
  });

  test('a dry run knows the month: it shows the hour while both have units, and is refused when the month has none', async () => {
    const plans = { enterprise: { requests_per_hour: 'custom', period: { per: 'month', requests: 2 } } };
    const { gateway, key } = await startCheckSystem({ store, limit: 10, config: { ...PATIENT, plans } });
    const dryRun = async () => (await verify(gateway, { key, dry_run: true })).body;
    expect((await verify(gateway, { key })).body).toMatchObject({ allowed: true, limit: 10, remaining: 9 });
    await expect.poll(dryRun).toMatchObject({ allowed: true, limit: 10, remaining: 9 });
    expect((await verify(gateway, { key })).body).toMatchObject({ allowed: true, limit: 10, remaining: 8 });
    const used = { allowed: false, problem: { code: 'quota_exceeded', 'violated-policies': ['monthly'] } };
    await expect.poll(dryRun).toMatchObject(used);
    expect((await dryRun()).problem.resets_at).toBe((await verify(gateway, { key })).body.problem.resets_at);
  });

  test('a dry run uses, counts and notes nothing, and tells how it stands', async () => {
    const { gateway, storeUrl, key, keyId } = await startCheckSystem({
      store,
      limit: 1,
      config: { ...PATIENT, auth: { failures_per_minute: 1 } },
    });
    for (let i = 0; i < 3; i++) {
      expect((await verify(gateway, { key, dry_run: true })).body).toMatchObject({ allowed: true, remaining: 1 });
      expect((await verify(gateway, { key: 'unknown-key', address: '203.0.113.1', dry_run: true })).body).toMatchObject(
        {
          allowed: false,
          problem: { code: 'invalid_key' },
        },
      );
    }
    expect(await usedOf(gateway)).toBe(0);
    expect(await readMetric(gateway, 'tollgate_http_requests_total')).toEqual({});
    expect(await readMetric(gateway, 'tollgate_refusals_total')).toEqual({});
    expect(await readMetric(gateway, 'tollgate_auth_total')).toMatchObject({
      'result="valid"': 0,
      'result="unknown"': 0,
    });
    expect(await readMetric(gateway, 'tollgate_inflight_requests')).toEqual({ '': 0 });
    // A stop writes the uses that a gateway still has in memory.
    await gateway.close();
    const next = await startCheckGateway(storeUrl);
    onTestFinished(() => next.close());
    expect((await callAdmin(next, `/admin/v1/keys/${keyId}`)).body.last_used_at).toBeNull();
    expect((await verify(next, { key })).body).toMatchObject({ allowed: true, remaining: 0 });
    // Usage is read at most every 250 ms.
    await expect
      .poll(async () => (await verify(next, { key, dry_run: true })).body)
      .toMatchObject({ allowed: false, problem: { code: 'quota_exceeded' } });
  });
});

test.each<[number, string, string, Record<string, string>]>([
  [415, 'unsupported_media_type', '{}', { 'Content-Type': 'text/plain' }],
  [415, 'unsupported_media_type', '{}', { 'Content-Encoding': 'gzip' }],
  [400, 'malformed_json', '{', {}],
  [422, 'unprocessable', '[]', {}],
  [422, 'unprocessable', '{}', {}],
  [422, 'unprocessable', '{"key":1}', {}],
  [422, 'unprocessable', '{"key":"secret-key","path":"v1"}', {}],
  [422, 'unprocessable', '{"key":"secret-key","address":"host"}', {}],
  [422, 'unprocessable', '{"key":"secret-key","units":1}', {}],
  [422, 'unprocessable', '{"key":"secret-key","method":"GET /"}', {}],
  [413, 'body_too_large', `{"key":"${'k'.repeat(70_000)}"}`, {}],
])('/verify: %i %s', async (status, code, body, headers) => {
  const { gateway } = await startCheckSystem();
  const json = { 'Content-Type': 'application/json', ...headers };
  const answer = await ask(gateway, '/verify', { method: 'POST', headers: json, body });
  expect(answer).toMatchObject({ status, body: { code } });
  expect(answer.text).not.toContain('secret-key');
});

test('a check takes the units of its route, and /verify without a path takes one', async () => {
  const routes = [
    { path: '/v1/heavy', methods: ['GET'], units: 3 },
    { path: '/v1/free', methods: ['GET'], units: 0 },
  ];
  const { gateway, key } = await startCheckSystem({ limit: 8, config: { routes: routes as never } });
  for (const { ask: askForm } of FORMS.slice(0, 2)) {
    expect((await askForm(gateway, 'GET', '/v1/heavy', bearer(key))).status).toBe(200);
  }
  expect(await usedOf(gateway)).toBe(6);
  expect((await verify(gateway, { key, path: '/v1/heavy' })).body).toMatchObject({
    problem: { code: 'quota_exceeded' },
  });
  expect((await verify(gateway, { key, path: '/v1/free' })).body).toMatchObject({ allowed: true });
  expect((await verify(gateway, { key })).body).toMatchObject({ allowed: true, remaining: 1 });
  expect(await usedOf(gateway)).toBe(7);
});

test('/usage is the usage of the key, free of charge', async () => {
  const { gateway, key } = await startCheckSystem({ limit: 5 });
  await verify(gateway, { key });
  expect(await ask(gateway, '/usage', { headers: bearer(key) })).toMatchObject({
    status: 200,
    body: { customer: 'acme', limit: 5, used: 1, remaining: 4 },
  });
  expect(await ask(gateway, '/usage')).toMatchObject({ status: 401, body: { code: 'missing_key' } });
  expect(await ask(gateway, '/usage', { method: 'POST' })).toMatchObject({
    status: 405,
    headers: { allow: 'GET, HEAD' },
  });
});

describe('the address of the client', () => {
  const config = { auth: { failures_per_minute: 2 } };
  const [extAuthz] = FORMS;

  test('is the one that a trusted proxy names: its failed keys count, and rules for addresses apply', async () => {
    const { gateway } = await startCheckSystem({ config });
    const restricted = await createLimitedKey(gateway, { allowed_addresses: ['203.0.113.9'] });
    for (let i = 0; i < 2; i++)
      await extAuthz.ask(gateway, 'GET', '/v1/open', { ...PROXIED, ...bearer('unknown-key') });
    const third = await extAuthz.ask(gateway, 'GET', '/v1/open', { ...PROXIED, ...bearer('unknown-key') });
    expect(third).toMatchObject({ status: 429, body: { code: 'too_many_failures' } });
    expect((await extAuthz.ask(gateway, 'GET', '/v1/open', { ...PROXIED, ...bearer(restricted) })).status).toBe(200);
    expect((await verify(gateway, { key: restricted, address: '203.0.113.9' })).body.allowed).toBe(true);
    expect((await verify(gateway, { key: restricted, address: '203.0.113.8' })).body.problem.code).toBe(
      'address_not_allowed',
    );
  });

  test('is unknown where no trusted proxy names one: nobody is counted, and a key for certain addresses is refused', async () => {
    const { gateway } = await startCheckSystem({ config });
    const restricted = await createLimitedKey(gateway, { allowed_addresses: ['127.0.0.0/8', '::/0', '0.0.0.0/0'] });
    for (let i = 0; i < 5; i++) {
      expect((await extAuthz.ask(gateway, 'GET', '/v1/open', bearer('unknown-key'))).body.code).toBe('invalid_key');
      expect((await verify(gateway, { key: 'unknown-key' })).body.problem.code).toBe('invalid_key');
    }
    expect((await extAuthz.ask(gateway, 'GET', '/v1/open', bearer(restricted))).body.code).toBe('address_not_allowed');
    expect((await verify(gateway, { key: restricted })).body.problem.code).toBe('address_not_allowed');
    const untrusted = await startCheckSystem({ config: { check: { trusted_proxies: ['192.0.2.1'] } } });
    const other = await createLimitedKey(untrusted.gateway, { allowed_addresses: ['127.0.0.0/8', '203.0.113.9'] });
    const answer = await extAuthz.ask(untrusted.gateway, 'GET', '/v1/open', { ...PROXIED, ...bearer(other) });
    expect(answer.body.code).toBe('address_not_allowed');
  });
});

test('guesses of the token are slowed down where a program sent them, and are in the log once a minute', async () => {
  const { gateway, key } = await startCheckSystem();
  for (let i = 0; i < 30; i++) await ask(gateway, '/usage', { token: `guess-${i}` });
  expect(await ask(gateway, '/usage', { token: 'guess' })).toMatchObject({
    status: 429,
    body: { code: 'too_many_failures' },
    headers: { 'retry-after': expect.any(String) },
  });
  expect((await ask(gateway, '/usage', { headers: bearer(key) })).status).toBe(200);
  const warnings = gateway.logs.filter(({ msg }) => String(msg).includes('X-Tollgate-Check-Token'));
  expect(warnings).toHaveLength(1);
  expect(JSON.stringify(gateway.logs)).not.toContain('guess-1');
});

test('a body is discarded, and one beyond 64 KiB is 413', async () => {
  const { gateway, key } = await startCheckSystem();
  const send = (size: number, headers: Record<string, string>) =>
    ask(gateway, '/ext-authz/v1/open', {
      method: 'POST',
      headers: { ...bearer(key), ...headers },
      body: 'x'.repeat(size),
    });
  expect((await send(64 * 1024, {})).status).toBe(200);
  expect((await send(64 * 1024, { 'Transfer-Encoding': 'chunked' })).status).toBe(200);
  for (const headers of [{}, { 'Transfer-Encoding': 'chunked' }] as const) {
    expect(await send(64 * 1024 + 1, headers as never)).toMatchObject({
      status: 413,
      body: { code: 'body_too_large' },
    });
  }
  expect(await usedOf(gateway)).toBe(2);
});

test('metrics and log tell checks from other requests', async () => {
  const { gateway, key } = await startCheckSystem();
  const [extAuthz, forwardAuth] = FORMS;
  await extAuthz.ask(gateway, 'GET', '/v1/open/7', { ...bearer(key), ...PROXIED });
  await forwardAuth.ask(gateway, 'POST', '/v1/open', {});
  expect(await readMetric(gateway, 'tollgate_http_requests_total')).toEqual({
    'route="/v1/open/{id}",method="GET",code="200",source="check",plan="enterprise"': 1,
    'route="/v1/open",method="POST",code="401",source="check",plan="none"': 1,
  });
  expect(gateway.logs.filter(({ msg }) => msg === 'request')).toMatchObject([
    { via: 'check', method: 'GET', route: '/v1/open/{id}', status: 200, client: '203.0.113.9', customer: 'acme' },
    { via: 'check', method: 'POST', route: '/v1/open', status: 401, client: 'unknown' },
  ]);
  expect(JSON.stringify(gateway.logs)).not.toContain(key);
});

test('without a backend there is no public listener, and the gateway is ready; /status shows the checks', async () => {
  const { gateway } = await startCheckSystem();
  const { check, upstreams, problems } = (await callAdmin(gateway, '/status')).body;
  expect([check, upstreams, problems]).toEqual([{ address: '127.0.0.1:0', has_token: true }, [], []]);
  expect(gateway.public).toBe('');
  await expect.poll(async () => (await fetch(`${gateway.ops}/readyz`)).json()).toMatchObject({ status: 'ready' });
});

test('max_concurrent does not apply, because the end of a request is not seen', async () => {
  const plans = { enterprise: { requests_per_hour: 'custom', max_concurrent: 1 } };
  const { gateway, key } = await startCheckSystem({ store: EMBEDDED_STORE, config: { plans } });
  const [extAuthz] = FORMS;
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => extAuthz.ask(gateway, 'GET', '/v1/open', bearer(key))),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
});

test('a trace has one span for a check, named after the request that it is about', async () => {
  const collector = await startCollector();
  const tracing = { endpoint: collector.endpoint, sample_ratio: 1 };
  const { gateway, key } = await startCheckSystem({ config: { tracing } });
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const [, forwardAuth, nginx] = FORMS;
  await forwardAuth.ask(gateway, 'POST', '/v1/open', { ...bearer(key), traceparent });
  await nginx.ask(gateway, 'GET', '/v1/open/7', {});
  await expect.poll(() => collector.spans.map(({ name }) => name)).toEqual(['POST /v1/open', 'GET /v1/open/{id}']);
  const [yes, no] = collector.spans;
  expect(yes).toMatchObject({
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    attributes: { 'tollgate.plan': 'enterprise' },
  });
  expect(no).toMatchObject({ attributes: { 'tollgate.refusal': 'missing_key', 'url.path': '/v1/open/{id}' } });
});

test('a yes has the assertion for the configured audience, and no identity where headers are off', async () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const file = await temporaryFile('signing.pem', String(privateKey.export({ type: 'pkcs8', format: 'pem' })));
  const identity = { headers: false, assertion: { audience: 'https://orders.example', signing_key_file: file } };
  const { gateway, key } = await startCheckSystem({ config: { identity } });
  const [extAuthz] = FORMS;
  const { headers } = await extAuthz.ask(gateway, 'GET', '/v1/open', bearer(key));
  expect(['customer', 'plan', 'key-id'].map((name) => headers[`x-tollgate-${name}`])).toEqual(['', '', '']);
  const { assertion } = (await verify(gateway, { key })).body;
  for (const jwt of [headers['x-tollgate-assertion'], assertion]) {
    const [, claims = ''] = String(jwt).split('.');
    const decoded = JSON.parse(Buffer.from(claims, 'base64url').toString());
    expect(decoded).toMatchObject({ sub: 'acme', aud: 'https://orders.example' });
  }
});
