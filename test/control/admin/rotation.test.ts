import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { failsChecksum, sha256Hex } from '../../../src/formats/api-key.ts';
import { StoreUnavailableError } from '../../../src/store/errors.ts';
import type { KeyRecord } from '../../../src/store/record-fields.ts';
import type { RecordStore } from '../../../src/store/records.ts';
import { createKeyWithCustomer } from '../../support/stored-key.ts';
import { type JsonAnswer, NOW, overBothStores, startAdmin, type TestAdmin } from './support.ts';

const DAY_MS = 24 * 3600 * 1000;
const later = (ms: number) => new Date(Date.parse(NOW) + ms).toISOString();

overBothStores((start) => {
  let admin: TestAdmin;
  beforeEach(async () => {
    admin = await start();
    await admin.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  });
  afterEach(() => admin.close());

  const create = async (body: unknown = {}): Promise<JsonAnswer> =>
    (await admin.call('POST', '/admin/v1/customers/acme/keys', body)).body;
  const rotate = (id: string, body?: unknown) => admin.call('POST', `/admin/v1/keys/${id}/rotate`, body);
  const read = async (id: string): Promise<JsonAnswer> => (await admin.call('GET', `/admin/v1/keys/${id}`)).body;
  const keyCount = async () => (await admin.list('/admin/v1/customers/acme/keys')).length;

  describe('rotating a key', () => {
    it('responds with a new key of the same customer and name, without expiry', async () => {
      const old = await create({ name: 'ci', expires_at: '2027-01-31T00:00:00Z' });
      const { status, headers, body } = await rotate(old.id);
      expect(status).toBe(201);
      expect(headers.get('location')).toBe(`/admin/v1/keys/${body.id}`);
      expect(body).toEqual({
        key: expect.stringMatching(/^tg_[0-9A-Za-z]{49}$/),
        id: expect.stringMatching(/^key_[0-9A-Za-z]{19}$/),
        prefix: body.key.slice(0, 12),
        customer: 'acme',
        name: 'ci',
        created_at: NOW,
        expires_at: null,
        scopes: null,
        allowed_addresses: null,
        requests_per_hour: null,
        replaces: old.id,
      });
      expect(Object.keys(body)[0]).toBe('key');
      expect(failsChecksum(body.key)).toBe(false);
      expect(body.key).not.toBe(old.key);
      expect(await admin.records.findKey(sha256Hex(body.key))).toMatchObject({ id: body.id, customer: 'acme' });
    });

    it.each([
      ['a day, unless it is said', undefined, DAY_MS],
      ['a day, unless it is said in the body', {}, DAY_MS],
      ['what is said', { grace_seconds: 60 }, 60_000],
      ['nothing', { grace_seconds: 0 }, 0],
      ['a year at most', { grace_seconds: 31_536_000 }, 365 * DAY_MS],
    ])('leaves the old one for %s', async (_what, body, graceMs) => {
      const old = await create();
      const rotated = await rotate(old.id, body);
      expect(rotated.status).toBe(201);
      expect(await read(old.id)).toMatchObject({
        state: graceMs === 0 ? 'expired' : 'rotated',
        expires_at: later(graceMs),
        replaced_by: rotated.body.id,
        revoked_at: null,
      });
    });

    it('never lets the old one live longer than it would have', async () => {
      const old = await create({ expires_at: later(60_000) });
      await rotate(old.id, { grace_seconds: 61 });
      expect((await read(old.id)).expires_at).toBe(later(60_000));
      const other = await create({ expires_at: later(60_000) });
      await rotate(other.id, { grace_seconds: 59 });
      expect((await read(other.id)).expires_at).toBe(later(59_000));
    });

    it('takes an expiry that another program wrote with an offset for what it is', async () => {
      await createKeyWithCustomer(admin.records, 'a'.repeat(64), {
        id: 'odd',
        customer: 'acme',
        expiresAt: '2026-03-01T14:01:00+02:00',
      });
      expect((await rotate('odd')).status).toBe(201);
      expect((await read('odd')).expires_at).toBe(later(60_000));
    });

    it('can be continued with the new one', async () => {
      const first = await create();
      const second = (await rotate(first.id)).body;
      const third = await rotate(second.id);
      expect(third.status).toBe(201);
      expect((await read(second.id)).replaced_by).toBe(third.body.id);
      expect((await read(first.id)).replaced_by).toBe(second.id);
    });

    it.each([
      ['is replaced already', (id: string) => rotate(id), /already replaced by key_\w+/],
      ['is revoked', (id: string) => admin.call('DELETE', `/admin/v1/keys/${id}`), /revoked/],
      ['has expired', async () => admin.advance(DAY_MS), /expired/],
    ])('that %s is 409 with the reason, and makes no new key', async (_state, prepare, reason) => {
      const { id } = await create({ expires_at: later(DAY_MS) });
      await prepare(id);
      const before = [await read(id), await keyCount()];
      const refused = await rotate(id);
      expect([refused.status, refused.body.code]).toEqual([409, 'conflict']);
      expect(refused.body.detail).toMatch(reason);
      expect([await read(id), await keyCount()]).toEqual(before);
    });

    it.each([
      ['a negative grace', { grace_seconds: -1 }, 'grace_seconds: must be at least 0'],
      ['a grace of more than a year', { grace_seconds: 31_536_001 }, 'grace_seconds: must be at most 31536000'],
      ['half a second', { grace_seconds: 0.5 }, 'grace_seconds: must be an integer'],
      ['a grace in text', { grace_seconds: '60' }, 'grace_seconds: must be a number'],
      ['a grace of null', { grace_seconds: null }, 'grace_seconds: must be a number'],
      ['an unknown member', { grace: 60 }, '"grace": unknown member'],
    ])('is 422 for %s, and changes nothing', async (_what, body, detail) => {
      const { id } = await create();
      const refused = await rotate(id, body);
      expect([refused.status, refused.body.code]).toEqual([422, 'unprocessable']);
      expect(refused.body.detail).toContain(detail);
      expect([(await read(id)).replaced_by, await keyCount()]).toEqual([null, 1]);
    });

    it('that does not exist is 404', async () => {
      for (const id of ['key_unknown', '%ff', 'k'.repeat(300)]) expect((await rotate(id)).status).toBe(404);
    });

    it('of ten attempts at once lets one win, and leaves no key of the others', async () => {
      const { id } = await create();
      const answers = await Promise.all(Array.from({ length: 10 }, () => rotate(id)));
      const won = answers.filter(({ status }) => status === 201);
      expect(won).toHaveLength(1);
      expect(answers.filter(({ status }) => status === 409)).toHaveLength(9);
      expect((await read(id)).replaced_by).toBe(won[0]?.body.id);
      expect((await admin.list('/admin/v1/customers/acme/keys')).map((key) => key.id).sort()).toEqual(
        [id, won[0]?.body.id].sort(),
      );
    });
  });

  describe('when the old key changes while it is rotated', () => {
    /** The same records behind another admin listener, in which something happens just before the old key is retired. */
    async function rotateWith(id: string, retireKey: RecordStore['retireKey']) {
      const { records } = admin.store;
      const racing = await startAdmin({
        records: {
          findKeyById: (keyId: string) => records.findKeyById(keyId),
          createKey: (sha256: string, record: KeyRecord) => records.createKey(sha256, record),
          discardKey: (keyId: string) => records.discardKey(keyId),
          retireKey,
        } as RecordStore,
      });
      try {
        return { ...(await racing.call('POST', `/admin/v1/keys/${id}/rotate`)), logs: racing.logs.join('') };
      } finally {
        await racing.close();
      }
    }

    const retireAfter =
      (happens: () => Promise<unknown>): RecordStore['retireKey'] =>
      async (...args) => {
        await happens();
        return admin.records.retireKey(...args);
      };

    it.each([
      ['revoked', (id: string) => admin.records.revokeKey(id, NOW), /revoked/],
      ['given another expiry', (id: string) => admin.records.updateKey(id, { expiresAt: later(1000) }), /changed/],
    ])('%s, the answer is 409, and the new key is gone', async (_what, happens, reason) => {
      const { id } = await create();
      const refused = await rotateWith(
        id,
        retireAfter(() => happens(id)),
      );
      expect([refused.status, refused.body.code]).toEqual([409, 'conflict']);
      expect(refused.body.detail).toMatch(reason);
      expect([(await read(id)).replaced_by, await keyCount()]).toEqual([null, 1]);
    });

    it('deleted, the response is 404, and the new key is deleted', async () => {
      const { id } = await create();
      expect(
        (
          await rotateWith(
            id,
            retireAfter(() => admin.records.discardKey(id)),
          )
        ).status,
      ).toBe(404);
      expect(await keyCount()).toBe(0);
    });

    it('and it is unknown whether the old key was retired, the new key stays', async () => {
      const { id } = await create();
      const { status, body, logs } = await rotateWith(id, () => Promise.reject(new StoreUnavailableError('no answer')));
      expect([status, body.code]).toEqual([503, 'store_unavailable']);
      expect([(await read(id)).replaced_by, await keyCount()]).toEqual([null, 2]);
      const [, made] = await admin.list('/admin/v1/customers/acme/keys');
      expect(logs).toContain(made.id);
    });

    it('and only the reply was lost, the rotation has succeeded', async () => {
      const { id } = await create();
      const { status, body } = await rotateWith(id, async (...args) => {
        await admin.records.retireKey(...args);
        throw new StoreUnavailableError('no answer');
      });
      expect(status).toBe(201);
      expect((await read(id)).replaced_by).toBe(body.id);
    });
  });
});
