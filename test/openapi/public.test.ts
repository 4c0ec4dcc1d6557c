/** docs/openapi/public.yaml is what callers get of the gateway: nothing is missing there, and nothing is made up. */
import { globSync, readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { startSampleBackend } from '../../demo/sample-backend/sample-backend.ts';
import { OWN_HEADER_NAMES } from '../../src/edge/public-app.ts';
import { createApiKey } from '../../src/formats/api-key.ts';
import { PROBLEMS } from '../../src/http/problems/table.ts';
import { startEdge } from '../edge/support.ts';
import { bearer, callAdmin } from '../support/admin.ts';
import type { Backend } from '../support/backend.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import { keyName, startRedisSystem, writeCustomer, writeKey } from '../support/redis-system.ts';
import { codeOf, type Operation, type Received, readContract, receive } from './contract.ts';

const GATEWAY_FIELDS = new Set([
  ...OWN_HEADER_NAMES,
  'allow',
  'retry-after',
  'www-authenticate',
  'deprecation',
  'sunset',
  'link',
]);
const CONTRACT = readContract('public.yaml', (header) => GATEWAY_FIELDS.has(header));
const PREFIXES = CONTRACT.servers.map((url) => url.replace('{gateway}', ''));
const READ = CONTRACT.operations.filter(({ method }) => method === 'GET');
const FORWARDED = READ.filter(({ path }) => !path.startsWith('/usage'));
const RATE_LIMIT = ['ratelimit', 'ratelimit-policy', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

interface Ask {
  readonly key?: string;
  /** Whole lines. */
  readonly fields?: readonly string[];
  /** What stands for {id}. */
  readonly id?: string;
  readonly query?: string;
  /** Left out: what ends the head of a request. */
  readonly end?: string;
}

/** Asks one gateway, and holds each answer against the file. */
class Session {
  readonly #url: string;
  readonly received: Set<string>;

  constructor({ public: url }: Pick<TestGateway, 'public'>, received: Set<string>) {
    this.#url = url;
    this.received = received;
  }

  /** Under every prefix; gives the last answer. */
  async ask(operation: Operation, asked: Ask): Promise<Received> {
    const { key, fields = ['Host: a'], id = 'conv_1', query = '', end = '\r\n\r\n' } = asked;
    const credentials = key === undefined ? [] : [`Authorization: Bearer ${key}`];
    let answer: Received | undefined;
    for (const prefix of PREFIXES) {
      const target = prefix + operation.path.replace('{id}', id) + query;
      const lines = [`${operation.method} ${target} HTTP/1.1`, ...fields, ...credentials];
      const { status, headers, body } = await exchangeRaw(this.#url, lines.join('\r\n') + end);
      answer = { status, headers: new Headers(headers), text: body };
      this.#hold(operation, answer);
    }
    if (answer === undefined) throw new Error('there is no prefix');
    return answer;
  }

  /** `path` as the file has it. */
  async head(path: string, key: string, { id = 'conv_1', tag }: { id?: string; tag?: string } = {}): Promise<void> {
    const headers = { ...bearer(key), ...(tag !== undefined && { 'If-None-Match': tag }) };
    for (const prefix of PREFIXES) {
      const target = `${this.#url}${prefix}${path.replace('{id}', id)}`;
      this.#hold(CONTRACT.operation('HEAD', path), await receive(fetch(target, { method: 'HEAD', headers })));
    }
  }

  /** Every one of these operations refuses it so. Gives an answer of each. */
  async expectRefusal(operations: readonly Operation[], code: keyof typeof PROBLEMS, asked: Ask): Promise<Received[]> {
    const answers: Received[] = [];
    for (const operation of operations) {
      const answer = await this.ask(operation, asked);
      expect(codeOf(answer), `${operation.path}: ${answer.text}`).toBe(code);
      expect(answer.status).toBe(PROBLEMS[code].status);
      expect(answer.headers.get('cache-control')).toBe('no-store');
      answers.push(answer);
    }
    return answers;
  }

  #hold(operation: Operation, answer: Received): void {
    expect(CONTRACT.faultsOf(operation, answer), `${operation.method} ${operation.path}`).toEqual([]);
    const range = `${Math.floor(answer.status / 100)}XX`;
    const status = operation.statuses.includes(range) ? range : answer.status;
    this.received.add(`${operation.method} ${operation.path} ${status}`);
    const code = codeOf(answer);
    if (code !== undefined) this.received.add(code);
  }
}

function expectFields(answers: readonly Received[], names: readonly string[]): void {
  for (const { headers } of answers) expect(names.filter((name) => !headers.has(name))).toEqual([]);
}

/** Without the part of the check listener, which docs/openapi/check.yaml describes. */
function codeOfListener(folder: URL): string[] {
  return globSync('**/*.ts', { cwd: folder }).filter((name) => !name.startsWith('check/'));
}

it('the file has the codes that the public listener can answer, and no others, each with its status', () => {
  const folders = ['edge', 'http/listener', 'upstream'].map((name) => new URL(`../../src/${name}/`, import.meta.url));
  const files = folders.flatMap((folder) => codeOfListener(folder).map((name) => new URL(name, folder)));
  const source = files.map((file) => readFileSync(file, 'utf8'));
  const answered = Object.keys(PROBLEMS)
    .filter((code) => source.some((text) => text.includes(`'${code}'`)))
    // An operation of the file never gets them: none has such a method, or may have a body.
    .filter((code) => !['method_not_allowed', 'body_too_large'].includes(code));
  expect([...new Set([...CONTRACT.codes.values()].flatMap((codes) => [...codes]))].sort()).toEqual(answered.sort());
  for (const [status, codes] of CONTRACT.codes) {
    for (const code of codes) expect(PROBLEMS).toHaveProperty([code, 'status'], status);
  }
});

it('every response is one that the file declares, and every declared one occurs', async () => {
  const received = new Set<string>();
  await askSample(received);
  await askTooMuch(received);
  await askOutOfService(received);
  await askClosed(received);

  const declared = CONTRACT.operations.flatMap(({ method, path, statuses }) =>
    // A bug cannot be asked for: it has a test of its own.
    statuses.filter((status) => status !== '500' && status !== '5XX').map((status) => `${method} ${path} ${status}`),
  );
  expect(declared.filter((each) => !received.has(each))).toEqual([]);
  const codes = [...CONTRACT.codes.values()].flatMap((each) => [...each]);
  expect(codes.filter((code) => !received.has(code)).sort()).toEqual(['internal_error']);
});

/** The sample backend behind a gateway, and what is refused in front of it. */
async function askSample(received: Set<string>): Promise<void> {
  const { redis } = await startRedisSystem();
  const backend = await startSampleBackend({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => backend.close());
  const gateway = await startTestGateway({
    storeUrl: redis.url,
    upstreamUrl: backend.url.origin,
    config: {
      plans: { starter: { requests_per_hour: 1000, burst_per_second: 500 }, narrow: { requests_per_hour: 4 } },
      auth: { browser_keys: 'reject' },
    },
  });
  onTestFinished(() => gateway.close());
  const session = new Session(gateway, received);
  for (const [customer, fields] of Object.entries({
    good: { plan: 'starter' },
    used: { plan: 'narrow' },
    suspended: { plan: 'starter', suspended: 1 },
    unlimited: { plan: 'gone' },
  })) {
    await writeCustomer(redis, customer, fields);
    await writeKey(redis, `key-of-${customer}`, customer);
  }
  await writeKey(redis, 'key-that-expires', 'good');
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  await redis.command('HSET', keyName('key-that-expires'), 'expires_at', tomorrow);
  for (const [name, field, value] of [
    ['key-from-elsewhere', 'allowed_addresses', '192.0.2.1'],
    ['key-without-scopes', 'scopes', ' '],
  ] as const) {
    await writeKey(redis, name, 'good');
    await redis.command('HSET', keyName(name), field, value);
  }
  const key = 'key-of-good';

  const [list, one, usage] = ['/conversations', '/conversations/{id}', '/usage'].map((path) =>
    CONTRACT.operation('GET', path),
  ) as [Operation, Operation, Operation];
  const listed = await session.ask(list, { key, query: '?limit=1' });
  expect(listed.status).toBe(200);
  const id = JSON.parse(listed.text).data[0].id;
  const found = await session.ask(one, { key: 'key-that-expires', id });
  expect(found.status).toBe(200);
  expectFields([listed, found], RATE_LIMIT);
  expectFields([found], ['x-api-key-expires-at']);
  // The backend's own statuses: one that the gateway has as well, and one that it has not.
  expect((await session.ask(one, { key, id: 'conv_unknown' })).text).toContain('CONVERSATION_NOT_FOUND');
  const etag = found.headers.get('etag');
  for (const [operation, tag] of [
    [list, '*'],
    [one, etag],
  ] as const) {
    expect((await session.ask(operation, { key, id, fields: ['Host: a', `If-None-Match: ${tag}`] })).status).toBe(304);
  }
  for (const operation of [usage, CONTRACT.operation('GET', '/usage/history')]) {
    expect((await session.ask(operation, { key })).headers.get('content-type')).toBe('application/json');
  }
  for (const { path } of READ) {
    await session.head(path, key, { id });
    if (!path.startsWith('/usage')) await session.head(path, key, { id, tag: '*' });
    await session.head(path, 'unknown-key');
  }

  const host = 'Host: a';
  await session.expectRefusal(READ, 'bad_request', { key, fields: [] });
  await session.expectRefusal(READ, 'body_not_allowed', { key, fields: [host, 'Content-Length: 2'] });
  await session.expectRefusal(READ, 'malformed_key', { key: 'two keys' });
  await session.expectRefusal(READ, 'missing_key', {});
  await session.expectRefusal(READ, 'key_in_query', { query: `?key=${createApiKey()}` });
  expectFields(await session.expectRefusal(READ, 'invalid_key', { key: 'unknown-key' }), ['www-authenticate']);
  await session.expectRefusal(READ, 'browser_use', { key, fields: [host, 'Origin: https://app.example'] });
  await session.expectRefusal(READ, 'address_not_allowed', { key: 'key-from-elsewhere' });
  const scoped = await session.expectRefusal(READ, 'insufficient_scope', { key: 'key-without-scopes' });
  expectFields(scoped, ['www-authenticate']);
  await session.expectRefusal(READ, 'customer_suspended', { key: 'key-of-suspended' });
  await session.expectRefusal(READ, 'quota_not_configured', { key: 'key-of-unlimited' });
  await session.expectRefusal([one], 'not_found', { key, id: 'x'.repeat(513) });
  await session.expectRefusal(READ, 'target_too_long', { key, query: `?${'x'.repeat(9000)}` });
  await session.expectRefusal(READ, 'expectation_failed', { key, fields: [host, 'Expect: x'] });
  await session.expectRefusal(READ, 'headers_too_large', { key, fields: [host, `X: ${'x'.repeat(17_000)}`] });
  await session.expectRefusal(READ, 'not_implemented', { key, fields: [host, 'Transfer-Encoding: gzip'] });
  for (let i = 0; i < 2; i++) await session.ask(list, { key: 'key-of-used' });
  const exceeded = await session.expectRefusal(FORWARDED, 'quota_exceeded', { key: 'key-of-used' });
  expectFields(exceeded, [...RATE_LIMIT, 'retry-after']);
  for (const { text } of exceeded) expect(JSON.parse(text)).toHaveProperty('violated-policies', ['hourly']);
  expect((await session.ask(usage, { key: 'key-of-used' })).status).toBe(200);
  await askHeavy(redis.url, backend.url.origin, received);
}

/** The same routes for several units each: fewer than the limit has, and more. */
async function askHeavy(storeUrl: string, upstreamUrl: string, received: Set<string>): Promise<void> {
  for (const [units, limit, code] of [
    [5, 8, 'quota_exceeded'],
    [9, 8, 'cost_exceeds_limit'],
  ] as const) {
    const paths = ['/api/v1/conversations', '/api/v1/conversations/{id}'];
    const routes = paths.map((path) => ({ path, methods: ['GET', 'HEAD'], units })) as never;
    const plans = { starter: { requests_per_hour: limit } };
    const gateway = await startTestGateway({ storeUrl, upstreamUrl, config: { routes, plans } });
    onTestFinished(() => gateway.close());
    const session = new Session(gateway, received);
    // What was used before counts as well.
    for (const { text } of await session.expectRefusal(FORWARDED, code, { key: 'key-of-good' })) {
      expect(JSON.parse(text)).toMatchObject({ units });
    }
  }
}

const FAULTY: RequestListener = (req, res) => {
  if (req.url?.endsWith('?reset')) res.socket?.destroy();
  // To anything else it says nothing.
};

/** Valid as a list and as one conversation. */
const ANY_CONTENT: RequestListener = (_req, res) => {
  const contact = { id: 'c', phone: '+1' };
  const conversation = {
    id: 'x',
    channel: 'SMS',
    status: 'OPEN',
    contact,
    messages: [],
    createdAt: '2026-01-01T00:00:00Z',
  };
  const text = JSON.stringify({ ...conversation, data: [conversation] });
  res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': text.length }).end(text);
};

/** A plan with little room, requests that do not end, and an address that is known for its failures. */
async function askTooMuch(received: Set<string>): Promise<void> {
  const { gateway, key } = await startRedisSystem({
    answer: ANY_CONTENT,
    config: {
      plans: { starter: { requests_per_hour: 1000, burst_per_second: 1 } },
      limits: { headers_timeout_ms: 500, request_timeout_ms: 500 },
      auth: { failures_per_minute: 1 },
    },
  });
  const session = new Session(gateway, received);
  await Promise.all(FORWARDED.flatMap((each) => [0, 1, 2].map(() => session.ask(each, { key }))));
  await Promise.all(READ.map((each) => session.expectRefusal([each], 'request_timeout', { end: '' })));
  await session.ask(CONTRACT.operation('GET', '/usage'), { key: 'unknown-key' });
  expectFields(await session.expectRefusal(READ, 'too_many_failures', { key: 'unknown-key' }), ['retry-after']);
}

/** What is behind the gateway fails, is away, or cannot be asked. */
async function askOutOfService(received: Set<string>): Promise<void> {
  const config = { upstream: { response_timeout_ms: 1000 } };
  const { gateway, key, redis, backend } = await startRedisSystem({ answer: FAULTY, config });
  const session = new Session(gateway, received);
  for (const [code, query] of [
    ['bad_gateway', '?reset'],
    ['gateway_timeout', '?silence'],
  ] as const) {
    expectFields(await session.expectRefusal(FORWARDED, code, { key, query }), RATE_LIMIT);
  }
  const upstreamUrl = `http://127.0.0.1:${await freePort()}`;
  const lonely = await startTestGateway({ storeUrl: redis.url, upstreamUrl });
  onTestFinished(() => lonely.close());
  const refused = await new Session(lonely, received).expectRefusal(FORWARDED, 'upstream_unavailable', { key });
  expectFields(refused, ['retry-after']);
  await expectOverload({ storeUrl: redis.url, backend, key }, received);
  await redis.kill();
  expectFields(await session.expectRefusal(READ, 'store_unavailable', { key: 'unknown-key' }), ['retry-after']);
}

/** Paths after their sunset, and in maintenance. */
async function askClosed(received: Set<string>): Promise<void> {
  const route = {
    methods: ['GET'],
    deprecated_at: '2025-01-01T00:00:00Z',
    sunset_at: '2026-01-01T00:00:00Z',
    successor: 'https://a.example/v2',
  };
  const { gateway, key } = await startRedisSystem({
    config: {
      routes: ['/api/v1/conversations', '/api/v1/conversations/{id}'].map((path) => ({ ...route, path })) as never,
    },
  });
  const session = new Session(gateway, received);
  expectFields(await session.expectRefusal(FORWARDED, 'gone', { key }), ['deprecation', 'sunset', 'link']);
  const maintenance = { mode: 'down', until: new Date(Date.now() + 60_000).toISOString() };
  expect((await callAdmin(gateway, '/admin/v1/maintenance', { method: 'PUT', body: maintenance })).status).toBe(200);
  const [operation] = FORWARDED;
  await expect.poll(async () => operation && codeOf(await session.ask(operation, { key }))).toBe('maintenance');
  expectFields(await session.expectRefusal(FORWARDED, 'maintenance', { key }), ['retry-after', 'sunset']);
}

/** One request is all that the gateway or the plan takes, and it is under way. */
async function expectOverload(
  { storeUrl, backend, key }: { storeUrl: string; backend: Backend; key: string },
  received: Set<string>,
): Promise<void> {
  for (const [code, operations, config] of [
    ['overloaded', READ, { limits: { in_flight: 1 } }],
    ['too_many_concurrent', FORWARDED, { plans: { starter: { requests_per_hour: 1000, max_concurrent: 1 } } }],
  ] as const) {
    const gateway = await startTestGateway({ storeUrl, upstreamUrl: backend.url, config });
    onTestFinished(() => gateway.close());
    const before = backend.seen.length;
    const held = new AbortController();
    fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key), signal: held.signal }).catch(() => {});
    await expect.poll(() => backend.seen.length).toBe(before + 1);
    const refused = await new Session(gateway, received).expectRefusal(operations, code, { key });
    expectFields(refused, ['retry-after']);
    held.abort();
  }
}

it('a bug gets the response that the file declares', async () => {
  const edge = await startEdge({
    parts: {
      authenticator: {
        authenticate: () => Promise.reject(new Error('a bug')),
        authenticateSha256: () => Promise.reject(new Error('a bug')),
      },
    },
  });
  const failed = await receive(edge.send('any-key-at-all'));
  expect(codeOf(failed)).toBe('internal_error');
  for (const operation of READ) expect(CONTRACT.faultsOf(operation, failed)).toEqual([]);
});

it('paths and methods that the file lacks get the 404 and 405 that the file declares', async () => {
  const { gateway } = await startRedisSystem();
  for (const prefix of PREFIXES) {
    for (const path of new Set(CONTRACT.operations.map(({ path }) => path.replace('{id}', 'x')))) {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const refused = await receive(fetch(gateway.public + prefix + path, { method }));
        expect(refused.status).toBe(405);
        expect(codeOf(refused)).toBe('method_not_allowed');
        expect(refused.headers.get('allow')).toBe('GET, HEAD');
      }
    }
    for (const path of ['', '/', '/conversations/', '/conversations/x/messages', '/usage/', '/messages', '/v2']) {
      const missing = await receive(fetch(gateway.public + prefix + path));
      expect(CONTRACT.faultsOfResponse('NotFound', missing)).toEqual([]);
      expect(codeOf(missing)).toBe('not_found');
    }
  }
});

it('the file has the paths that the default configuration serves, under the same prefixes', async () => {
  const { gateway } = await startRedisSystem();
  const { body: config } = await callAdmin(gateway, '/admin/v1/config');
  const served = config.routes.flatMap(({ path, methods }: { path: string; methods: string[] }) =>
    methods.map((method) => `${method} ${path}`),
  );
  const own = ['', '/history'].flatMap((path) =>
    ['GET', 'HEAD'].map((method) => `${method} ${config.usage_path}${path}`),
  );
  const declared = CONTRACT.operations.map(({ method, path }) => `${method} /api/v1${path}`);
  expect(declared.sort()).toEqual([...served, ...own].sort());
  expect(PREFIXES.filter((prefix) => prefix !== '/api/v1').map((alias) => [alias, '/api/v1'])).toEqual([
    ...Object.entries(config.aliases),
  ]);
});
