import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createApiKey } from '../../../src/formats/api-key.ts';
import { NOW, overBothStores, type TestAdmin } from './support.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const VALUE = 'key-made-elsewhere/with+all~of._it-0123456789==';

overBothStores((start) => {
  let admin: TestAdmin;
  beforeEach(async () => {
    admin = await start();
    for (const id of ['acme', 'other']) await admin.records.createCustomer({ id, plan: 'starter', suspended: false });
  });
  afterEach(() => admin.close());

  const importKey = (body: unknown, customer = 'acme') =>
    admin.call('POST', `/admin/v1/customers/${customer}/keys`, body);

  describe('importing a key', () => {
    it('by value responds with the metadata of the key, and never with its value', async () => {
      const { status, headers, body } = await importKey({
        value: VALUE,
        name: 'legacy',
        expires_at: '2027-01-01T00:00:00Z',
      });
      expect(status).toBe(201);
      expect(headers.get('location')).toBe(`/admin/v1/keys/${body.id}`);
      expect(body).toEqual({
        id: expect.stringMatching(/^key_[0-9A-Za-z]{19}$/),
        prefix: 'key-made-els',
        customer: 'acme',
        name: 'legacy',
        created_at: NOW,
        expires_at: '2027-01-01T00:00:00.000Z',
        scopes: null,
        allowed_addresses: null,
        requests_per_hour: null,
      });
      expect(await admin.records.findKey(sha256(VALUE))).toMatchObject({ id: body.id, customer: 'acme' });
    });

    it.each([
      ['as tools print it', (hash: string) => hash],
      ['in capitals', (hash: string) => hash.toUpperCase()],
    ])('by hash, %s, stores the hash and knows no prefix', async (_how, written) => {
      const { status, body } = await importKey({ sha256: written(sha256(VALUE)) });
      expect(status).toBe(201);
      expect(body).toMatchObject({ prefix: null, customer: 'acme', name: null, expires_at: null });
      expect(body).not.toHaveProperty('key');
      expect(await admin.records.findKey(sha256(VALUE))).toMatchObject({ id: body.id });
    });

    it('takes what begins with tg_ only with its checksum, if it has the length of a generated key', async () => {
      const key = createApiKey();
      const mistyped = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
      const refused = await importKey({ value: mistyped });
      expect(refused.status).toBe(422);
      expect(refused.body.detail).toContain('checksum');
      expect((await importKey({ value: key })).status).toBe(201);
      expect((await importKey({ value: `${key}x` })).status).toBe(201);
    });

    it.each([
      ['short-key', null],
      ['x'.repeat(31), null],
      ['x'.repeat(32), 'xxxxxxxx'],
    ])('shows the beginning only of one that is long enough: %s', async (value, prefix) => {
      expect((await importKey({ value })).body.prefix).toBe(prefix);
    });

    it.each([
      ['by value again', { value: VALUE }],
      ['by its hash', { sha256: sha256(VALUE) }],
    ])('that is there already is 409 %s, says whose it is, and changes nothing', async (_how, again) => {
      const { body } = await importKey({ value: VALUE, name: 'first' });
      const same = await importKey({ ...again, name: 'second' });
      expect([same.status, same.body.code, same.body.key_owner]).toEqual([409, 'conflict', 'this_customer']);
      expect(same.body.detail).toBe('This customer has this key already.');
      const stolen = await importKey({ ...again, name: 'third' }, 'other');
      expect([stolen.status, stolen.body.code, stolen.body.key_owner]).toEqual([409, 'conflict', 'another_customer']);
      expect(stolen.body.detail).toBe('Another customer has this key already.');
      expect(JSON.stringify([stolen.body, same.body])).not.toMatch(/acme|first|key_[0-9A-Za-z]{19}/);

      expect((await admin.list('/admin/v1/keys')).map(({ id, name }) => [id, name])).toEqual([[body.id, 'first']]);
      expect(await admin.list('/admin/v1/customers/other/keys')).toEqual([]);
    });

    it.each([
      ['value and hash', { value: VALUE, sha256: sha256(VALUE) }, 'the body: must have value or sha256, not both'],
      ['a value of 7 characters', { value: 'x'.repeat(7) }, 'value: must be 8 to 512 characters'],
      ['a value of 513 characters', { value: 'x'.repeat(513) }, 'value: must be 8 to 512 characters'],
      ['a value with a space', { value: 'abcd efgh' }, 'value: must be 8 to 512 characters'],
      ['a value that ends in a line break', { value: 'abcdefgh\n' }, 'value: must be 8 to 512 characters'],
      ['a value of null', { value: null }, 'value: must be a string'],
      ['63 digits', { sha256: 'a'.repeat(63) }, 'sha256: must be the SHA-256 of the whole key in 64 hex digits'],
      [
        'a hash in Base64',
        { sha256: createHash('sha256').update(VALUE).digest('base64') },
        'sha256: must be the SHA-256',
      ],
      ['a hash and a line break', { sha256: `${'a'.repeat(64)}\n` }, 'sha256: must be the SHA-256'],
      ['a bcrypt hash', { sha256: `$2b$12$${'a'.repeat(53)}` }, 'sha256: must be the SHA-256'],
      [
        'an expiry in the past',
        { value: VALUE, expires_at: '2020-01-01T00:00:00Z' },
        'expires_at: must be in the future',
      ],
    ])('is 422 for %s, and stores nothing', async (_what, body, detail) => {
      const refused = await importKey(body);
      expect([refused.status, refused.body.code]).toEqual([422, 'unprocessable']);
      expect(refused.body.detail).toContain(detail);
      expect(await admin.list('/admin/v1/keys')).toEqual([]);
    });

    it('is 404 for an unknown customer', async () => {
      expect((await importKey({ value: VALUE }, 'nobody')).status).toBe(404);
      expect(await admin.records.findKey(sha256(VALUE))).toBeUndefined();
    });
  });
});
