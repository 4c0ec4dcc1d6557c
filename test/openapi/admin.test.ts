/** docs/openapi/admin.yaml is what the admin listener does: nothing is missing there, and nothing is made up. */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Router } from 'express';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createAdminApp } from '../../src/control/admin/admin-app.ts';
import type { AdminDependencies } from '../../src/control/admin/dependencies.ts';
import { createJwtVerifier } from '../../src/control/admin/jwt.ts';
import { KeySetUnavailableError } from '../../src/control/admin/remote-key-set.ts';
import type { ReloadOutcome } from '../../src/control/reload/reloader.ts';
import { newNotice } from '../../src/customers/notices/notice.ts';
import { createApiKey, sha256Hex } from '../../src/formats/api-key.ts';
import { isSecurityHeader } from '../../src/http/problems/security-headers.ts';
import { PROBLEMS } from '../../src/http/problems/table.ts';
import { StoreUnavailableError } from '../../src/store/errors.ts';
import { AUDIENCE, claimsAt, createIssuerKey, ISSUER, sign, startIssuer } from '../control/admin/issuer.ts';
import { CONFIG_TEXT, NOW, startAdmin, type TestAdmin, TOKEN } from '../control/admin/support.ts';
import { ADMIN_TOKEN, REDIS_STORE } from '../support/gateway.ts';
import { createKeyWithCustomer } from '../support/stored-key.ts';
import { startSystem } from '../support/system.ts';
import { codeOf, type Operation, type Received, readContract, receive } from './contract.ts';

/** Fields of the connection and the content, which every answer may have. */
const FRAMING = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding'];
const CONTRACT = readContract('admin.yaml', (header) => !FRAMING.includes(header) && !isSecurityHeader(header));
const PATHS = [...new Set(CONTRACT.operations.map(({ path }) => path))];
const HEADS = CONTRACT.operations.filter(({ method }) => method === 'HEAD');
/** Answered from memory. */
const WITHOUT_STORE = ['/admin/v1/usage/refused', '/status', '/admin/v1/config', '/admin/v1/config/file'];
const KEY = await createIssuerKey('key-1', 'EdDSA');
const PORTAL = { host: '127.0.0.1', port: 0, public_url: 'https://keys.example.com' };
const IN_A_YEAR = new Date(systemClock.nowMs() + 365 * 24 * 3600 * 1000).toISOString();

interface Given {
  /** What stands for {id} and {key_id}, in this order. */
  readonly names?: readonly string[];
  readonly query?: string;
  /** Text is sent as it is. */
  readonly body?: unknown;
  readonly type?: string;
}

/** Calls of the operations by what the file says of them, each answer held against it. */
class Session {
  readonly origin: string;
  readonly #token: string | undefined;
  /** Operations with the statuses that were received, and each `code`. */
  readonly received: Set<string>;

  /** Without a token: as a stranger. */
  constructor(origin: string, token: string | undefined, received = new Set<string>()) {
    this.origin = origin;
    this.#token = token;
    this.received = received;
  }

  async call(method: string, path: string, { names = [], query = '', body, type = 'application/json' }: Given = {}) {
    const operation = CONTRACT.operation(method, path);
    const left = [...names];
    const target = path.replace(/\{\w+\}/g, () => encodeURIComponent(left.shift() ?? 'none')) + query;
    const answer = await this.send(method, target, body, type);
    expect(CONTRACT.faultsOf(operation, answer), `${method} ${target}`).toEqual([]);
    const status = operation.statuses.includes(String(answer.status)) ? answer.status : 'default';
    this.received.add(`${method} ${path} ${status}`);
    const code = codeOf(answer);
    if (code !== undefined) this.received.add(code);
    const isLines = /csv|ndjson/.test(answer.headers.get('content-type') ?? '');
    return { status: answer.status, body: isLines || answer.text === '' ? undefined : JSON.parse(answer.text) };
  }

  send(method: string, target: string, body?: unknown, type = 'application/json'): Promise<Received> {
    const answering = fetch(this.origin + target, {
      method,
      headers: {
        ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
        ...(body !== undefined && { 'content-type': type }),
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return receive(answering);
  }

  /** Every operation that has this status is to answer with it. */
  async expectOfAll(
    status: number,
    given: (operation: Operation) => Given,
    operations: readonly Operation[] = operationsWith(status),
  ) {
    for (const operation of operations) {
      const answer = await this.call(operation.method, operation.path, given(operation));
      expect([operation.method, operation.path, answer.status]).toEqual([operation.method, operation.path, status]);
    }
  }
}

/** HEAD is answered as GET is, and its refusals are not told apart in the file. */
function operationsWith(status: number): Operation[] {
  return CONTRACT.operations.filter(({ statuses }) => statuses.includes(String(status)));
}

const nameFor = (path: string) => (path.includes('{key_id}') ? 'key_1' : 'acme');

/** What an operation takes. */
function suitable({ method, path }: Operation): Given {
  const names = [nameFor(path)];
  if (method === 'GET' || method === 'DELETE') return { names };
  if (path === PREVIEW) return { body: CONFIG_TEXT, type: 'application/yaml' };
  if (path.endsWith('/customers')) return { names, body: { id: 'new', plan: 'starter' } };
  if (path.endsWith('/maintenance')) return { body: { mode: 'off' } };
  if (path.includes('/portal-')) return { names, body: { scopes: ['usage:read'] } };
  return { names, body: method === 'PATCH' ? { name: 'new' } : {} };
}

const PREVIEW = '/admin/v1/config/preview';
const RELOAD = '/admin/v1/config/reload';

/** What it does not take; a customer without a limit where there is nothing else to do wrong. */
function unsuitable({ method, path }: Operation): Given {
  if (method === 'GET' || path.endsWith('/usage')) return { names: ['limitless'], query: '?nonsense=1' };
  if (path === PREVIEW) return { body: 'nonsense: 1', type: 'text/yaml' };
  return { names: [nameFor(path)], body: { nonsense: 1 } };
}

/** Each call with what it is for, and each conflict. */
async function useEverything(session: Session): Promise<void> {
  const acme = { names: ['acme'] };
  const at = '/admin/v1';
  await session.call('GET', '/status');
  await session.call('GET', `${at}/config`);
  await session.call('GET', `${at}/config/file`);
  expect((await session.call('POST', RELOAD)).body).toMatchObject({ result: 'unchanged' });
  const maintenance = { mode: 'read_only', routes: ['/api/v1/conversations'], until: IN_A_YEAR, message: 'New disks.' };
  await session.call('PUT', `${at}/maintenance`, { body: maintenance });
  await session.call('GET', `${at}/maintenance`);
  await session.call('GET', `${at}/routes/deprecated/customers`);
  const preview = { body: CONFIG_TEXT, type: 'application/yaml' };
  const previews = await Promise.all([session.call('POST', PREVIEW, preview), session.call('POST', PREVIEW, preview)]);
  expect(previews.map(({ body }) => body.reload ?? body.code).toSorted()).toEqual(['overloaded', 'restart_required']);
  await session.call('GET', '/status');
  const enterprise = { id: 'big', name: 'Big, Inc.', plan: 'enterprise', requests_per_hour: 50_000 };
  await session.call('POST', `${at}/customers`, { body: enterprise });
  expect((await session.call('POST', `${at}/customers`, { body: enterprise })).status).toBe(409);
  await session.call('GET', `${at}/customers`, { query: '?limit=1' });
  await session.call('GET', `${at}/customers/{id}`, acme);
  await session.call('PATCH', `${at}/customers/{id}`, { ...acme, body: { name: 'Acme', suspended: true } });
  await session.call('PATCH', `${at}/customers/{id}`, { ...acme, body: { name: null, suspended: false } });
  const notified = { notify_url: 'https://hooks.example/tollgate' };
  await session.call('PATCH', `${at}/customers/{id}`, { ...acme, body: notified });
  await session.call('POST', `${at}/customers/{id}/notify-secret`, acme);
  await session.call('POST', `${at}/customers/{id}/notify-secret`, acme);
  for (const what of ['sessions', 'tokens']) {
    const scopes = ['usage:read', 'keys:write'];
    const return_url = 'http://localhost:3000/account#keys';
    const body = { scopes, user: 'Eva', return_url, ttl_seconds: 86_400 };
    expect((await session.call('POST', `${at}/customers/{id}/portal-${what}`, { ...acme, body })).status).toBe(201);
  }
  await session.call('DELETE', `${at}/customers/{id}/portal-sessions`, acme);
  await session.call('GET', `${at}/customers/{id}/usage`, acme);
  await session.call('DELETE', `${at}/customers/{id}/usage`, acme);
  await session.call('GET', `${at}/customers/{id}/usage/history`, { ...acme, query: '?step=day' });
  await session.call('GET', `${at}/usage/history`);
  await session.call('GET', `${at}/usage/near`, { query: '?above=50' });
  for (const format of ['csv', 'jsonl']) {
    await session.call('GET', `${at}/usage/export`, { query: `?format=${format}&limit=1` });
    await session.call('GET', `${at}/usage/periods`, { query: `?format=${format}&limit=1` });
  }
  await session.call('GET', `${at}/usage/periods`, { query: '?limit=1' });
  await session.call('GET', `${at}/customers/{id}/explain`, acme);

  const keys = `${at}/customers/{id}/keys`;
  const { body: made } = await session.call('POST', keys, { ...acme, body: { name: 'CI', expires_at: IN_A_YEAR } });
  expect(made).toHaveProperty('key');
  for (const existing of [{ value: createApiKey() }, { value: 'short-one' }, { sha256: 'a'.repeat(64) }]) {
    const { body: imported } = await session.call('POST', keys, { ...acme, body: existing });
    expect(imported).not.toHaveProperty('key');
  }
  for (const customer of ['acme', 'big']) {
    const again = await session.call('POST', keys, { names: [customer], body: { sha256: 'a'.repeat(64) } });
    expect(again.status).toBe(409);
  }
  await session.call('GET', keys, acme);
  await session.call('GET', `${at}/keys`, { query: '?unused_days=1' });
  await session.call('GET', `${at}/keys`, { query: '?limit=2' });
  await session.call('GET', `${at}/keys`, { query: `?sha256=${'a'.repeat(64)}` });
  await session.call('GET', `${at}/usage`);

  const own = { names: [made.id] };
  await session.call('GET', `${at}/keys/{key_id}`, own);
  const usage = `${at}/keys/{key_id}/usage`;
  expect((await session.call('GET', usage, own)).body).toMatchObject({ limit: null });
  await session.call('PATCH', `${at}/keys/{key_id}`, { ...own, body: { requests_per_hour: 5 } });
  expect((await session.call('GET', usage, own)).body).toMatchObject({ limit: 5, used: 0 });
  expect((await session.call('DELETE', usage, own)).status).toBe(204);
  await session.call('PATCH', `${at}/keys/{key_id}`, { ...own, body: { name: null, expires_at: null } });
  const { body: rotated } = await session.call('POST', `${at}/keys/{key_id}/rotate`, { ...own, body: {} });
  expect(rotated).toMatchObject({ replaces: made.id });
  const endless = { ...own, body: { expires_at: null } };
  expect((await session.call('PATCH', `${at}/keys/{key_id}`, endless)).status).toBe(409);
  expect((await session.call('POST', `${at}/keys/{key_id}/rotate`, { ...own, body: {} })).status).toBe(409);
  await session.call('GET', `${at}/keys/{key_id}`, own);
  await session.call('DELETE', `${at}/keys/{key_id}`, own);
  await session.call('GET', `${at}/keys/{key_id}`, own);
  for (const { path } of HEADS) {
    const names = [path.includes('{key_id}') ? made.id : 'acme'];
    expect((await session.call('HEAD', path, { names })).status).toBe(path.includes('{request_id}') ? 404 : 200);
  }
  await session.call('GET', `${at}/notices`, { query: '?state=dead' });
  await session.call('DELETE', `${at}/customers/{id}`, { names: ['big'] });
  const { body: audit } = await session.call('GET', `${at}/audit`);
  expect(new Set(audit.items.map(({ action }: { action: string }) => action)).size).toBe(15);
}

it('the file has the paths and methods that the admin listener has, and no others', () => {
  const parts = { planNames: new Set<string>(), clock: systemClock } as unknown as AdminDependencies;
  // The console is described in docs/console.md.
  const served = routesOf(createAdminApp(parts).router.stack).filter((route) => !route.includes(' /console'));
  const nameless = CONTRACT.operations.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`);
  expect(nameless.sort()).toEqual(served.sort());
});

/** Of all routers in a stack. Express answers HEAD wherever there is GET. */
function routesOf(stack: Router['stack']): string[] {
  return stack.flatMap(({ route, handle }) => {
    if (route === undefined) return 'stack' in handle ? routesOf(handle.stack as Router['stack']) : [];
    const methods = route.stack.flatMap(({ method }) => (method === undefined ? [] : method.toUpperCase()));
    const withHead = methods.includes('GET') ? [...methods, 'HEAD'] : methods;
    return [...new Set(withHead)].map((method) => `${method} ${[route.path].flat().join(' ').replace(/:\w+/g, '{}')}`);
  });
}

it('the file has the codes that the admin listener can answer, and no others, each with its status', () => {
  const folders = ['admin', 'frame'].map((name) => new URL(`../../src/control/${name}/`, import.meta.url));
  const source = folders.flatMap((folder) =>
    readdirSync(folder).map((name) => readFileSync(new URL(name, folder), 'utf8')),
  );
  const answered = Object.keys(PROBLEMS).filter((code) => source.some((text) => text.includes(`'${code}'`)));
  expect([...CONTRACT.codes.values()].flatMap((codes) => [...codes]).sort()).toEqual(answered.sort());
  for (const [status, codes] of CONTRACT.codes) {
    for (const code of codes) expect(PROBLEMS).toHaveProperty([code, 'status'], status);
  }
});

it('every response is one that the file declares, and every declared one occurs', async () => {
  const issuer = await startIssuer(KEY);
  const admin = { jwt: { jwks_url: issuer.url, issuer: ISSUER, audience: AUDIENCE } };
  const { gateway } = await startSystem({ config: { admin, portal: PORTAL } });
  const unscopedAs = (sub: string) => sign(KEY, claimsAt(systemClock.nowMs(), { scope: 'other', sub }));
  const unscoped = await unscopedAs('stranger');
  const received = new Set<string>();
  const sessionOf = (token?: string) => new Session(gateway.admin ?? '', token, received);
  await useEverything(sessionOf(ADMIN_TOKEN));
  await askWrongly(sessionOf(ADMIN_TOKEN));
  // Further refusals of one subject are 429.
  const forbidden = operationsWith(403);
  for (let first = 0; first < forbidden.length; first += 25) {
    const session = sessionOf(await unscopedAs(`stranger-${first}`));
    await session.expectOfAll(403, suitable, forbidden.slice(first, first + 25));
  }
  await askAsStranger(sessionOf());
  await askOfBrokenParts(received, unscoped);

  const declared = CONTRACT.operations.flatMap(({ method, path, statuses }) =>
    statuses.map((status) => `${method} ${path} ${status}`),
  );
  expect(declared.filter((each) => !received.has(each))).toEqual([]);
  const codes = [...CONTRACT.codes.values()].flatMap((each) => [...each]);
  expect(codes.filter((code) => !received.has(code))).toEqual(['method_not_allowed', 'misdirected_request']);
});

it('every response is one that the file declares with records in Redis too', async () => {
  const { gateway } = await startSystem({ store: REDIS_STORE, config: { portal: PORTAL } });
  await useEverything(new Session(gateway.admin ?? '', ADMIN_TOKEN));
});

async function askWrongly(session: Session): Promise<void> {
  await session.expectOfAll(400, ({ path }) => ({ names: [nameFor(path)], body: '{' }));
  await session.expectOfAll(404, (operation) => ({
    ...suitable(operation),
    names: ['nobody'],
    ...(operation.path === '/admin/v1/notices/test' && { query: '?customer=nobody' }),
  }));
  await session.expectOfAll(413, ({ path }) =>
    path === PREVIEW ? { body: ' '.repeat(1_048_577), type: 'application/yaml' } : { body: ' '.repeat(65_537) },
  );
  await session.expectOfAll(415, () => ({ body: '{}', type: 'text/plain' }));
}

async function askAsStranger(session: Session): Promise<void> {
  // A listener of their own for each so many: further refusals of one address are 429.
  const operations = operationsWith(401);
  for (let first = 0; first < operations.length; first += 25) {
    const some = operations.slice(first, first + 25);
    await withParts({}, ({ origin }) =>
      new Session(origin, undefined, session.received).expectOfAll(401, suitable, some),
    );
  }
  await session.call('HEAD', '/status');
  const guesser = new Session(session.origin, 'no-such-token', session.received);
  for (let i = 0; i < 30; i++) await guesser.send('GET', '/status');
  await guesser.expectOfAll(429, suitable);
  for (const { path } of HEADS) await session.call('HEAD', path);
}

/** What needs a record, a store or an issuer that no gateway has by itself. */
async function askOfBrokenParts(received: Set<string>, jwtOfIssuer: string): Promise<void> {
  await withParts({ reload: reloadTo('invalid'), testNotices: async () => [] }, async ({ origin, records }) => {
    await records.createCustomer({ id: 'limitless', plan: 'gone', suspended: false });
    await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
    await createKeyWithCustomer(records, 'b'.repeat(64), { id: 'key_1', customer: 'acme', createdAt: NOW });
    await records.createKey('c'.repeat(64), { id: 'limitless', customer: 'acme', requestsPerHour: 'invalid' });
    const needsHistory = ({ path }: Operation) => /deprecated|request_id/.test(path);
    const others = operationsWith(422).filter((operation) => !needsHistory(operation));
    await new Session(origin, TOKEN, received).expectOfAll(422, unsuitable, others);
    await withParts({ history: undefined, failedRequestHours: undefined }, ({ origin }) =>
      new Session(origin, TOKEN, received).expectOfAll(422, suitable, operationsWith(422).filter(needsHistory)),
    );
  });

  await withParts({}, async ({ origin, store }) => {
    const notice = newNotice('quota.exceeded', Date.parse(NOW), { customer: 'acme' });
    const markUntilMs = Date.now() + 60_000;
    await store.notices.addOnce({ customer: 'acme', marks: ['any'], untilMs: markUntilMs, notice });
    const failed = { id: 'a.1', atMs: Date.now(), requestId: 'r', status: 401, method: 'GET', route: 'none' };
    await store.failedRequests.add([{ ...failed, source: 'gateway' }], { hours: 24, entries: 10 });
    const session = new Session(origin, TOKEN, received);
    for (const method of ['GET', 'HEAD']) {
      await session.call(method, '/admin/v1/requests');
      await session.call(method, '/admin/v1/requests/{request_id}', { names: ['r'] });
    }
    const { body } = await session.call('GET', '/admin/v1/notices');
    expect(body.items).toHaveLength(1);
    await session.call('POST', '/admin/v1/notices/test');
    const retried = await session.call('POST', '/admin/v1/notices/{id}/retry', { names: [notice.id] });
    expect(retried).toEqual({ status: 200, body: body.items[0] });
  });

  await withParts({ reload: reloadTo('plan_in_use') }, async ({ origin }) => {
    expect((await new Session(origin, TOKEN, received).call('POST', RELOAD)).status).toBe(409);
  });

  const fail = (error: Error) => () => {
    throw error;
  };
  const failing = (error: Error) => new Proxy({}, { get: () => fail(error) }) as never;
  const lost = failing(new StoreUnavailableError('connection lost'));
  const unavailable = {
    records: lost,
    portalSessions: lost,
    maintenance: lost,
    audit: lost,
    history: lost,
    notices: lost,
    failedRequests: lost,
    testNotices: fail(new StoreUnavailableError('connection lost')),
    reload: reloadTo('unverified'),
  };
  await withParts(unavailable, async ({ origin }) => {
    const session = new Session(origin, TOKEN, received);
    for (const operation of operationsWith(503)) {
      const { status } = await session.call(operation.method, operation.path, suitable(operation));
      expect(status, operation.path).toBe(WITHOUT_STORE.includes(operation.path) ? 200 : 503);
    }
  });

  const bug = new Error('a bug');
  const buggy = {
    records: failing(bug),
    portalSessions: failing(bug),
    maintenance: failing(bug),
    audit: failing(bug),
    history: failing(bug),
    notices: failing(bug),
    failedRequests: failing(bug),
    testNotices: fail(bug),
    refusals: fail(bug),
    status: fail(bug),
    runningConfig: fail(bug),
    runningFile: fail(bug),
    reload: reloadTo('failed'),
  };
  await withParts(buggy, ({ origin }) => new Session(origin, TOKEN, received).expectOfAll(500, suitable));

  const keyFor = () => Promise.reject(new KeySetUnavailableError('no keys'));
  const jwt = createJwtVerifier({ issuer: ISSUER, audience: AUDIENCE, clock: systemClock, keyFor });
  await withParts({ jwt }, ({ origin }) => new Session(origin, jwtOfIssuer, received).expectOfAll(503, suitable));
}

function reloadTo(result: ReloadOutcome['result']): AdminDependencies['reload'] {
  return async () => ({
    result,
    hash: 'abc123',
    changes: [],
    problems: ['gateway.yaml:1: what is wrong'],
    warnings: [],
  });
}

async function withParts(parts: Partial<AdminDependencies>, use: (admin: TestAdmin) => Promise<void>): Promise<void> {
  const admin = await startAdmin(parts);
  onTestFinished(() => admin.close());
  await use(admin);
}

describe('what is sent', () => {
  let admin: TestAdmin;
  let session: Session;
  beforeAll(async () => {
    admin = await startAdmin();
    session = new Session(admin.origin, TOKEN);
    await admin.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  });
  afterAll(() => admin.close());

  it.each(PATHS)('with a method that %s lacks in the file is 405, and Allow has those of the file', async (path) => {
    const methods = CONTRACT.operations.filter((each) => each.path === path).map(({ method }) => method);
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      if (methods.includes(method)) continue;
      const answer = await session.send(method, path.replaceAll(/\{\w+\}/g, 'any'));
      expect(CONTRACT.faultsOfResponse('MethodNotAllowed', answer), method).toEqual([]);
      expect(answer.headers.get('allow')?.split(', ').sort()).toEqual(methods.sort());
    }
  });

  it('by a foreign name gets the 421 that the file declares', async () => {
    const sent = request(`${admin.origin}/status`, { headers: { host: 'attacker.example' } }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const headers = new Headers(answer.headers as Record<string, string>);
    const received = { status: answer.statusCode ?? 0, headers, text: await text(answer) };
    expect(CONTRACT.faultsOfResponse('MisdirectedRequest', received)).toEqual([]);
  });

  it('to a path that the file lacks gets the 404 that the file declares', async () => {
    const answer = await session.send('GET', '/admin/v1/nothing');
    expect(CONTRACT.faultsOfResponse('NotFound', answer)).toEqual([]);
  });

  it.each([
    ['limit', ['1', '999', '1000', '0', '1001', '-1', '1.5', 'ten', '']],
    ['cursor', ['']],
    ['unused_days', ['1', '99999', '0', '100000', '-1', 'x']],
    ['days', ['1']],
    ['prefix', ['tg_1', 'tg_123456789', 'tg_1234567890', 'a b', 'a=', '']],
    ['sha256', ['ab'.repeat(32), 'AB'.repeat(32), 'ab'.repeat(31), 'zz'.repeat(32), '']],
    ['plan', ['starter', 'no-plan', '']],
    ['suspended', ['true', 'false', 'yes', '']],
    ['state', ['pending', 'dead', 'delivered', '']],
    ['id_prefix', ['a', 'a'.repeat(128), 'a'.repeat(129), '.a', 'a b', '']],
  ])('as the parameter "%s" is taken where and as the file says, and not otherwise', async (parameter, values) => {
    for (const operation of operationsWith(200).filter(({ queryParameters }) => queryParameters.length > 0)) {
      // HEAD is answered as GET is.
      for (const value of operation.method === 'HEAD' ? values.slice(-1) : values) {
        const given = { names: ['acme'], query: `?${parameter}=${value}` };
        const { status } = await session.call(operation.method, operation.path, given);
        const isTaken = CONTRACT.acceptsParameter(operation, parameter, value);
        expect(status, `${operation.path}?${parameter}=${value}`).toBe(isTaken ? 200 : 422);
      }
    }
  });

  const names = ['', 'x', 'x'.repeat(200), 'x'.repeat(201), null, 7].map((name) => ({ name }));
  const limits = [1, 0, 1.5, '1', null, 1e15].map((limit) => ({ requests_per_hour: limit }));
  const expiries = [
    ...[IN_A_YEAR, '2030-01-31T00:00:00Z', '2030-01-31', '2030-01-31T00:00:00', '2030-01-31T00:00:00+01:00', null],
  ].map((time) => ({ expires_at: time }));
  it.each<[string, string, readonly unknown[]]>([
    [
      'POST',
      '/admin/v1/customers',
      [
        ...[{}, [], null, 'text', { id: 'no-plan' }, { plan: 'starter' }],
        ...['NEW', 'a'.repeat(128), 'a'.repeat(129), '.a', 'a b', '', 7].map((id) => ({ id, plan: 'starter' })),
        ...[...names, ...limits, { suspended: false }].map((rest) => ({ id: 'NEW', plan: 'starter', ...rest })),
      ],
    ],
    [
      'PATCH',
      '/admin/v1/customers/{id}',
      [
        ...[{}, [], { id: 'b' }, { plan: 'starter' }, { plan: null }, { plan: '' }, ...names, ...limits],
        ...[true, false, null, 'true'].map((suspended) => ({ suspended })),
      ],
    ],
    [
      'POST',
      '/admin/v1/customers/{id}/keys',
      [
        ...[{}, [], { key: 'x' }, { value: 'NEW-value', sha256: 'c'.repeat(64) }, ...names, ...expiries],
        ...['NEW-value', 'short67', 'a'.repeat(513), 'with space', 'NEW-value==', 'a=====b', 7].map((value) => ({
          value,
        })),
        ...['d'.repeat(64), 'E'.repeat(64), 'd'.repeat(63), 'g'.repeat(64)].map((sha256) => ({ sha256 })),
      ],
    ],
    ['PATCH', '/admin/v1/keys/{key_id}', [{}, [], { customer: 'b' }, ...names, ...expiries]],
    [
      'POST',
      '/admin/v1/keys/{key_id}/rotate',
      [
        ...[{}, [], { name: 'x' }],
        ...[0, 1, 31_536_000, 31_536_001, -1, 1.5, '1', null].map((grace) => ({ grace_seconds: grace })),
      ],
    ],
  ])('as a body to %s %s is taken if the file allows it, and not otherwise', async (method, path, bodies) => {
    for (const [index, template] of bodies.entries()) {
      const id = `key_${method}${index}`;
      await createKeyWithCustomer(admin.records, sha256Hex(path + id), { id, customer: 'acme', createdAt: NOW });
      const text = JSON.stringify(template).replace('NEW', `new-${index}`);
      const { status } = await session.call(method, path, {
        names: [path.includes('key_id') ? id : 'acme'],
        body: text,
      });
      const isTaken = CONTRACT.acceptsBody(CONTRACT.operation(method, path), JSON.parse(text));
      expect(status === 200 || status === 201, text).toBe(isTaken);
      expect([200, 201, 422], text).toContain(status);
    }
  });
});
