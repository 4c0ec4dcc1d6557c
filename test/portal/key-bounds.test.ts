/** A customer restricts its keys in the portal, and never allows them more: neither by a change nor by another key. */
import { expect, it } from 'vitest';
import { boundsOfNewKey, wideningProblem } from '../../src/control/portal/key-bounds.ts';
import type { KeyRecord } from '../../src/store/record-fields.ts';
import { send } from '../console/support.ts';
import { callAdmin } from '../support/admin.ts';
import { openSession, overEachStore, type PortalGateway } from './support.ts';

const LIMITS = { scopes: ['read', 'write'], allowed_addresses: ['10.0.0.0/8', '2001:db8::1'] };

/** Routes with the scopes that keys of these customers have. */
const CONFIG = {
  routes: ['read', 'write', 'admin'].map((scope) => ({
    path: `/${scope}`,
    methods: ['GET'],
    scope,
  })) as unknown as Record<string, unknown>,
  aliases: {},
};

/** Returns a new customer with these keys, as the operator creates them, and calls to the portal. */
async function customerWith(gateway: PortalGateway, id: string, ...bodies: object[]) {
  const path = `/admin/v1/customers/${id}`;
  await callAdmin(gateway, '/admin/v1/customers', { body: { id, plan: 'starter' } });
  const keys: string[] = [];
  for (const body of bodies) keys.push((await callAdmin(gateway, `${path}/keys`, { body })).body.id);
  const session = await openSession(gateway, id, { user: 'eva' });
  const call = (method: string, at: string, body: object = {}) =>
    send(gateway.portal, method, `/portal/v1/keys${at}`, session, JSON.stringify(body));
  return {
    keys,
    call,
    newestChange: async () => (await callAdmin(gateway, `/admin/v1/audit?customer=${id}&limit=1`)).body.items[0],
  };
}

overEachStore(
  'a customer',
  (system) => {
    it('restricts a key, which had no restriction, and again; the audit names each change', async () => {
      const { keys, call, newestChange } = await customerWith(system().gateway, 'narrowing', {});
      expect((await call('PATCH', `/${keys[0]}`, LIMITS)).body).toMatchObject({ id: keys[0], ...LIMITS });
      const narrow = { scopes: ['read'], allowed_addresses: ['10.1.0.0/16'] };
      const changed = await call('PATCH', `/${keys[0]}`, narrow);
      expect(changed.status).toBe(200);
      expect(changed.body).toMatchObject(narrow);
      expect(await newestChange()).toMatchObject({
        action: 'key.update',
        actor: 'portal:narrowing',
        key_id: keys[0],
        details: { scopes: 'read', allowed_addresses: '10.1.0.0/16', user: 'eva' },
        before: { scopes: 'read write', allowed_addresses: '10.0.0.0/8 2001:db8::1' },
      });
      expect((await call('PATCH', `/${keys[0]}`, { name: 'ci' })).body).toMatchObject({ name: 'ci', ...narrow });
    });

    it.each([
      ['another scope', { scopes: ['read', 'admin'] }, 'scopes: must be some of read, write'],
      ['all scopes', { scopes: null }, 'scopes: must be some of read, write'],
      [
        'an address outside',
        { allowed_addresses: ['10.0.0.1', '192.0.2.1'] },
        'allowed_addresses: must be within 10.0.0.0/8, 2001:db8::1',
      ],
      [
        'a larger block',
        { allowed_addresses: ['10.0.0.0/7'] },
        'allowed_addresses: must be within 10.0.0.0/8, 2001:db8::1',
      ],
      ['all addresses', { allowed_addresses: null }, 'allowed_addresses: must be within 10.0.0.0/8, 2001:db8::1'],
      [
        'more of both',
        { scopes: ['x'], allowed_addresses: ['::/0'] },
        'scopes: must be some of read, write; allowed_addresses: must be within 10.0.0.0/8, 2001:db8::1',
      ],
      [
        'more of one and less of the other',
        { scopes: ['read'], allowed_addresses: null },
        'allowed_addresses: must be within 10.0.0.0/8, 2001:db8::1',
      ],
    ])('allows a key no more than before: %s', async (what, body, detail) => {
      const { keys, call } = await customerWith(system().gateway, `widening-${what.replaceAll(/[ ,]/g, '-')}`, LIMITS);
      const refused = await call('PATCH', `/${keys[0]}`, { name: 'changed', ...body });
      expect(refused.status).toBe(422);
      expect(refused.body).toMatchObject({ code: 'unprocessable', detail });
      expect((await call('GET', '')).body.items).toMatchObject([{ id: keys[0], name: null, ...LIMITS }]);
    });

    it('keeps the narrower one of two changes at the same time', async () => {
      const { keys, call } = await customerWith(system().gateway, 'racing', ...Array(15).fill(LIMITS));
      for (const id of keys) {
        const wide = { allowed_addresses: ['10.0.0.0/16', '10.1.0.0/16'] };
        const narrow = { allowed_addresses: ['10.0.0.0/16'] };
        const [narrowed] = await Promise.all([narrow, wide].map((body) => call('PATCH', `/${id}`, body)));
        expect(narrowed?.status).toBe(200);
      }
      const { items } = (await call('GET', '')).body;
      for (const key of items) expect(key.allowed_addresses).toEqual(['10.0.0.0/16']);
    });

    it('creates a key that may do no more than one of its keys in use, if the operator restricted each', async () => {
      const other = { scopes: ['admin'] };
      const { call, newestChange } = await customerWith(system().gateway, 'creating', LIMITS, other);
      const { code, detail } = (await call('POST', '')).body;
      expect(code).toBe('unprocessable');
      const most = /^A new key may do no more than one of your keys\. (.*) – or (.*)$/.exec(detail)?.slice(1);
      expect(most?.toSorted()).toEqual([
        'scopes: must be some of admin',
        'scopes: must be some of read, write; allowed_addresses: must be within 10.0.0.0/8, 2001:db8::1',
      ]);
      const attempts: [object, number][] = [
        [{ scopes: ['read'] }, 422],
        [{ allowed_addresses: ['10.0.0.1'] }, 422],
        [{ ...LIMITS, scopes: ['read', 'admin'] }, 422],
        [{ ...LIMITS, allowed_addresses: ['::/0'] }, 422],
        [{ scopes: ['admin'], allowed_addresses: ['192.0.2.1'] }, 201],
        [{ scopes: ['read'], allowed_addresses: ['10.0.0.1'] }, 201],
      ];
      for (const [body, status] of attempts) {
        expect((await call('POST', '', body)).status, JSON.stringify(body)).toBe(status);
      }
      expect(await newestChange()).toMatchObject({
        action: 'key.create',
        details: { scopes: 'read', allowed_addresses: '10.0.0.1', user: 'eva' },
      });
      expect((await call('GET', '')).body.items).toHaveLength(4);
    });

    it('creates any key if one of its keys in use is not restricted, or none was ever created', async () => {
      const mixed = await customerWith(system().gateway, 'mixed', LIMITS, {});
      expect((await mixed.call('POST', '')).status).toBe(201);
      const first = await customerWith(system().gateway, 'first');
      expect((await first.call('POST', '')).body).toMatchObject({ scopes: null, allowed_addresses: null });
    });

    it('creates no key without restrictions after it revoked the restricted ones, whatever it had before', async () => {
      const { gateway } = system();
      const { keys, call } = await customerWith(gateway, 'revoking', {}, LIMITS);
      const [free, restricted] = keys;
      await callAdmin(gateway, `/admin/v1/keys/${free}`, { method: 'DELETE' });
      const successor = (await call('POST', `/${restricted}/rotate`)).body.id;
      expect((await call('DELETE', `/${successor}`)).status).toBe(204);
      expect((await call('POST', '')).status).toBe(422);
      expect((await call('POST', '', { ...LIMITS, scopes: ['write'] })).status).toBe(201);
    });

    it('keeps the end that the operator set, through rotations and in new keys', async () => {
      const end = '2035-01-02T03:04:05.000Z';
      const { keys, call, newestChange } = await customerWith(system().gateway, 'on-trial', { expires_at: end });
      const rotated = await call('POST', `/${keys[0]}/rotate`, { grace_seconds: 3600 });
      expect(rotated.body).toMatchObject({ replaces: keys[0], expires_at: end });
      expect((await call('POST', '')).body).toMatchObject({ expires_at: end });
      expect(await newestChange()).toMatchObject({ action: 'key.create', details: { expires_at: end } });
      const later = await call('POST', '', { expires_at: '2035-01-02T03:04:06.000Z' });
      expect([later.status, later.body.detail]).toEqual([
        422,
        `expires_at: must be no later than ${end}, like your key.`,
      ]);
      const sooner = await call('POST', '', { expires_at: '2034-01-01T00:00:00.000Z' });
      expect(sooner.body).toMatchObject({ expires_at: '2034-01-01T00:00:00.000Z' });
      for (const { id } of (await call('GET', '')).body.items) await call('DELETE', `/${id}`);
      // Whichever ended last.
      expect((await call('POST', '')).body.expires_at).toMatch(/^203[45]-01-/);
    });

    it('creates keys without an end where one of its keys has none, and none after the last one has expired', async () => {
      const { gateway } = system();
      const soon = () => ({ expires_at: new Date(Date.now() + 5000).toISOString() });
      const expired = await customerWith(gateway, 'after-the-trial', soon());
      const mixed = await customerWith(gateway, 'half-a-trial', soon(), {});
      expect((await mixed.call('POST', '')).body).toMatchObject({ expires_at: null });
      const stateOf = async () => (await expired.call('GET', '')).body.items[0].state;
      await expect.poll(stateOf, { interval: 200 }).toBe('expired');
      const refused = await expired.call('POST', '');
      expect([refused.status, refused.body.code]).toEqual([409, 'conflict']);
      expect((await mixed.call('POST', '')).status).toBe(201);
    });

    it('gets the restrictions of a key that it rotates', async () => {
      const { keys, call } = await customerWith(system().gateway, 'rotating', LIMITS);
      expect((await call('POST', `/${keys[0]}/rotate`)).body).toMatchObject({ replaces: keys[0], ...LIMITS });
      expect((await call('POST', '')).status).toBe(422);
    });
  },
  CONFIG,
);

it('a new key is bounded by the keys in use, and without any by the one that ended last', () => {
  const [noon, one, two] = ['12', '13', '14'].map((hour) => `2026-03-01T${hour}:00:00Z`);
  const key = (id: string, times: object) => ({ id, customer: 'acme', ...times });
  const expired = key('expired', { expiresAt: noon });
  const revoked = key('revoked', { revokedAt: one, expiresAt: two });
  const rotated = key('rotated', { replacedBy: 'revoked', expiresAt: two });
  const live = [key('live', {}), key('other', { expiresAt: '2030-01-01T00:00:00Z' })];
  const idsOf = (...keys: KeyRecord[]) => boundsOfNewKey(keys, Date.parse('2026-03-01T13:30:00Z')).map(({ id }) => id);
  expect(idsOf(expired, revoked, rotated, ...live)).toEqual(['live', 'other']);
  expect(idsOf(expired, revoked, rotated)).toEqual(['revoked']);
  expect(idsOf(expired, key('early', { revokedAt: '2026-03-01T11:00:00Z' }))).toEqual(['expired']);
  expect(idsOf(expired, key('odd', { revokedAt: 'yes' }))).toEqual(['expired']);
  expect(idsOf()).toEqual([]);
});

it('a key whose restrictions are unreadable is renamed only: it allows nothing', () => {
  expect(wideningProblem({ scopes: [] }, { name: 'ci' })).toBeUndefined();
  for (const change of [{ scopes: ['read'] }, { scopes: null }]) {
    expect(wideningProblem({ scopes: [] }, change)?.problem.detail).toBe(
      'scopes: unreadable in the record of the key; contact support',
    );
  }
});
