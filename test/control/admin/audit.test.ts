import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/store/errors.ts';
import { NOW, overBothStores, startAdmin, type TestAdmin } from './support.ts';

const SHA256 = createHash('sha256').update('key-of-acme').digest('hex');

overBothStores((start) => {
  let admin: TestAdmin;
  beforeEach(async () => {
    admin = await start();
    await admin.call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter', name: 'Acme' });
  });
  afterEach(() => admin.close());

  const createKey = async (body: unknown = {}): Promise<string> =>
    (await admin.call('POST', '/admin/v1/customers/acme/keys', body)).body.id;

  describe('the audit', () => {
    it('has an entry for every change, newest first, with actor, action, time, address, and old and new values', async () => {
      const whose = { customer: 'acme', customer_name: null };
      const common = {
        at: NOW,
        actor: 'token',
        from: '127.0.0.1',
        ...whose,
        key_id: null,
        details: null,
        before: null,
      };
      const key = await createKey({ name: 'ci', expires_at: '2027-01-01T00:00:00Z' });
      const imported = await createKey({ value: 'key-of-acme' });
      await admin.call('PATCH', `/admin/v1/keys/${key}`, { name: null });
      const { body: rotated } = await admin.call('POST', `/admin/v1/keys/${key}/rotate`, { grace_seconds: 60 });
      await admin.call('DELETE', `/admin/v1/keys/${imported}`);
      await admin.call('PATCH', '/admin/v1/customers/acme', { plan: 'starter', suspended: true, requests_per_hour: 7 });
      await admin.call('DELETE', '/admin/v1/customers/acme/usage');
      await admin.call('DELETE', '/admin/v1/customers/acme');

      const entries = await admin.list('/admin/v1/audit');
      expect(new Set(entries.map(({ id }) => id)).size).toBe(9);
      expect(entries.map(({ id: _, ...entry }) => entry)).toEqual(
        [
          { ...common, action: 'customer.create', details: { plan: 'starter', name: 'Acme' } },
          {
            ...common,
            action: 'key.create',
            key_id: key,
            details: { name: 'ci', expires_at: '2027-01-01T00:00:00.000Z' },
          },
          { ...common, action: 'key.import', key_id: imported },
          { ...common, action: 'key.update', key_id: key, details: { name: null }, before: { name: 'ci' } },
          {
            ...common,
            action: 'key.rotate',
            key_id: key,
            details: { replaced_by: rotated.id, expires_at: '2026-03-01T12:01:00.000Z' },
          },
          { ...common, action: 'key.revoke', key_id: imported },
          {
            ...common,
            action: 'customer.update',
            details: { plan: 'starter', suspended: true, requests_per_hour: 7 },
            before: { suspended: false, requests_per_hour: null },
          },
          { ...common, action: 'usage.reset' },
          { ...common, action: 'customer.delete', details: { keys: 3 } },
        ].toReversed(),
      );
      expect(JSON.stringify(entries)).not.toContain('key-of-acme');
      expect(JSON.stringify(entries)).not.toContain(SHA256);
    });

    it('comes in pages of any size, each entry once, also while there come more', async () => {
      for (let i = 0; i < 6; i++) await createKey();
      const all = (await admin.list('/admin/v1/audit')).map(({ id }) => id);
      expect(all).toHaveLength(7);
      for (const limit of [1, 3, 7]) {
        expect((await admin.list(`/admin/v1/audit?limit=${limit}`)).map(({ id }) => id)).toEqual(all);
      }
      const first = (await admin.call('GET', '/admin/v1/audit?limit=3')).body;
      await createKey();
      const second = (await admin.call('GET', `/admin/v1/audit?limit=4&cursor=${first.next_cursor}`)).body;
      expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(all);
    });

    it('can be asked for the entries of one customer or action, in pages of any size', async () => {
      await admin.call('PATCH', '/admin/v1/customers/acme', { name: 'Acme, Inc.' });
      await createKey();
      for (const limit of [1, 1000]) {
        const actionsOf = async (query: string) =>
          (await admin.list(`/admin/v1/audit?limit=${limit}&${query}`)).map(({ action }) => action);
        expect(await actionsOf('action=key.create')).toEqual(['key.create']);
        expect(await actionsOf('customer=acme&action=customer.update')).toEqual(['customer.update']);
        expect(await actionsOf('customer=nobody')).toEqual([]);
      }
      const { status } = await admin.call('GET', '/admin/v1/audit?action=key.steal');
      expect(status).toBe(422);
    });

    it('has nothing of what was refused, of what changed nothing, and of what was only read', async () => {
      const key = await createKey();
      await admin.call('DELETE', `/admin/v1/keys/${key}`);
      const before = await admin.list('/admin/v1/audit');
      admin.advance(1000);
      const statuses = [
        await admin.call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter' }),
        await admin.call('POST', '/admin/v1/customers', { id: 'b', plan: 'gold' }),
        await admin.call('PATCH', '/admin/v1/customers/acme', {}),
        await admin.call('DELETE', '/admin/v1/customers/nobody'),
        await admin.call('DELETE', '/admin/v1/customers/nobody/usage'),
        await admin.call('POST', '/admin/v1/customers/acme/keys', { value: 'short' }),
        await admin.call('DELETE', `/admin/v1/keys/${key}`),
        await admin.call('POST', `/admin/v1/keys/${key}/rotate`, {}),
        await admin.call('GET', '/admin/v1/customers/acme/usage'),
      ].map(({ status }) => status);
      expect(statuses).toEqual([409, 422, 200, 404, 404, 422, 204, 409, 200]);
      expect(await admin.list('/admin/v1/audit')).toEqual(before);
    });

    it.each(['limit=0', 'cursor=made-up', 'actor=token'])('is 422 with ?%s', async (query) => {
      const { status, body } = await admin.call('GET', `/admin/v1/audit?${query}`);
      expect([status, body.code]).toEqual([422, 'unprocessable']);
    });

    it('is in the log as well, line by line', async () => {
      const key = await createKey();
      const line = admin.logs.map((text) => JSON.parse(text)).findLast(({ action }) => action !== undefined);
      expect(line).toMatchObject({
        level: 'info',
        msg: 'key created',
        action: 'key.create',
        actor: 'token',
        from: '127.0.0.1',
        customer: 'acme',
        key_id: key,
      });
    });
  });
});

describe('a change that cannot be written to the audit', () => {
  it('is kept and gets a success response, and the log has the whole entry as an error', async () => {
    const lossy = await startAdmin({
      audit: {
        append: () => Promise.reject(new StoreUnavailableError('no answer')),
        list: () => Promise.resolve({ items: [], next: undefined }),
      },
    });
    try {
      const { status } = await lossy.call('POST', '/admin/v1/customers', { id: 'acme', plan: 'starter' });
      expect(status).toBe(201);
      expect((await lossy.call('GET', '/admin/v1/customers/acme')).status).toBe(200);
      const line = lossy.logs.map((text) => JSON.parse(text)).find(({ level }) => level === 'error');
      expect(line.audit_entry).toEqual({
        at: NOW,
        actor: 'token',
        from: '127.0.0.1',
        action: 'customer.create',
        customer: 'acme',
        key_id: null,
        details: { plan: 'starter' },
        before: null,
      });
      expect(line.err.message).toBe('no answer');
    } finally {
      await lossy.close();
    }
  });
});
