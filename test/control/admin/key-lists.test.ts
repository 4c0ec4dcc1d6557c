import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createApiKey, sha256Hex } from '../../../src/formats/api-key.ts';
import type { KeyRecord } from '../../../src/store/record-fields.ts';
import { createKeyWithCustomer } from '../../support/stored-key.ts';
import { NOW, overBothStores, type TestAdmin } from './support.ts';

const DAY_MS = 24 * 3600 * 1000;
const daysAgo = (days: number) => new Date(Date.parse(NOW) - days * DAY_MS);

overBothStores((start) => {
  let admin: TestAdmin;
  let written = 0;
  beforeEach(async () => {
    admin = await start();
    for (const id of ['acme', 'other']) await admin.records.createCustomer({ id, plan: 'starter', suspended: false });
  });
  afterEach(() => admin.close());

  /** A key as any program may have written it. */
  async function write(key: Pick<KeyRecord, 'id'> & Partial<KeyRecord>, lastUsed?: Date): Promise<void> {
    written += 1;
    await createKeyWithCustomer(admin.records, String(written).padStart(64, '0'), { customer: 'acme', ...key });
    if (lastUsed) await admin.store.keyUses.noteUses([{ keyId: key.id, usedAtMs: lastUsed.getTime() }]);
  }

  const idOf = ({ id }: Pick<KeyRecord, 'id'>) => id;
  const idsOf = async (path: string) => (await admin.list(path)).map(idOf);

  describe("a customer's keys", () => {
    it('are none at first', async () => {
      const { status, body } = await admin.call('GET', '/admin/v1/customers/acme/keys');
      expect([status, body]).toEqual([200, { items: [], next_cursor: null }]);
    });

    it('are listed as they are read alone, revoked and expired ones too, and without those of others', async () => {
      await write({ id: 'revoked', createdAt: daysAgo(3).toISOString(), revokedAt: NOW });
      await write(
        { id: 'expired', createdAt: daysAgo(2).toISOString(), expiresAt: daysAgo(1).toISOString() },
        daysAgo(1),
      );
      await write({ id: 'foreign', customer: 'other' });
      const { body } = await admin.call('POST', '/admin/v1/customers/acme/keys', { name: 'new' });
      const listed = await admin.list('/admin/v1/customers/acme/keys');
      expect(listed.map(({ id }) => id)).toEqual(['revoked', 'expired', body.id]);
      expect(listed.map(({ state }) => state)).toEqual(['revoked', 'expired', 'live']);
      for (const key of listed) expect((await admin.call('GET', `/admin/v1/keys/${key.id}`)).body).toEqual(key);
      expect(listed[1].last_used_at).toBe(daysAgo(1).toISOString());
      expect(JSON.stringify(listed)).not.toContain(body.key);
    });

    it('come oldest first within a page, those of unknown age before all others', async () => {
      const ages = [5, 1, 9, 3, 3, 7];
      for (const [i, age] of ages.entries()) await write({ id: `key-${i}`, createdAt: daysAgo(age).toISOString() });
      await write({ id: 'ageless' });
      await write({ id: 'with-offset', createdAt: '2026-02-25T14:00:00+02:00' }); // 4 days ago
      await write({ id: 'odd', createdAt: 'yesterday' });
      const oldestFirst = ['ageless', 'odd', 'key-2', 'key-5', 'key-0', 'with-offset', 'key-3', 'key-4', 'key-1'];
      for (const limit of [9, 100, 1000]) {
        expect(await idsOf(`/admin/v1/customers/acme/keys?limit=${limit}`)).toEqual(oldestFirst);
      }
      const page = (await admin.call('GET', '/admin/v1/customers/acme/keys?limit=4')).body.items.map(idOf);
      expect(page).toEqual(oldestFirst.filter((id) => page.includes(id)));
    });

    it('are all listed while others come and go between the pages', async () => {
      for (const age of [9, 7, 5, 3]) await write({ id: `key-${age}`, createdAt: daysAgo(age).toISOString() });
      const first = (await admin.call('GET', '/admin/v1/customers/acme/keys?limit=2')).body;
      const [gone, kept] = first.items.map(idOf);
      await admin.records.discardKey(gone);
      await write({ id: 'key-8', createdAt: daysAgo(8).toISOString() });
      await write({ id: 'key-1', createdAt: daysAgo(1).toISOString() });
      const rest = await idsOf(`/admin/v1/customers/acme/keys?cursor=${first.next_cursor}`);
      for (const age of [9, 7, 5, 3]) if (`key-${age}` !== gone) expect([kept, ...rest]).toContain(`key-${age}`);
    });

    it('of an unknown customer are 404, and an invalid query 422', async () => {
      expect((await admin.call('GET', '/admin/v1/customers/nobody/keys')).status).toBe(404);
      for (const query of ['limit=0', 'unused_days=3', 'cursor=xyz', 'cursor=', 'cursor=%00']) {
        const { status, body } = await admin.call('GET', `/admin/v1/customers/acme/keys?${query}`);
        expect([query, status, body.code]).toEqual([query, 422, 'unprocessable']);
      }
    });

    it('show times in UTC, whatever other programs wrote', async () => {
      await write({
        id: 'odd',
        createdAt: '2026-01-01T01:00:00+01:00',
        expiresAt: 'some day',
        revokedAt: '2026-01-01T00:00:00Z',
      });
      expect((await admin.call('GET', '/admin/v1/keys/odd')).body).toMatchObject({
        created_at: '2026-01-01T00:00:00.000Z',
        expires_at: 'some day',
        revoked_at: '2026-01-01T00:00:00.000Z',
      });
    });
  });

  describe('all keys', () => {
    it('are listed once each, as they are read alone, in pages of any size', async () => {
      const ids = Array.from({ length: 13 }, (_, i) => `key-${i}`);
      for (const [i, id] of ids.entries())
        await write({ id, customer: i % 2 ? 'acme' : 'other' }, i % 3 ? daysAgo(i) : undefined);
      for (const limit of [1, 5, 1000]) {
        expect((await idsOf(`/admin/v1/keys?limit=${limit}`)).sort()).toEqual([...ids].sort());
      }
      const [key] = await admin.list('/admin/v1/keys');
      expect((await admin.call('GET', `/admin/v1/keys/${key.id}`)).body).toEqual(key);
    });

    it('are none at first', async () => {
      expect((await admin.call('GET', '/admin/v1/keys')).body).toEqual({ items: [], next_cursor: null });
    });

    it('can be asked for those that expire soon: live ones, within the days', async () => {
      await write({ id: 'soon', expiresAt: daysAgo(-3).toISOString() });
      await write({ id: 'later', expiresAt: daysAgo(-9).toISOString() });
      await write({ id: 'distant', expiresAt: daysAgo(-8).toISOString() });
      await write({ id: 'past', expiresAt: daysAgo(1).toISOString() });
      await write({ id: 'revoked', expiresAt: daysAgo(-3).toISOString(), revokedAt: NOW });
      await write({ id: 'endless' });
      await write({ id: 'unreadable', expiresAt: 'tomorrow' });
      await write({ id: 'shortened', expiresAt: daysAgo(-9).toISOString() });
      await write({ id: 'extended', expiresAt: daysAgo(-3).toISOString() });
      await admin.call('PATCH', '/admin/v1/keys/shortened', { expires_at: daysAgo(-2).toISOString() });
      await admin.call('PATCH', '/admin/v1/keys/extended', { expires_at: null });
      await admin.call('POST', '/admin/v1/keys/later/rotate', { grace_seconds: 3600 });
      for (const limit of [1, 1000]) {
        const ids = await idsOf(`/admin/v1/keys?limit=${limit}&expiring_days=7`);
        expect(ids.toSorted()).toEqual(['later', 'shortened', 'soon']);
      }
    });

    it.each([
      ['expiring_days=0', 'expiring_days: must be an integer from 1'],
      ['unused_days=0', 'unused_days: must be an integer from 1'],
      ['unused_days=-1', 'unused_days: must be an integer from 1'],
      ['unused_days=1.5', 'unused_days: must be an integer from 1'],
      ['unused_days=', 'unused_days: must be an integer from 1'],
      ['unused_days=100000', 'unused_days: must be an integer from 1'],
      ['limit=1001', 'limit: must be'],
      ['unused=30', '"unused": unknown parameter'],
      ['cursor=%2e%2e', 'cursor: must be the next_cursor'],
    ])('are 422 with ?%s', async (query, detail) => {
      const { status, body } = await admin.call('GET', `/admin/v1/keys?${query}`);
      expect([status, body.code]).toEqual([422, 'unprocessable']);
      expect(body.detail).toContain(detail);
    });
  });

  describe('a key search', () => {
    const [generated, other] = [createApiKey(), createApiKey()];
    const find = async (query: string) => (await admin.call('GET', `/admin/v1/keys?${query}`)).body;

    beforeEach(async () => {
      for (const value of [generated, other]) {
        await admin.call('POST', '/admin/v1/customers/acme/keys', { value, name: 'ci' });
      }
    });

    it('is found by its SHA-256, as it is read alone, revoked too', async () => {
      const { items, next_cursor: next } = await find(`sha256=${sha256Hex(generated).toUpperCase()}`);
      expect([items.length, next]).toEqual([1, null]);
      expect(items[0]).toMatchObject({ customer: 'acme', name: 'ci', prefix: generated.slice(0, 12) });
      await admin.call('DELETE', `/admin/v1/keys/${items[0].id}`);
      const [revoked] = (await find(`sha256=${sha256Hex(generated)}`)).items;
      expect(revoked).toEqual((await admin.call('GET', `/admin/v1/keys/${items[0].id}`)).body);
      expect(revoked.revoked_at).toBe(NOW);
    });

    it('is nothing when there is no such key', async () => {
      expect(await find(`sha256=${'a'.repeat(64)}`)).toEqual({ items: [], next_cursor: null });
    });

    it('is found by its beginning, also where the record has less of it or more', async () => {
      await write({ id: 'short-prefix', prefix: 'old-4f' });
      const idsOfPrefix = async (prefix: string) => (await idsOf(`/admin/v1/keys?prefix=${prefix}&limit=2`)).sort();
      expect(await idsOfPrefix('old-4fG7hT9q')).toEqual(['short-prefix']);
      expect(await idsOfPrefix('old')).toEqual(['short-prefix']);
      expect(await idsOfPrefix(generated.slice(0, 12))).toHaveLength(1);
      expect(await idsOfPrefix('tg_')).toHaveLength(2);
      expect(await idsOfPrefix('none')).toEqual([]);
    });

    it('is found by parts of its id, name, prefix and customer, in any order and case, not by the customer alone', async () => {
      await admin.records.createCustomer({ id: 'org-77', name: 'Zenith Foods', plan: 'starter', suspended: false });
      await write({ id: 'key_Abc123', name: 'Billing, production', prefix: 'sk_live_9f', customer: 'org-77' });
      await write({ id: 'key_Xyz999', name: 'Billing', customer: 'acme' });
      for (const [search, ids] of [
        ['key_Abc123', ['key_Abc123']],
        ['aBC123', ['key_Abc123']],
        ['live_9F', ['key_Abc123']],
        ['billing', ['key_Abc123', 'key_Xyz999']],
        ['zenith+bill', ['key_Abc123']],
        ['PRODUCTION+org-7+foods', ['key_Abc123']],
        ['zenith', []],
        ['billing+none', []],
      ] as const) {
        for (const limit of [1, 1000]) {
          expect([search, (await idsOf(`/admin/v1/keys?limit=${limit}&search=${search}`)).sort()]).toEqual([
            search,
            ids,
          ]);
        }
      }
    });

    it('is 422 with more of it than may be sent, without repeating it', async () => {
      const { status, body } = await admin.call('GET', `/admin/v1/keys?prefix=${generated}`);
      expect([status, body.code]).toEqual([422, 'unprocessable']);
      expect(body.detail).not.toContain(generated.slice(12));
    });
  });

  describe('keys that were not used for 30 days', () => {
    const unused = () => idsOf('/admin/v1/keys?unused_days=30&limit=3');
    const old = { createdAt: daysAgo(400).toISOString() };

    it('are those whose last use is at least as long ago', async () => {
      await write({ id: 'used-30-days-ago', ...old }, daysAgo(30));
      await write({ id: 'used-just-later', ...old }, new Date(daysAgo(30).getTime() + 1));
      await write({ id: 'used-today', ...old }, daysAgo(0));
      expect(await unused()).toEqual(['used-30-days-ago']);
    });

    it('include never used keys that were created that long ago, or at an unknown time', async () => {
      await write({ id: 'created-30-days-ago', createdAt: daysAgo(30).toISOString() });
      await write({ id: 'created-29-days-ago', createdAt: daysAgo(29).toISOString() });
      await write({ id: 'ageless' });
      await write({ id: 'odd', createdAt: 'yesterday' });
      expect((await unused()).sort()).toEqual(['ageless', 'created-30-days-ago', 'odd']);
    });

    it('exclude revoked and expired keys, in any form that other programs write', async () => {
      await write({ id: 'revoked', ...old, revokedAt: NOW });
      await write({ id: 'expired', ...old, expiresAt: NOW });
      await write({ id: 'unreadable-expiry', ...old, expiresAt: 'some day' });
      await write({ id: 'expires-later', ...old, expiresAt: daysAgo(-1).toISOString() });
      expect(await unused()).toEqual(['expires-later']);
    });
  });
});
