/** Keys that are put through every call of the admin API and every way for it to fail, and must be found nowhere after. */
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createApiKey } from '../../src/formats/api-key.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { ADMIN_TOKEN, STORES, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';
import { readStoreContent } from '../support/store-content.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

describe.each(STORES)('over $name', (kind) => {
  let store: TestStore;
  let backend: Backend;
  let gateway: TestGateway;
  /** What the gateway said to anybody. */
  let said: string[];
  let statuses: Set<number>;

  beforeEach(async () => {
    store = await kind.start();
    backend = await startBackend();
    gateway = await startTestGateway({
      storeUrl: store.url,
      upstreamUrl: backend.url,
      config: { logging: { level: 'trace' }, auth: { key_headers: ['Authorization', 'X-API-Key'] } },
    });
    said = [];
    statuses = new Set();
  });

  afterEach(async () => {
    await gateway.close();
    await backend.close();
    await store.close();
  });

  async function call(method: string, path: string, body?: unknown, token = ADMIN_TOKEN) {
    const res = await fetch(gateway.admin + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await res.text();
    said.push(JSON.stringify([...res.headers]), text);
    statuses.add(res.status);
    return { status: res.status, body: text === '' ? undefined : JSON.parse(text) };
  }

  async function send(
    key: string,
    headers: Record<string, string> = { authorization: `Bearer ${key}` },
  ): Promise<number> {
    const res = await fetch(`${gateway.public}/v1/conversations`, { headers });
    said.push(JSON.stringify([...res.headers]), await res.text());
    return res.status;
  }

  /** Every call, with the key wherever a caller could put it. */
  async function putThroughEverything(key: string): Promise<void> {
    const inPath = encodeURIComponent(key);
    const hash = sha256(key);
    for (const id of ['acme', 'other']) await call('POST', '/admin/v1/customers', { id, plan: 'starter' });
    const keys = '/admin/v1/customers/acme/keys';
    const { body: imported } = await call('POST', keys, { value: key, name: 'marked' });
    const own = `/admin/v1/keys/${imported.id}`;
    expect(await send(key)).toBe(200);

    for (const customer of ['acme', 'other']) {
      for (const again of [{ value: key }, { sha256: hash }]) {
        expect((await call('POST', `/admin/v1/customers/${customer}/keys`, again)).status).toBe(409);
      }
    }
    const bodies: unknown[] = [
      { value: `${key}\n` },
      { value: [key] },
      { value: key, sha256: hash },
      { sha256: key },
      { sha256: `${hash}0` },
      { expires_at: key },
      { name: { [key]: hash } },
      { id: key },
      { id: `-${key}` },
      { plan: key },
      { id: 'x', plan: key },
      { requests_per_hour: key },
      { suspended: key },
      { grace_seconds: key },
      { [key]: key },
      { [hash]: hash },
      [key],
      JSON.stringify(key),
      `{"value":"${key}"`,
      `${key}`,
    ];
    for (const body of bodies) {
      await call('POST', '/admin/v1/customers', body);
      await call('PATCH', '/admin/v1/customers/acme', body);
      await call('POST', `/admin/v1/customers/${inPath}/keys`, body);
      await call('PATCH', own, body);
      await call('POST', `${own}/rotate`, { grace_seconds: 0.5, ...(typeof body === 'object' ? body : {}) });
      await call('POST', '/admin/v1/customers/acme/keys', {
        expires_at: 'never',
        ...(typeof body === 'object' ? body : {}),
      });
    }
    for (const path of [inPath, hash, `${inPath}/usage`, `${inPath}/explain`, `${inPath}/keys`, `${inPath}%ff`]) {
      for (const method of ['GET', 'PATCH', 'DELETE', 'POST']) await call(method, `/admin/v1/customers/${path}`);
    }
    for (const path of [inPath, hash, `${inPath}/rotate`, `${hash}/rotate`, `${inPath}%ff`]) {
      for (const method of ['GET', 'PATCH', 'DELETE', 'POST']) await call(method, `/admin/v1/keys/${path}`);
    }
    const lists = ['/admin/v1/customers', '/admin/v1/keys', '/admin/v1/audit', keys];
    for (const list of [...lists, '/admin/v1/config', '/status']) {
      for (const query of [
        '',
        `?${inPath}`,
        `?${inPath}=1`,
        `?cursor=${inPath}`,
        `?limit=${inPath}`,
        `?unused_days=${inPath}`,
      ]) {
        await call('GET', list + query);
      }
      await call('GET', list, undefined, key);
      await call('PUT', list, { value: key });
      await call('GET', `${list}/${inPath}`);
    }

    await call('GET', own);
    const { body: rotated } = await call('POST', `${own}/rotate`, { grace_seconds: 60 });
    // The answer that shows the new key is the one that may.
    said.splice(
      said.findIndex((text) => text.includes(rotated.key)),
      1,
    );
    expect([await send(key), await send(rotated.key)]).toEqual([200, 200]);
    await call('POST', `${own}/rotate`);
    await call('DELETE', own);
    await expect.poll(() => send(key)).toBe(401);
    await call('GET', keys);
    await expectFoundNowhere([key, rotated.key]);
  }

  /** Everything that can be read anywhere must be free of the keys, and nothing that was said may have their hashes. */
  async function expectFoundNowhere(keys: readonly string[]): Promise<void> {
    expect((await call('GET', '/admin/v1/audit?limit=1000')).body.items.length).toBeGreaterThan(3);
    for (const path of ['/metrics', '/readyz']) said.push(await (await fetch(gateway.ops + path)).text());
    await call('DELETE', '/admin/v1/customers/other');
    // Writes what was used last.
    await gateway.close();
    said.push(...gateway.logs.map((line) => JSON.stringify(line)));
    expect(gateway.logs.some(({ msg }) => msg === 'key imported')).toBe(true);
    expect(statuses).toEqual(new Set([200, 201, 204, 400, 401, 404, 405, 409, 422]));
    for (const key of keys) {
      // The last one is the key without its end, as a cut text would have it.
      const shapes = [key, encodeURIComponent(key), Buffer.from(key).toString('base64'), key.slice(0, -8)];
      expect(said.filter((text) => [...shapes, sha256(key)].some((shape) => text.includes(shape)))).toEqual([]);
      const stored = await readStoreContent(store.url);
      // The hash is what it is stored under: so this is where the key would be.
      expect(stored.some((text) => text.includes(sha256(key)))).toBe(true);
      expect(stored.filter((text) => shapes.some((shape) => text.includes(shape)))).toEqual([]);
    }
    expect(JSON.stringify(backend.seen)).not.toContain(keys[0]);
  }

  test('a generated key is in no log, metric, response or stored value', async () => {
    const key = createApiKey();
    // It can be told wherever it stands.
    await call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter' });
    for (const body of [{ name: `for ${key}` }, { name: key }])
      await call('POST', '/admin/v1/customers/acme/keys', body);
    await call('POST', '/admin/v1/customers', { id: `x-${key}`, plan: 'starter' });
    await putThroughEverything(key);
  });

  test('an imported key is in no log, metric, response or stored value', async () => {
    await putThroughEverything('marked.key-of/somebody+else_9c41==');
  });

  test.each([createApiKey(), 'marked.key-of/somebody+else_9c41=='])(
    'a key that is sent in any header, rightly or wrongly, is in no log, metric, response or request to the backend: %#',
    async (key) => {
      await call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter' });
      await call('POST', '/admin/v1/customers/acme/keys', { value: key });
      const spellings = { 'X-API-Key': key, x_api_key: key, 'x.api.key': key };
      expect(await send(key, { 'x-api-key': key })).toBe(200);
      expect(await send(key, { ...spellings, connection: 'x-api-key', 'x-request-id': key })).toBe(200);
      expect(await send(key, { ...spellings, authorization: `Bearer ${key}` })).toBe(400);
      expect(await send(key, { 'x-api-key': `${key},${key}` })).toBe(400);
      expect(await send(key, { 'x-api-key': `Bearer ${key}` })).toBe(400);
      expect(await send(key, { 'x-api-key': `x${key}` })).toBe(401);
      expect(await send(key, { x_api_key: key, 'x-request-id': key })).toBe(401);
      expect(await send(key, { authorization: key, 'x-request-id': `a-${key}` })).toBe(401);
      said.push(await (await fetch(`${gateway.ops}/metrics`)).text(), JSON.stringify(backend.seen));
      await gateway.close();
      said.push(...gateway.logs.map((line) => JSON.stringify(line)), ...(await readStoreContent(store.url)));
      expect(backend.seen).toHaveLength(2);
      for (const shape of [key, encodeURIComponent(key), key.slice(0, -8)]) {
        expect(said.filter((text) => text.includes(shape))).toEqual([]);
      }
    },
  );

  test('a created key is in no log, metric or stored value, and only in the response that shows it', async () => {
    await call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter' });
    const { body } = await call('POST', '/admin/v1/customers/acme/keys', { name: 'new' });
    expect(said.filter((text) => text.includes(body.key))).toHaveLength(1);
    said.splice(
      said.findIndex((text) => text.includes(body.key)),
      1,
    );
    expect(await send(body.key)).toBe(200);
    await call('GET', `/admin/v1/keys/${body.id}`);
    await call('PATCH', `/admin/v1/keys/${body.id}`, { name: null });
    await call('DELETE', `/admin/v1/keys/${body.id}`);
    await gateway.close();
    said.push(...gateway.logs.map((line) => JSON.stringify(line)), ...(await readStoreContent(store.url)));
    expect(said.filter((text) => text.includes(body.key))).toEqual([]);
  });
});
