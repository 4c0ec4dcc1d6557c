import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { failsChecksum, sha256Hex } from '../../../src/formats/api-key.ts';
import { NOW, overBothStores, type TestAdmin } from './support.ts';

overBothStores((start) => {
  let admin: TestAdmin;
  beforeEach(async () => {
    admin = await start();
    await admin.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  });
  afterEach(() => admin.close());

  const create = (body?: unknown) => admin.call('POST', '/admin/v1/customers/acme/keys', body);

  describe('creating a key', () => {
    it('shows the key, and stores it under its digest', async () => {
      const { status, headers, body } = await create({ name: 'ci', expires_at: '2027-01-31T00:00:00Z' });
      expect(status).toBe(201);
      expect(headers.get('location')).toBe(`/admin/v1/keys/${body.id}`);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(body).toEqual({
        id: expect.stringMatching(/^key_[0-9A-Za-z]{19}$/),
        key: expect.stringMatching(/^tg_[0-9A-Za-z]{49}$/),
        prefix: body.key.slice(0, 12),
        customer: 'acme',
        name: 'ci',
        created_at: NOW,
        expires_at: '2027-01-31T00:00:00.000Z',
        scopes: null,
        allowed_addresses: null,
        requests_per_hour: null,
      });
      expect(failsChecksum(body.key)).toBe(false);
      expect(await admin.records.findKey(sha256Hex(body.key))).toMatchObject({ id: body.id, customer: 'acme' });
    });

    it('needs no body, and gives a different key each time', async () => {
      const [bare, empty] = [await create(), await create({})];
      expect([bare.status, empty.status]).toEqual([201, 201]);
      expect(bare.body).toMatchObject({ name: null, expires_at: null });
      expect(bare.body.key).not.toBe(empty.body.key);
      expect(bare.body.id).not.toBe(empty.body.id);
    });

    it('is 404 for an unknown customer', async () => {
      expect((await admin.call('POST', '/admin/v1/customers/nobody/keys', {})).status).toBe(404);
    });

    it.each([
      ['an expiry in the past', { expires_at: '2026-03-01T11:59:59Z' }, 'expires_at: must be in the future'],
      ['an expiry of now', { expires_at: NOW }, 'expires_at: must be in the future'],
      ['an expiry in local time', { expires_at: '2030-01-01T00:00:00' }, 'expires_at: must be an ISO 8601 time in UTC'],
      ['an expiry with an offset', { expires_at: '2030-01-01T00:00:00+01:00' }, 'expires_at: must be an ISO 8601'],
      ['a day that does not exist', { expires_at: '2030-02-30T00:00:00Z' }, 'expires_at: must be an ISO 8601'],
      ['a date alone', { expires_at: '2030-01-01' }, 'expires_at: must be an ISO 8601'],
      ['seconds since the epoch', { expires_at: 1_900_000_000 }, 'expires_at: must be a string'],
      ['an empty name', { name: '' }, 'name: must not be empty'],
      ['a name of 201 characters', { name: 'a'.repeat(201) }, 'name: must have at most 200'],
      ['null for a body', null, 'the body: must be an object'],
      ['an unknown member', { scope: 'a' }, '"scope": unknown member'],
    ])('is 422 for %s', async (_what, body, detail) => {
      const refused = await create(body);
      expect(refused.status).toBe(422);
      expect(refused.body.detail).toContain(detail);
    });
  });

  describe('changing a key', () => {
    it.each([
      ['the name', { name: 'deploy' }, { name: 'deploy' }],
      ['the name, to none', { name: null }, { name: null }],
      ['the expiry', { expires_at: '2028-01-01T00:00:00Z' }, { expires_at: '2028-01-01T00:00:00.000Z' }],
      ['the expiry, to none', { expires_at: null }, { expires_at: null }],
      ['both', { name: 'x', expires_at: null }, { name: 'x', expires_at: null }],
      ['nothing without a member', {}, {}],
    ])('changes %s and nothing else', async (_what, body, changed) => {
      const { id } = (await create({ name: 'ci', expires_at: '2027-01-01T00:00:00Z' })).body;
      const before = (await admin.call('GET', `/admin/v1/keys/${id}`)).body;
      const answer = await admin.call('PATCH', `/admin/v1/keys/${id}`, body);
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual({ ...before, ...changed });
      expect((await admin.call('GET', `/admin/v1/keys/${id}`)).body).toEqual(answer.body);
    });

    it.each([
      ['an expiry that is over', { expires_at: NOW }, 'expires_at: must be in the future'],
      ['an empty name', { name: '' }, 'name: must not be empty'],
      ['another customer', { customer: 'other' }, '"customer": unknown member'],
      ['a value', { value: 'key-of-acme' }, '"value": unknown member'],
    ])('is 422 for %s, and changes nothing', async (_what, body, detail) => {
      const { id } = (await create()).body;
      const before = (await admin.call('GET', `/admin/v1/keys/${id}`)).body;
      const refused = await admin.call('PATCH', `/admin/v1/keys/${id}`, body);
      expect([refused.status, refused.body.code]).toEqual([422, 'unprocessable']);
      expect(refused.body.detail).toContain(detail);
      expect((await admin.call('GET', `/admin/v1/keys/${id}`)).body).toEqual(before);
    });
  });

  describe('a key', () => {
    it('can be read afterwards, without its value and its digest', async () => {
      const created = await create({ name: 'ci' });
      const { status, body } = await admin.call('GET', `/admin/v1/keys/${created.body.id}`);
      expect(status).toBe(200);
      const { key, ...metadata } = created.body;
      const others = {
        state: 'live',
        used: null,
        customer_name: null,
        revoked_at: null,
        replaced_by: null,
        last_used_at: null,
      };
      expect(body).toEqual({ ...metadata, ...others });
      expect(JSON.stringify(body)).not.toContain(key);
      expect(JSON.stringify(body)).not.toContain(sha256Hex(key));
    });

    it('says when it was last used', async () => {
      const { body } = await create();
      await admin.store.keyUses.noteUses([{ keyId: body.id, usedAtMs: Date.parse('2026-02-03T04:05:06Z') }]);
      const read = await admin.call('GET', `/admin/v1/keys/${body.id}`);
      expect(read.body.last_used_at).toBe('2026-02-03T04:05:06.000Z');
    });

    it('is revoked by DELETE, once and for all', async () => {
      const { body } = await create();
      const path = `/admin/v1/keys/${body.id}`;
      for (let time = 0; time < 2; time++) {
        const revoked = await admin.call('DELETE', path);
        expect(revoked.status).toBe(204);
        expect(revoked.body).toBeUndefined();
        admin.advance(1000);
      }
      expect((await admin.records.findKey(sha256Hex(body.key)))?.revokedAt).toBe(NOW);
      expect((await admin.call('GET', path)).body.revoked_at).toBe(NOW);
    });

    it.each(['key_unknown', '%00', '%ff', 'k'.repeat(300)])('that does not exist (%s) is 404', async (id) => {
      for (const method of ['GET', 'PATCH', 'DELETE']) {
        const missing = await admin.call(method, `/admin/v1/keys/${id}`);
        expect(missing.status).toBe(404);
        expect(missing.body.code).toBe('not_found');
      }
    });
  });

  it('no key gets into the log', async () => {
    const { body } = await create({ name: 'ci' });
    await admin.call('DELETE', `/admin/v1/keys/${body.id}`);
    const log = admin.logs.join('');
    expect(log).toContain(body.id);
    expect(log).not.toContain(body.key);
    expect(log).not.toContain(sha256Hex(body.key));
  });
});
