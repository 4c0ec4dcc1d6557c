import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createApiKey, sha256Hex } from '../../../src/formats/api-key.ts';
import { StoreUnavailableError } from '../../../src/store/errors.ts';
import type { CustomerChange } from '../../../src/store/record-fields.ts';
import type { RecordStore } from '../../../src/store/records.ts';
import { NOW, overBothStores, startAdmin, type TestAdmin } from './support.ts';

overBothStores((start) => {
  let admin: TestAdmin;
  beforeEach(async () => {
    admin = await start();
  });
  afterEach(() => admin.close());

  const create = (body: unknown) => admin.call('POST', '/admin/v1/customers', body);

  describe('the list of customers', () => {
    const idsOf = async (query: string) =>
      (await admin.list(`/admin/v1/customers?${query}`)).map(({ id }) => id).sort();

    it('can be filtered, in pages of any size', async () => {
      for (const [id, plan, suspended] of [
        ['acme-1', 'starter', false],
        ['acme-2', 'enterprise', true],
        ['globex', 'starter', true],
        ['former', 'beginner', false],
        ['orphan', 'dropped', false],
      ] as const) {
        await admin.records.createCustomer({ id, plan, suspended });
      }
      await admin.records.createCustomer({ id: 'named', name: 'Old Acme Ltd', plan: 'other', suspended: false });
      for (const limit of ['limit=1', 'limit=2', 'limit=1000']) {
        expect(await idsOf(`${limit}&plan=starter`)).toEqual(['acme-1', 'former', 'globex']);
        expect(await idsOf(`${limit}&plan=beginner`)).toEqual(['former']);
        expect(await idsOf(`${limit}&plan=dropped`)).toEqual(['orphan']);
        expect(await idsOf(`${limit}&suspended=true`)).toEqual(['acme-2', 'globex']);
        expect(await idsOf(`${limit}&suspended=false&id_prefix=acme-`)).toEqual(['acme-1']);
        expect(await idsOf(`${limit}&id_prefix=none`)).toEqual([]);
        expect(await idsOf(`${limit}&search=ACME`)).toEqual(['acme-1', 'acme-2', 'named']);
        expect(await idsOf(`${limit}&search=ltd+acme`)).toEqual(['named']);
        expect(await idsOf(`${limit}&search=-1+cme`)).toEqual(['acme-1']);
        expect(await idsOf(`${limit}&search=acme+none`)).toEqual([]);
      }
    });

    it('begins with those whose name has what was searched for, then those whose id has a part of it', async () => {
      for (const [id, name] of [
        ['a-falcon', undefined],
        ['b', 'Peregrine Falcon'],
        ['c-falcon', 'Peregrine'],
        ['d', 'Falcon, peregrine'],
        ['e', 'Kestrel'],
      ] as const) {
        await admin.records.createCustomer({ id, ...(name && { name }), plan: 'starter', suspended: false });
      }
      for (const [text, ids] of [
        ['falcon', ['b', 'd', 'a-falcon', 'c-falcon']],
        ['peregrine+FALCON', ['b', 'd', 'c-falcon']],
      ] as const) {
        for (const limit of [1, 3, 1000]) {
          // While changes are not pushed yet, Redis lists them in any order.
          const found = async () =>
            (await admin.list(`/admin/v1/customers?limit=${limit}&search=${text}`)).map(({ id }) => id);
          await expect.poll(found).toEqual(ids);
        }
      }
    });
  });

  describe('creating a customer', () => {
    it('responds with 201, the record, its limit and its location', async () => {
      const created = await create({ id: 'acme', name: 'Acme Ltd', plan: 'starter' });
      expect(created.status).toBe(201);
      expect(created.headers.get('location')).toBe('/admin/v1/customers/acme');
      expect(created.headers.get('cache-control')).toBe('no-store');
      expect(created.body).toEqual({
        id: 'acme',
        name: 'Acme Ltd',
        plan: 'starter',
        current_plan: 'starter',
        requests_per_hour: null,
        period_requests: null,
        period_anchor: null,
        period: null,
        suspended: false,
        usage_reset_at: null,
        period_reset_at: null,
        notify_url: null,
        limit: 1000,
        limit_source: 'plan',
        limit_problem: null,
        temporary_limit: null,
        suspended_until: null,
        limit_until: null,
        limit_then: null,
      });
      expect((await admin.call('GET', '/admin/v1/customers/acme')).body).toEqual(created.body);
    });

    it('takes a limit of its own on any plan', async () => {
      const own = { limit: 7, limit_source: 'customer', requests_per_hour: 7 };
      expect((await create({ id: 'a', plan: 'starter', requests_per_hour: 7 })).body).toMatchObject(own);
      expect((await create({ id: 'b', plan: 'enterprise', requests_per_hour: 7 })).body).toMatchObject(own);
    });

    it('takes a limit of a period and its beginning, which a change replaces and removes, and the audit records', async () => {
      const own = { period_requests: 70_000, period_anchor: '2026-01-31T10:00:00.000Z' };
      const created = await create({ id: 'a', plan: 'monthly', ...own, period_anchor: '2026-01-31T10:00:00Z' });
      const period = { per: 'month', limit: 70_000, limit_source: 'customer', beyond: 'refuse' };
      expect(created).toMatchObject({ status: 201, body: { ...own, limit: 1000, period } });
      expect((await admin.call('GET', '/admin/v1/customers/a')).body).toEqual(created.body);
      const change = (body: unknown) => admin.call('PATCH', '/admin/v1/customers/a', body);
      const moved = { period_anchor: '2026-02-01T00:00:00.000Z' };
      expect((await change(moved)).body).toMatchObject({ ...own, ...moved });
      expect((await change({ period_requests: null, period_anchor: null })).body).toMatchObject({
        ...{ period_requests: null, period_anchor: null },
        period: { limit: 50_000, limit_source: 'plan' },
      });
      expect(await admin.list('/admin/v1/audit')).toMatchObject([
        { details: { period_requests: null, period_anchor: null }, before: { ...own, ...moved } },
        { details: moved, before: { period_anchor: own.period_anchor } },
        { details: { plan: 'monthly', ...own } },
      ]);
    });

    it('keeps a limit of a period that the plan does not have, and does not apply it', async () => {
      const { body } = await create({ id: 'a', plan: 'starter', period_requests: 7 });
      expect(body).toMatchObject({ period_requests: 7, period: null });
    });

    it('wants a number for a custom period, when a customer is created and when its plan or number changes', async () => {
      const missing = { status: 422, body: { detail: expect.stringContaining('no period_requests') } };
      expect(await create({ id: 'a', plan: 'metered' })).toMatchObject(missing);
      expect(await create({ id: 'a', plan: 'metered', period_requests: 7 })).toMatchObject({ status: 201 });
      expect(await admin.call('PATCH', '/admin/v1/customers/a', { period_requests: null })).toMatchObject(missing);
      await create({ id: 'b', plan: 'starter' });
      expect(await admin.call('PATCH', '/admin/v1/customers/b', { plan: 'metered' })).toMatchObject(missing);
    });

    it('takes a limit and a suspension for a time, as a change does, and a suspension without an end', async () => {
      const until = '2026-04-01T00:00:00.000Z';
      const temporary = { temporary_limit: { requests_per_hour: 2000, until }, suspended_until: until };
      const created = await create({ id: 'a', plan: 'starter', ...temporary });
      const shown = { ...temporary, suspended: true, limit: 2000, limit_until: until, limit_then: 1000 };
      expect(created).toMatchObject({ status: 201, body: shown });
      expect((await admin.call('GET', '/admin/v1/customers/a')).body).toEqual(created.body);
      const endless = { suspended: true, suspended_until: null };
      expect((await create({ id: 'b', plan: 'starter', suspended: true })).body).toMatchObject(endless);
      expect((await admin.call('GET', '/admin/v1/customers/b')).body).toMatchObject(endless);
      const details = {
        plan: 'starter',
        temporary_limit: `2000 until ${until}`,
        suspended: true,
        suspended_until: until,
      };
      expect((await admin.list('/admin/v1/audit')).map((entry) => entry.details)).toEqual([
        { plan: 'starter', suspended: true },
        details,
      ]);
    });

    it("takes the configuration's override over everything", async () => {
      const created = await create({ id: 'vip', plan: 'starter', requests_per_hour: 7 });
      expect(created.body).toMatchObject({ limit: 120_000, limit_source: 'override' });
    });

    it.each(['a', '7', 'a@b.c', 'x:y_z-1', 'A'.repeat(128)])('takes the id %s, and finds it again', async (id) => {
      const created = await create({ id, plan: 'starter' });
      expect(created.status).toBe(201);
      expect((await admin.call('GET', created.headers.get('location') ?? '')).body.id).toBe(id);
      expect((await admin.call('GET', `/admin/v1/customers/${encodeURIComponent(id)}`)).body.id).toBe(id);
    });

    it('is 409 for an id that exists, and changes nothing', async () => {
      await create({ id: 'acme', plan: 'starter' });
      const again = await create({ id: 'acme', plan: 'enterprise', requests_per_hour: 9 });
      expect(again.status).toBe(409);
      expect(again.body.code).toBe('conflict');
      expect((await admin.records.findCustomer('acme'))?.plan).toBe('starter');
    });

    it.each([
      ['an unknown plan', { id: 'a', plan: 'gold' }, 'plan: must be one of the configured plans: starter, enterprise'],
      ['a custom plan without a limit', { id: 'a', plan: 'enterprise' }, 'requests_per_hour'],
      [
        'a period of no requests',
        { id: 'a', plan: 'monthly', period_requests: 0 },
        'period_requests: must be at least 1',
      ],
      [
        'periods that begin between two hours',
        { id: 'a', plan: 'monthly', period_anchor: '2026-01-31T10:00:01Z' },
        'period_anchor: must be on a whole hour',
      ],
      [
        'periods that begin at no time',
        { id: 'a', plan: 'monthly', period_anchor: '2026-02-31T10:00:00Z' },
        'period_anchor: must be an ISO 8601 time',
      ],
      [
        'a custom plan with a limit for a time alone',
        { id: 'a', plan: 'enterprise', temporary_limit: { requests_per_hour: 5, until: '2100-01-01T00:00:00Z' } },
        'requests_per_hour',
      ],
      [
        'a limit for a time that is over',
        { id: 'a', plan: 'starter', temporary_limit: { requests_per_hour: 5, until: '2020-01-01T00:00:00Z' } },
        'temporary_limit.until: must be in the future',
      ],
      [
        'an end of no suspension',
        { id: 'a', plan: 'starter', suspended: false, suspended_until: '2100-01-01T00:00:00Z' },
        'suspended_until: must not be given with suspended: false',
      ],
      ['a missing plan', { id: 'a' }, 'plan: missing'],
      ['a missing id', { plan: 'starter' }, 'id: missing'],
      ['a number for an id', { id: 12345, plan: 'starter' }, 'id: must be a string'],
      ['an empty id', { id: '', plan: 'starter' }, 'id: must be'],
      ['an id with a slash', { id: 'a/b', plan: 'starter' }, 'id: must be'],
      ['an id that ends in a line break', { id: 'a\n', plan: 'starter' }, 'id: must be'],
      ['an id of 129 characters', { id: 'a'.repeat(129), plan: 'starter' }, 'id: must be'],
      ['a limit of 0', { id: 'a', plan: 'starter', requests_per_hour: 0 }, 'requests_per_hour: must be at least 1'],
      ['a limit in text', { id: 'a', plan: 'starter', requests_per_hour: '5' }, 'requests_per_hour: must be a number'],
      ['half a request', { id: 'a', plan: 'starter', requests_per_hour: 1.5 }, 'requests_per_hour: must be an integer'],
      [
        'a limit beyond exact integers',
        { id: 'a', plan: 'starter', requests_per_hour: 2 ** 53 },
        'requests_per_hour: ',
      ],
      ['a limit of null', { id: 'a', plan: 'starter', requests_per_hour: null }, 'requests_per_hour: must be'],
      ['a name with a control character', { id: 'a', plan: 'starter', name: 'a\u0007' }, 'name: must not'],
      ['a name with half a character', { id: 'a', plan: 'starter', name: 'a\ud83d' }, 'name: must not'],
      [
        'a name with a key in it',
        { id: 'a', plan: 'starter', name: `ci ${createApiKey()}` },
        'name: must not contain an API key',
      ],
      ['an id with a key in it', { id: createApiKey(), plan: 'starter' }, 'id: must not contain an API key'],
      ['an unknown member', { id: 'a', plan: 'starter', tier: 'x' }, '"tier": unknown member'],
      [
        'a member whose name could be a key',
        { id: 'a', plan: 'starter', 'key-of-acme': 1 },
        'a name that is not shown: unknown member',
      ],
      ['a list', [], 'the body: must be an object'],
      ['a number', 5, 'the body: must be an object'],
    ])('is 422 for %s and says so', async (_what, body, detail) => {
      const refused = await create(body);
      expect(refused.status).toBe(422);
      expect(refused.body.code).toBe('unprocessable');
      expect(refused.body.detail).toContain(detail);
      expect(await admin.records.findCustomer('a')).toBeUndefined();
    });

    it('names every member that is wrong at once, and shows no value', async () => {
      const { body } = await create({ id: 5, plan: ['tg_secret'], requests_per_hour: 'tg_secret', extra: 'tg_secret' });
      for (const member of ['id', 'plan', 'requests_per_hour', 'extra']) expect(body.detail).toContain(member);
      expect(JSON.stringify(body)).not.toContain('tg_secret');
    });

    it('takes a __proto__ for the unknown member it is', async () => {
      const refused = await create('{"id":"a","plan":"starter","__proto__":{"suspended":true}}');
      expect(refused.status).toBe(422);
      expect(refused.body.detail).toContain('__proto__');
    });
  });

  describe('reading a customer', () => {
    it.each(['nobody', 'a b', '-a', `${'a'.repeat(129)}`, '%ff', 'a%2Fb'])('is 404 for %s', async (id) => {
      for (const path of [`/admin/v1/customers/${id}`, `/admin/v1/customers/${id}/usage`]) {
        const missing = await admin.call('GET', path);
        expect(missing.status).toBe(404);
        expect(missing.body.code).toBe('not_found');
      }
    });

    it('says why there is no limit', async () => {
      await admin.records.createCustomer({ id: 'old', plan: 'gone', suspended: true });
      const { status, body } = await admin.call('GET', '/admin/v1/customers/old');
      expect(status).toBe(200);
      expect(body).toMatchObject({ limit: null, limit_source: null, suspended: true });
      expect(body.limit_problem).toContain('gone');
    });
  });

  describe('the list of customers', () => {
    it('is empty at first', async () => {
      const { status, body } = await admin.call('GET', '/admin/v1/customers');
      expect(status).toBe(200);
      expect(body).toEqual({ items: [], next_cursor: null });
    });

    it('has each customer once, as it is read alone, whatever the size of the pages', async () => {
      const ids = Array.from({ length: 23 }, (_, i) => `customer-${i}`);
      for (const id of ids) await create({ id, plan: 'starter' });
      for (const limit of [1, 10, 23, 1000]) {
        const listed = await admin.list(`/admin/v1/customers?limit=${limit}`);
        expect(listed.map(({ id }) => id).sort()).toEqual([...ids].sort());
        const [first] = listed;
        expect(first).toEqual((await admin.call('GET', `/admin/v1/customers/${first?.id}`)).body);
      }
    });

    it.each([
      ['limit=0', 'limit: must be an integer from 1 to 1000'],
      ['limit=1001', 'limit: must be an integer from 1 to 1000'],
      ['limit=ten', 'limit: must be an integer from 1 to 1000'],
      ['limit=', 'limit: must be an integer from 1 to 1000'],
      ['limit=5&limit=6', 'a parameter twice'],
      ['cursor=', 'cursor: must be the next_cursor of an earlier response'],
      ['cursor=%20made%20up', 'cursor: must be the next_cursor of an earlier response'],
      ['page=2', '"page": unknown parameter'],
      ['key-of-acme', 'a name that is not shown: unknown parameter'],
      ['page=2&limit=0', 'limit: must be'],
    ])('is 422 with ?%s', async (query, detail) => {
      const { status, body } = await admin.call('GET', `/admin/v1/customers?${query}`);
      expect([status, body.code]).toEqual([422, 'unprocessable']);
      expect(body.detail).toContain(detail);
    });
  });

  describe('changing a customer', () => {
    const change = (body: unknown, id = 'acme') => admin.call('PATCH', `/admin/v1/customers/${id}`, body);
    beforeEach(() => create({ id: 'acme', name: 'Acme', plan: 'starter', requests_per_hour: 5 }));

    it.each([
      ['the plan', { plan: 'enterprise' }, { plan: 'enterprise', current_plan: 'enterprise', limit: 5 }],
      ['the name', { name: 'Acme Ltd' }, { name: 'Acme Ltd' }],
      ['the name, to none', { name: null }, { name: null }],
      ['its own limit', { requests_per_hour: 9 }, { requests_per_hour: 9, limit: 9, limit_source: 'customer' }],
      [
        'its own limit, to none',
        { requests_per_hour: null },
        { requests_per_hour: null, limit: 1000, limit_source: 'plan' },
      ],
      ['whether it is suspended', { suspended: true }, { suspended: true }],
      [
        'several at once',
        { plan: 'enterprise', name: 'X', requests_per_hour: 7 },
        { plan: 'enterprise', current_plan: 'enterprise', name: 'X', requests_per_hour: 7, limit: 7 },
      ],
    ])('changes %s and nothing else', async (_what, body, changed) => {
      const before = (await admin.call('GET', '/admin/v1/customers/acme')).body;
      const answer = await change(body);
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual({ ...before, ...changed });
      expect((await admin.call('GET', '/admin/v1/customers/acme')).body).toEqual(answer.body);
    });

    it('without a member changes nothing, and is no entry in the audit', async () => {
      const before = (await admin.call('GET', '/admin/v1/customers/acme')).body;
      for (const body of [{}, undefined]) expect(await change(body)).toMatchObject({ status: 200, body: before });
      expect(await admin.list('/admin/v1/audit')).toHaveLength(1);
    });

    it.each([
      ['an unknown plan', { plan: 'gold' }, 'plan: must be one of the configured plans'],
      ['a plan of null', { plan: null }, 'plan: must be a string'],
      ['a limit of 0', { requests_per_hour: 0 }, 'requests_per_hour: must be at least 1'],
      ['a suspension in text', { suspended: 'yes' }, 'suspended: must be a boolean'],
      ['an empty name', { name: '' }, 'name: must not be empty'],
      ['an id', { id: 'other' }, '"id": unknown member'],
      ['a custom plan and no limit', { plan: 'enterprise', requests_per_hour: null }, 'requests_per_hour'],
    ])('is 422 for %s, and changes nothing', async (_what, body, detail) => {
      const before = (await admin.call('GET', '/admin/v1/customers/acme')).body;
      const refused = await change(body);
      expect([refused.status, refused.body.code]).toEqual([422, 'unprocessable']);
      expect(refused.body.detail).toContain(detail);
      expect((await admin.call('GET', '/admin/v1/customers/acme')).body).toEqual(before);
    });

    it('that has lost its plan is 422 as long as it has no limit, but it can be suspended', async () => {
      await admin.records.createCustomer({ id: 'old', plan: 'gone', suspended: false });
      expect((await change({ requests_per_hour: 5 }, 'old')).status).toBe(422);
      expect((await change({ suspended: true }, 'old')).body).toMatchObject({ suspended: true, limit: null });
      expect((await change({ plan: 'starter' }, 'old')).body).toMatchObject({ limit: 1000, limit_problem: null });
    });

    it.each(['nobody', '-a', '%ff'])('is 404 for %s, and makes none of it', async (id) => {
      expect((await change({ suspended: true }, id)).status).toBe(404);
      expect(await admin.list('/admin/v1/customers')).toHaveLength(1);
    });

    it('is 404 when the customer is deleted while it is changed', async () => {
      const { records } = admin.store;
      const racing = await startAdmin({
        records: {
          findCustomerRecord: (id: string) => records.findCustomerRecord(id),
          updateCustomer: async (id: string, change: CustomerChange) => {
            await records.deleteCustomer(id);
            return records.updateCustomer(id, change);
          },
        } as RecordStore,
      });
      try {
        expect((await racing.call('PATCH', '/admin/v1/customers/acme', { name: 'late' })).status).toBe(404);
        expect(await records.findCustomer('acme')).toBeUndefined();
      } finally {
        await racing.close();
      }
    });
  });

  describe('deleting a customer', () => {
    it('takes its keys with it, and is 404 from then on', async () => {
      await create({ id: 'acme', plan: 'starter' });
      await create({ id: 'other', plan: 'starter' });
      const { body: key } = await admin.call('POST', '/admin/v1/customers/acme/keys', {});
      const { body: kept } = await admin.call('POST', '/admin/v1/customers/other/keys', {});
      const deleted = await admin.call('DELETE', '/admin/v1/customers/acme');
      expect(deleted.status).toBe(204);
      expect(deleted.body).toBeUndefined();
      const paths = ['/customers/acme', '/customers/acme/usage', '/customers/acme/explain', '/customers/acme/keys'];
      for (const path of [...paths, `/keys/${key.id}`]) {
        expect((await admin.call('GET', `/admin/v1${path}`)).status, path).toBe(404);
      }
      expect((await admin.call('DELETE', '/admin/v1/customers/acme')).status).toBe(404);
      expect(await admin.records.findKey(sha256Hex(key.key))).toBeUndefined();
      expect(await admin.records.findKey(sha256Hex(kept.key))).toMatchObject({ id: kept.id });
      expect((await admin.list('/admin/v1/keys')).map(({ id }) => id)).toEqual([kept.id]);
    });

    it.each(['nobody', '-a', '%ff'])('is 404 for %s', async (id) => {
      expect((await admin.call('DELETE', `/admin/v1/customers/${id}`)).status).toBe(404);
    });
  });

  describe('a usage reset', () => {
    it('is written into the record, where every gateway sees it', async () => {
      await admin.records.createCustomer({ id: 'reset', plan: 'starter', suspended: false });
      expect((await admin.call('DELETE', '/admin/v1/customers/reset/usage')).status).toBe(204);
      const { body } = await admin.call('GET', '/admin/v1/customers/reset');
      expect(body.usage_reset_at).toBe(NOW);
    });

    it('of an unknown customer is a 404', async () => {
      expect((await admin.call('DELETE', '/admin/v1/customers/nobody/usage')).status).toBe(404);
    });
  });

  describe('the usage of a customer', () => {
    it('is what enforcement sees under the effective limit', async () => {
      await create({ id: 'acme', plan: 'starter' });
      const { status, body } = await admin.call('GET', '/admin/v1/customers/acme/usage');
      expect(status).toBe(200);
      expect(body).toEqual({
        limit: 1000,
        used: 3,
        remaining: 997,
        reset_seconds: 41,
        window_seconds: 3600,
        period: null,
      });
    });

    it('is 422 with the reason when there is no limit', async () => {
      await admin.records.createCustomer({ id: 'old', plan: 'gone', suspended: false });
      const { status, body } = await admin.call('GET', '/admin/v1/customers/old/usage');
      expect(status).toBe(422);
      expect(body.detail).toContain('gone');
    });

    it('is 503 while the store is unavailable', async () => {
      const away = await startAdmin({
        usage: () => Promise.reject(new StoreUnavailableError('connection to redis lost')),
      });
      try {
        await away.call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter' });
        const { status, headers, body } = await away.call('GET', '/admin/v1/customers/acme/usage');
        expect(status).toBe(503);
        expect(headers.get('retry-after')).toBe('1');
        expect(body.code).toBe('store_unavailable');
        expect(JSON.stringify(body)).not.toContain('redis');
        expect(away.logs.join('')).toContain('connection to redis lost');
      } finally {
        await away.close();
      }
    });
  });
});
