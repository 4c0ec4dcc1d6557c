/** The URL and the secret of a customer's own notices. The secret is shown once, and nothing else ever contains it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createApiKey } from '../../../src/formats/api-key.ts';
import { parseWebhookSecret } from '../../../src/formats/webhook-signature.ts';
import { overBothStores, type TestAdmin } from './support.ts';

const URL = 'https://hooks.example/tollgate?tenant=acme';
const ACME = '/admin/v1/customers/acme';

overBothStores((start) => {
  let admin: TestAdmin;
  beforeEach(async () => {
    admin = await start();
    await admin.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  });
  afterEach(() => admin.close());

  describe('notify_url', () => {
    const shown = async () => (await admin.call('GET', ACME)).body.notify_url;

    it('is set, changed and unset', async () => {
      expect(await shown()).toBeNull();
      expect((await admin.call('PATCH', ACME, { notify_url: URL })).body.notify_url).toBe(URL);
      expect((await admin.call('PATCH', ACME, { name: 'Acme' })).body.notify_url).toBe(URL);
      expect(await shown()).toBe(URL);
      expect((await admin.call('PATCH', ACME, { notify_url: null })).body.notify_url).toBeNull();
      expect(await shown()).toBeNull();
    });

    it('is set when the customer is created', async () => {
      const created = await admin.call('POST', '/admin/v1/customers', { id: 'new', plan: 'starter', notify_url: URL });
      expect(created.body).toMatchObject({ id: 'new', notify_url: URL });
      expect(await admin.records.findCustomerRecord('new')).toMatchObject({ notifyUrl: URL });
    });

    it.each([
      'http://hooks.example/',
      'https://127.1/',
      'https://[::ffff:169.254.169.254]/',
      'https://user:password@hooks.example/',
      'https://@hooks.example/',
      'https://hooks.example\\@other.example/',
      'hooks.example',
      '',
      `https://hooks.example/${createApiKey()}`,
    ])('cannot be %s', async (url) => {
      const refused = await admin.call('PATCH', ACME, { notify_url: url });
      expect(refused.status).toBe(422);
      expect(refused.body.detail).toMatch(/^notify_url: must /);
      expect(await shown()).toBeNull();
    });

    it('that another program damaged is shown, can be replaced, and affects nothing else', async () => {
      const damaged = 'x'.repeat(100_000);
      await admin.records.updateCustomer('acme', { notifyUrl: damaged });
      expect((await admin.call('GET', ACME)).body).toMatchObject({ notify_url: damaged, limit: 1000 });
      expect(await admin.records.findCustomer('acme')).toEqual({ id: 'acme', plan: 'starter', suspended: false });
      expect((await admin.call('PATCH', ACME, { suspended: true })).status).toBe(200);
      expect((await admin.call('PATCH', ACME, { notify_url: URL })).body.notify_url).toBe(URL);
    });
  });

  describe('a new secret', () => {
    const create = () => admin.call('POST', `${ACME}/notify-secret`);

    it('has the form of Standard Webhooks and differs each time', async () => {
      const [first, second] = [await create(), await create()];
      expect([first.status, second.status]).toEqual([201, 201]);
      expect(first.headers.get('cache-control')).toBe('no-store');
      expect(parseWebhookSecret(first.body.secret)).toHaveLength(32);
      expect(second.body.secret).not.toBe(first.body.secret);
    });

    it('leaves the one before in force for a day', async () => {
      expect((await create()).body.former_valid_until).toBeNull();
      expect((await create()).body.former_valid_until).toBe('2026-03-02T12:00:00.000Z');
    });

    it('is in no other response, in no log line and not in the audit', async () => {
      const secrets = [(await create()).body.secret, (await create()).body.secret];
      await admin.call('PATCH', ACME, { notify_url: URL });
      const texts = [...admin.logs];
      for (const path of [ACME, '/admin/v1/customers', '/admin/v1/audit', `${ACME}/explain`]) {
        texts.push(JSON.stringify((await admin.call('GET', path)).body));
      }
      for (const secret of secrets) expect(texts.filter((text) => text.includes(secret))).toEqual([]);
      const entries = await admin.list('/admin/v1/audit?action=customer.notify_secret');
      expect(entries).toHaveLength(2);
    });

    it('is refused for a customer that does not exist', async () => {
      const refused = await admin.call('POST', '/admin/v1/customers/nobody/notify-secret');
      expect(refused.body).toMatchObject({ status: 404, code: 'not_found' });
    });
  });
});
