/** Finding customers, keys and usages among many. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bearer, callAdmin, createCustomerWithKey } from '../support/admin.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { EMBEDDED_STORE, startTestGateway, type TestGateway, type TestStore } from '../support/gateway.ts';
import { startServer, tollgateFor, tollgateHereFor } from './support.ts';

let store: TestStore;
let backend: Backend;
let gateway: TestGateway;
let tollgate: ReturnType<typeof tollgateHereFor>;
let key: string;

beforeEach(async () => {
  store = await EMBEDDED_STORE.start();
  backend = await startBackend((_req, res) => res.end('{}'));
  gateway = await startTestGateway({ storeUrl: store.url, upstreamUrl: backend.url });
  tollgate = tollgateHereFor(gateway);
  key = await createCustomerWithKey(gateway, { id: 'acme', plan: 'enterprise', requests_per_hour: 2 });
  await createCustomerWithKey(gateway, { id: 'globex', plan: 'starter' });
  await callAdmin(gateway, '/admin/v1/customers/globex', { method: 'PATCH', body: { suspended: true } });
});

afterEach(async () => {
  await gateway.close();
  await backend.close();
  await store.close();
});

describe('customers list', () => {
  it.each([
    [['--plan', 'starter'], ['globex']],
    [['--suspended'], ['globex']],
    [['--no-suspended'], ['acme']],
    [['--id-prefix', 'ac'], ['acme']],
    [['--id-prefix', 'ac', '--suspended'], []],
    [['--search', 'GLO'], ['globex']],
    [[], ['acme', 'globex']],
  ])('%j', async (options, ids) => {
    const { items } = JSON.parse((await tollgate('customers', 'list', '--json', ...options)).stdout);
    expect(items.map(({ id }: { id: string }) => id)).toEqual(ids);
  });
});

it('usage list: what each customer used of its limit, highest use first', async () => {
  const busiest = await createCustomerWithKey(gateway, { id: 'zeta', plan: 'starter' });
  for (const each of [key, busiest, busiest]) {
    await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(each) });
  }
  const { stdout } = await tollgate('usage', 'list');
  expect(stdout).toMatch(
    /^CUSTOMER +PLAN +USED +PER HOUR +PERCENT +DAY OR MONTH\nzeta +starter +2 +1000 +0\nacme +enterprise +1 +2 +50\nglobex +starter +0 +1000 +0\n$/,
  );
  const { items } = JSON.parse((await tollgate('usage', 'list', '--json')).stdout);
  expect(items.map(({ customer }: { customer: string }) => customer)).toEqual(['zeta', 'acme', 'globex']);
  expect(items).toEqual(expect.arrayContaining((await callAdmin(gateway, '/admin/v1/usage')).body.items));
});

it('usage list: sorts over all pages', async () => {
  const { items } = (await callAdmin(gateway, '/admin/v1/usage')).body;
  const pageOf = (customer: string, used: number, next_cursor: string | null) =>
    JSON.stringify({ items: [{ ...items[0], customer, used }], next_cursor });
  const admin = await startServer(({ url }, res) =>
    res.end(url?.includes('cursor=2') ? pageOf('second', 9, null) : pageOf('first', 1, '2')),
  );
  const { stdout } = await tollgateHereFor({ admin })('usage', 'list');
  expect(stdout).toMatch(/\nsecond .*\nfirst /);
});

describe('keys find', () => {
  it('by the value on standard input, which is nowhere in the request or the output', async () => {
    const { status, stdout } = await tollgateFor(gateway)(['keys', 'find'], { input: `${key}\n` });
    expect(status).toBe(0);
    expect(stdout).toMatch(/\nkey_\w+ +acme +live +tg_/);
    expect(stdout).not.toContain(key);
    expect(JSON.stringify(gateway.logs)).not.toContain(key);
  });

  it('of what cannot be a key is wrong usage', async () => {
    const { status, stderr } = await tollgateFor(gateway)(['keys', 'find'], { input: `${key} and more` });
    expect(status).toBe(2);
    expect(stderr).toMatch(/must have one API key/);
    expect(stderr).not.toContain(key);
  });

  it('by its beginning', async () => {
    const { stdout } = await tollgate('keys', 'find', '--prefix', key.slice(0, 10), '--json');
    expect(JSON.parse(stdout).items).toMatchObject([{ customer: 'acme' }]);
    const none = await tollgate('keys', 'find', '--prefix', 'nothing');
    expect(none).toEqual({ status: 1, stdout: '', stderr: 'tollgate: no key matches\n' });
  });

  it('sends no more than 12 characters of a key', async () => {
    const { status, stderr } = await tollgate('keys', 'find', '--prefix', key);
    expect(status).toBe(2);
    expect(stderr).toMatch(/at most 12 characters/);
    expect(stderr).not.toContain(key.slice(12));
  });
});
