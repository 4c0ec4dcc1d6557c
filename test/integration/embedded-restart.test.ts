import { afterEach, beforeEach, expect, it } from 'vitest';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { EMBEDDED_STORE, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';

let store: TestStore;
let backend: Backend;

beforeEach(async () => {
  store = await EMBEDDED_STORE.start();
  backend = await startBackend();
});

afterEach(async () => {
  await backend.close();
  await store.close();
});

function openGateway(): Promise<TestGateway> {
  return startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url });
}

function read(gateway: TestGateway, key: string) {
  return fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) });
}

it('customers, keys, revocations and what is used of the quota outlive the gateway', async () => {
  const before = await openGateway();
  const key = await createCustomerWithKey(before, { id: 'acme', plan: 'enterprise', requests_per_hour: 5 });
  const { body: revoked } = await callAdmin(before, '/admin/v1/customers/acme/keys', { body: { name: 'old' } });
  await callAdmin(before, `/admin/v1/keys/${revoked.id}`, { method: 'DELETE' });
  for (let i = 0; i < 3; i++) expect((await read(before, key)).status).toBe(200);
  const customer = await callAdmin(before, '/admin/v1/customers/acme');
  const record = await callAdmin(before, `/admin/v1/keys/${revoked.id}`);
  await before.close();

  const after = await openGateway();
  expect(await callAdmin(after, '/admin/v1/customers/acme')).toEqual(customer);
  expect(await callAdmin(after, `/admin/v1/keys/${revoked.id}`)).toEqual(record);
  expect((await callAdmin(after, '/admin/v1/customers/acme/usage')).body).toMatchObject({ used: 3, remaining: 2 });
  expect((await read(after, revoked.key)).status).toBe(401);
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push((await read(after, key)).status);
  expect(statuses).toEqual([200, 200, 429]);
  await after.close();
});

it('a second gateway on the same file does not start and says why, and the first one continues', async () => {
  const gateway = await openGateway();
  const key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'starter' });
  const file = store.url.slice('sqlite:'.length);
  await expect(openGateway()).rejects.toThrow(
    `the store file ${file} is in use by another process: stop that one, or set another file in store.url`,
  );
  expect((await read(gateway, key)).status).toBe(200);
  await gateway.close();

  const next = await openGateway();
  expect((await read(next, key)).headers.get('x-ratelimit-remaining')).toBe('998');
  await next.close();
});
