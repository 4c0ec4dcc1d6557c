/** Keys that may do less: scopes and allowed addresses, from the admin API to the refusal of a request. */
import { describe, expect, it } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import { startShared } from '../support/cleanup.ts';
import { STORES, type TestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { keyName, startRedisSystem } from '../support/redis-system.ts';
import { type SystemSettings, startSystem } from '../support/system.ts';

const CONFIG = {
  routes: [
    { path: '/api/v1/conversations', methods: ['GET'] },
    { path: '/api/v1/messages', methods: ['GET'], scope: 'messages:read' },
    { path: '/api/v1/messages/{id}', methods: ['GET', 'POST'], scope: 'messages:write' },
  ],
  listen: { trusted_proxies: ['127.0.0.1'] },
} as unknown as NonNullable<SystemSettings['config']>;
const PUBLIC = '203.0.113.7';

async function send(gateway: TestGateway, key: string, path: string, from?: string) {
  const headers = { ...bearer(key), ...(from && { 'x-forwarded-for': from }) };
  const response = await fetch(`${gateway.public}${path}`, { headers });
  const body = response.headers.get('content-type')?.includes('problem') ? ((await response.json()) as object) : {};
  return { status: response.status, ...('code' in body && { code: body.code }) };
}

const patch = (gateway: TestGateway, id: string, body: object) =>
  callAdmin(gateway, `/admin/v1/keys/${id}`, { method: 'PATCH', body });

const REFUSED_ADDRESS = { status: 403, code: 'address_not_allowed' };
const REFUSED_SCOPE = { status: 403, code: 'insufficient_scope' };

describe.each(STORES)('over $name', (store) => {
  const unchanged = startShared(() => startSystem({ store }));

  it('a key is restricted from its creation, through each change within a second, and its successor like it', async () => {
    const { gateway, backend } = await startSystem({ store, config: CONFIG });
    const restrictions = { scopes: ['messages:read'], allowed_addresses: [`${PUBLIC}/32`, '2001:db8::/32'] };
    const created = await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body: { name: 'x', ...restrictions } });
    expect(created).toMatchObject({ status: 201, body: restrictions });
    const { id, key } = created.body;
    expect((await callAdmin(gateway, `/admin/v1/keys/${id}`)).body).toMatchObject(restrictions);

    expect(await send(gateway, key, '/v1/messages', PUBLIC)).toEqual({ status: 200 });
    expect(await send(gateway, key, '/v1/messages', '2001:DB8::7')).toEqual({ status: 200 });
    expect(await send(gateway, key, '/v1/conversations', `9.9.9.9, ::ffff:${PUBLIC}`)).toEqual({ status: 200 });
    for (const from of ['203.0.113.8', '2001:db9::', undefined]) {
      // Cached from the first request on.
      for (const path of ['/v1/messages', '/v1/usage']) {
        expect(await send(gateway, key, path, from)).toEqual(REFUSED_ADDRESS);
      }
    }
    expect(await send(gateway, key, '/v1/messages/5', PUBLIC)).toEqual(REFUSED_SCOPE);
    expect(await send(gateway, key, '/v1/usage', PUBLIC)).toEqual({ status: 200 });
    expect(backend.seen).toHaveLength(3);
    expect((await callAdmin(gateway, '/admin/v1/customers/acme/usage')).body.used).toBe(3);

    const { body: successor } = await callAdmin(gateway, `/admin/v1/keys/${id}/rotate`, { body: {} });
    expect(successor).toMatchObject(restrictions);
    expect(await send(gateway, successor.key, '/v1/messages/5', PUBLIC)).toEqual(REFUSED_SCOPE);
    expect(await send(gateway, successor.key, '/v1/messages')).toEqual(REFUSED_ADDRESS);

    const wider = { scopes: ['messages:read', 'messages:write'], allowed_addresses: null };
    expect(await patch(gateway, id, wider)).toMatchObject({ status: 200, body: wider });
    await expect.poll(() => send(gateway, key, '/v1/messages/5'), { timeout: 10_000 }).toEqual({ status: 200 });
    await patch(gateway, id, { scopes: null });
    expect((await callAdmin(gateway, `/admin/v1/keys/${id}`)).body).toMatchObject({ scopes: null });
    const { body: audit } = await callAdmin(gateway, '/admin/v1/audit?action=key.update');
    expect(audit.items.map(({ details }: { details: object }) => details)).toEqual([
      { scopes: null },
      { scopes: 'messages:read messages:write', allowed_addresses: null },
    ]);
  });

  it('the refusals are counted by reason in metrics, history and the explanation, and are no use of the key', async () => {
    const { gateway } = await startSystem({ store, config: CONFIG });
    const body = { scopes: ['messages:read'], allowed_addresses: [PUBLIC] };
    const created = (await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body })).body;
    for (let i = 0; i < 2; i++) expect(await send(gateway, created.key, '/v1/messages')).toEqual(REFUSED_ADDRESS);
    expect(await send(gateway, created.key, '/v1/messages/5', PUBLIC)).toEqual(REFUSED_SCOPE);
    expect(await readMetric(gateway, 'tollgate_refusals_total')).toMatchObject({
      'problem="address_not_allowed",plan="starter"': 2,
      'problem="insufficient_scope",plan="starter"': 1,
    });
    const { body: explanation } = await callAdmin(gateway, '/admin/v1/customers/acme/explain');
    const refusals = explanation.instance.refusals.map(({ code, count }: Record<string, unknown>) => [code, count]);
    expect(Object.fromEntries(refusals)).toEqual({ address_not_allowed: 2, insufficient_scope: 1 });
    const history = async () => {
      const { points } = (await callAdmin(gateway, '/admin/v1/customers/acme/usage/history')).body;
      return points.findLast(({ refused }: { refused: number }) => refused > 0)?.refused_by_code;
    };
    await expect.poll(history).toEqual({ address_not_allowed: 2, insufficient_scope: 1 });
    expect((await callAdmin(gateway, `/admin/v1/keys/${created.id}`)).body.last_used_at).toBeNull();
  });

  it('an explanation says that the keys of a customer are restricted', async () => {
    const { gateway } = await startSystem({ store });
    const [{ id }] = (await callAdmin(gateway, '/admin/v1/customers/acme/keys')).body.items;
    const verdict = async () => (await callAdmin(gateway, '/admin/v1/customers/acme/explain')).body.verdict;
    expect(await verdict()).toBe('Its requests are admitted now.');
    await patch(gateway, id, { scopes: ['messages:read'] });
    expect(await verdict()).toBe(
      'Its requests are admitted now, as far as the scopes and allowed addresses of its keys permit.',
    );
  });

  it.each([
    ['no scope', { scopes: [] }, 'scopes: must not be empty: null allows everything'],
    ['no address', { allowed_addresses: [] }, 'allowed_addresses: must not be empty: null allows everything'],
    ['a scope with a space', { scopes: ['a b'] }, 'scopes.0: must be 1 to 128 visible ASCII characters'],
    ['a host name', { allowed_addresses: ['10.0.0.1', 'a.example'] }, 'allowed_addresses.1: must be an IP address'],
    ['51 addresses', { allowed_addresses: Array(51).fill('10.0.0.1') }, 'allowed_addresses: must have at most 50'],
    ['a text', { scopes: 'messages:read' }, 'scopes: must be an array'],
  ])('the admin API refuses %s, for a new key and for a change', async (_, body, detail) => {
    const { gateway } = unchanged();
    const [{ id }] = (await callAdmin(gateway, '/admin/v1/customers/acme/keys')).body.items;
    const refused = { status: 422, body: { detail: expect.stringContaining(detail) } };
    expect(await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body })).toMatchObject(refused);
    expect(await patch(gateway, id, body)).toMatchObject(refused);
  });
});

it('entries with the same paths share out the methods, each with its own scope', async () => {
  const routes = [
    { path: '/api/v1/messages/{id}', methods: ['GET'], scope: 'messages:read' },
    { path: '/api/v1/messages/{name}', methods: ['PUT'], scope: 'messages:write', max_body_bytes: 0 },
  ];
  const { gateway } = await startSystem({ config: { routes } as unknown as typeof CONFIG });
  const body = { scopes: ['messages:read'] };
  const reader = bearer((await callAdmin(gateway, '/admin/v1/customers/acme/keys', { body })).body.key);
  const url = `${gateway.public}/v1/messages/5`;
  const statusOf = async (method: string) => (await fetch(url, { method, headers: reader })).status;
  expect([await statusOf('GET'), await statusOf('HEAD'), await statusOf('PUT')]).toEqual([200, 200, 403]);
  const refused = await fetch(url, { method: 'DELETE', headers: reader });
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, PUT']);
});

describe('a dashboard that writes the fields badly', () => {
  const NAMED = 'a record in the store is damaged: repair it; "tollgate store check" lists all damaged records';

  it.each([
    ['scopes', ' ', 'unreadable_scopes', REFUSED_SCOPE],
    ['scopes', 'read\nwrite', 'unreadable_scopes', REFUSED_SCOPE],
    ['scopes', 'x'.repeat(1_000_000), 'unreadable_scopes', REFUSED_SCOPE],
    ['allowed_addresses', ' ', 'unreadable_addresses', REFUSED_ADDRESS],
    ['allowed_addresses', '["127.0.0.1"]', 'unreadable_addresses', REFUSED_ADDRESS],
    ['allowed_addresses', Array(51).fill('127.0.0.1').join(), 'unreadable_addresses', REFUSED_ADDRESS],
    ['allowed_addresses', '127.0.0.1,__proto__', 'unreadable_addresses', REFUSED_ADDRESS],
  ])(
    '%s %.20j: the key is refused on every route, and the operator is told: %s',
    async (field, value, fault, refused) => {
      const { redis, gateway, key } = await startRedisSystem();
      expect(await send(gateway, key, '/v1/conversations')).toEqual({ status: 200 });
      await redis.command('HSET', keyName(key), field, value);
      await expect.poll(() => send(gateway, key, '/v1/conversations'), { timeout: 10_000 }).toEqual(refused);
      expect(await send(gateway, key, '/v1/usage')).toEqual(refused);
      expect(gateway.logs.filter(({ msg }) => msg === NAMED)).toMatchObject([{ fault, key_id: `id-of-${key}` }]);
      expect(await readMetric(gateway, 'tollgate_damaged_records_total')).toMatchObject({
        [`record="key",fault="${fault}"`]: 1,
      });

      await redis.command('SET', `tollgate:key-id:id-of-${key}`, keyName(key).split(':').at(-1) ?? '');
      await redis.command('SADD', 'tollgate:customer-keys:{acme}', `id-of-${key}`);
      const { body } = await callAdmin(gateway, `/admin/v1/keys/id-of-${key}`);
      expect(body).toMatchObject({ [field]: [] });
      const { verdict } = (await callAdmin(gateway, '/admin/v1/customers/acme/explain')).body;
      expect(verdict).toContain('the scopes, allowed addresses or limits of its valid keys are unreadable');
      // A successor without them would be allowed everything.
      expect(await callAdmin(gateway, `/admin/v1/keys/id-of-${key}/rotate`, { body: {} })).toMatchObject({
        status: 409,
      });

      await redis.command('HSET', keyName(key), field, '');
      await expect.poll(() => send(gateway, key, '/v1/conversations'), { timeout: 10_000 }).toEqual({ status: 200 });
    },
  );

  it('an address counts as the connection has it while no proxy is trusted', async () => {
    const { redis, gateway, key } = await startRedisSystem();
    await redis.command('HSET', keyName(key), 'allowed_addresses', '::ffff:127.0.0.0/104');
    await expect
      .poll(() => send(gateway, key, '/v1/conversations', '9.9.9.9'), { timeout: 10_000 })
      .toEqual({ status: 200 });
    await redis.command('HSET', keyName(key), 'allowed_addresses', '9.9.9.9');
    await expect
      .poll(() => send(gateway, key, '/v1/conversations', '9.9.9.9'), { timeout: 10_000 })
      .toEqual(REFUSED_ADDRESS);
  });
});
