/** What every store promises of changes to records that are there. Part of the contract suite. */
import { describe, expect, test } from 'vitest';
import { uniqueIds } from '../../src/base/unique-ids.ts';
import type { CustomerChange, KeyChange, KeyRecord } from '../../src/store/record-fields.ts';
import { hourly, type ReserveRequest } from '../../src/store/windows.ts';
import { createKeyWithCustomer } from '../support/stored-key.ts';
import type { OpenedStore } from './opened-store.ts';
import { RecordedInvalidations } from './recorded-invalidations.ts';

const SHA256 = 'a'.repeat(64);
const OTHER_SHA256 = 'b'.repeat(64);
const EXPIRY = '2027-01-02T03:04:05Z';
const GRACE_END = '2026-06-01T00:00:00Z';
const CUSTOMER = {
  id: 'acme',
  plan: 'enterprise',
  name: 'Acme Corp.',
  requestsPerHour: 120_000,
  suspended: true,
  usageResetAt: '2026-01-02T03:04:05Z',
  notifyUrl: 'https://hooks.example/tollgate',
};
const KEY = {
  id: 'k1',
  customer: 'acme',
  name: 'production',
  prefix: 'tg_abcd',
  createdAt: '2026-01-02T03:04:05Z',
  expiresAt: EXPIRY,
};
const REPLACEMENT = { replacedBy: 'k2', expiresAt: GRACE_END };

const newGrantId = uniqueIds();

function need(units: number, customer = 'acme'): ReserveRequest {
  return { customer, grant: newGrantId(), need: units, ahead: 0, limits: hourly(10), holdMs: 2000, refunds: [] };
}

export function changesContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name}: changes of a customer`, () => {
    const { name: _name, requestsPerHour: _limit, notifyUrl: _url, ...plain } = CUSTOMER;

    test.each<[string, CustomerChange, object]>([
      ['its plan', { plan: 'starter' }, { ...CUSTOMER, plan: 'starter' }],
      ['its name', { name: 'Acme Ltd.' }, { ...CUSTOMER, name: 'Acme Ltd.' }],
      ['its limit', { requestsPerHour: 7 }, { ...CUSTOMER, requestsPerHour: 7 }],
      ['its suspension', { suspended: false }, { ...CUSTOMER, suspended: false }],
      [
        'its URL for notices',
        { notifyUrl: 'https://other.example/' },
        { ...CUSTOMER, notifyUrl: 'https://other.example/' },
      ],
      ['what is unset', { name: null, requestsPerHour: null, notifyUrl: null }, plain],
      ['all at once', { plan: 'a', name: 'b', requestsPerHour: 1, suspended: false }, { plan: 'a', name: 'b' }],
      ['nothing', {}, CUSTOMER],
    ])('change %s, and leave the rest', async (_what, change, expected) => {
      const { records } = await open();
      await records.createCustomer(CUSTOMER);
      const changed = await records.updateCustomer('acme', change);
      expect(changed).toMatchObject(expected);
      expect(Object.keys(changed ?? {}).toSorted()).toEqual(
        Object.keys({ ...CUSTOMER, ...expected })
          .filter((member) => change[member as keyof CustomerChange] !== null)
          .toSorted(),
      );
      expect(await records.findCustomerRecord('acme')).toEqual(changed);
    });

    test('never make one of what is not there', async () => {
      const { records } = await open();
      expect(await records.updateCustomer('acme', { plan: 'starter', name: 'x' })).toBeUndefined();
      expect(await records.findCustomer('acme')).toBeUndefined();
      expect((await records.listCustomers(undefined, 10)).items).toEqual([]);
      expect(await records.createCustomer(CUSTOMER)).toBe('created');
    });

    test('touch no other customer', async () => {
      const { records } = await open();
      await records.createCustomer(CUSTOMER);
      await records.createCustomer({ ...CUSTOMER, id: 'globex' });
      await records.updateCustomer('acme', { plan: 'starter' });
      expect(await records.findCustomerRecord('globex')).toEqual({ ...CUSTOMER, id: 'globex' });
    });
  });

  describe(`${name}: changes of a key`, () => {
    const { name: _name, ...nameless } = KEY;
    const { expiresAt: _expiresAt, ...everlasting } = KEY;

    test.each<[string, KeyChange, KeyRecord]>([
      ['its name', { name: 'staging' }, { ...KEY, name: 'staging' }],
      ['its expiry', { expiresAt: '2030-01-01T00:00:00Z' }, { ...KEY, expiresAt: '2030-01-01T00:00:00Z' }],
      ['a name that is unset', { name: null }, nameless],
      ['an expiry that is unset', { expiresAt: null }, everlasting],
      ['nothing', {}, KEY],
    ])('change %s, and leave the rest', async (_what, change, expected) => {
      const { records } = await open();
      await createKeyWithCustomer(records, SHA256, KEY);
      expect(await records.updateKey('k1', change)).toEqual(expected);
      expect(await records.findKeyById('k1')).toEqual(expected);
    });

    test('leave a revoked key revoked', async () => {
      const { records } = await open();
      await createKeyWithCustomer(records, SHA256, KEY);
      await records.revokeKey('k1', GRACE_END);
      expect(await records.updateKey('k1', { expiresAt: null })).toEqual({ ...everlasting, revokedAt: GRACE_END });
    });

    test('never make one of what is not there, nor bring back what was taken away', async () => {
      const { records } = await open();
      expect(await records.updateKey('k1', { name: 'x' })).toBeUndefined();
      await createKeyWithCustomer(records, SHA256, KEY);
      await records.discardKey('k1');
      expect(await records.updateKey('k1', { name: 'x' })).toBeUndefined();
      expect(await records.revokeKey('k1', GRACE_END)).toBeUndefined();
      expect(await records.retireKey('k1', KEY, REPLACEMENT)).toBeUndefined();
      expect(await records.findKey(SHA256)).toBeUndefined();
      expect((await records.listKeys(undefined, 10)).items).toEqual([]);
      expect(await createKeyWithCustomer(records, SHA256, { id: 'k1', customer: 'globex' })).toBe('created');
    });
  });

  describe(`${name}: a key that is replaced`, () => {
    test.each<[string, Partial<KeyRecord>]>([
      ['without an expiry', {}],
      ['with one', { expiresAt: EXPIRY }],
    ])('gets its successor and the end of its grace at once: a key %s', async (_what, expected) => {
      const { records } = await open();
      const key: KeyRecord = { id: 'k1', customer: 'acme', name: 'production', ...expected };
      await createKeyWithCustomer(records, SHA256, key);
      const retired = { ...key, ...REPLACEMENT };
      expect(await records.retireKey('k1', key, REPLACEMENT)).toEqual(retired);
      expect(await records.findKeyById('k1')).toEqual(retired);
    });

    test.each<[string, (store: OpenedStore) => Promise<unknown>]>([
      ['revoked', ({ records }) => records.revokeKey('k1', GRACE_END)],
      ['replaced', ({ records }) => records.retireKey('k1', KEY, { ...REPLACEMENT, expiresAt: EXPIRY })],
      ['given another expiry', ({ records }) => records.updateKey('k1', { expiresAt: '2028-01-01T00:00:00Z' })],
      ['restricted to scopes', ({ records }) => records.updateKey('k1', { scopes: ['read'] })],
      ['restricted to addresses', ({ records }) => records.updateKey('k1', { allowedAddresses: ['10.0.0.1'] })],
      ['freed from its expiry', ({ records }) => records.updateKey('k1', { expiresAt: null })],
    ])('stays as it is when it was %s meanwhile', async (_what, change) => {
      const store = await open();
      await createKeyWithCustomer(store.records, SHA256, KEY);
      await change(store);
      const record = await store.records.findKeyById('k1');
      expect(await store.records.retireKey('k1', KEY, { replacedBy: 'k3', expiresAt: GRACE_END })).toEqual(record);
      expect(await store.records.findKeyById('k1')).toEqual(record);
    });

    test('stays as it is when it was given an expiry meanwhile', async () => {
      const { records } = await open();
      await createKeyWithCustomer(records, SHA256, KEY);
      expect(await records.retireKey('k1', {}, REPLACEMENT)).toEqual(KEY);
    });

    test('is replaced once, however many try at the same time', async () => {
      const { records } = await open();
      await createKeyWithCustomer(records, SHA256, KEY);
      const results = await Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          records.retireKey('k1', KEY, { replacedBy: `successor-${i}`, expiresAt: EXPIRY }),
        ),
      );
      const record = await records.findKeyById('k1');
      expect(results).toEqual(results.map(() => record));
      expect(results.filter((result, i) => result?.replacedBy === `successor-${i}`)).toHaveLength(1);
    });

    test('is missing when it never was', async () => {
      const { records } = await open();
      expect(await records.retireKey('k1', {}, REPLACEMENT)).toBeUndefined();
      expect(await records.findKeyById('k1')).toBeUndefined();
    });
  });

  describe(`${name}: a key that is taken away`, () => {
    test('leaves nothing behind, and can be taken away again', async () => {
      const { records, keyUses } = await open();
      await createKeyWithCustomer(records, SHA256, KEY);
      await createKeyWithCustomer(records, OTHER_SHA256, { ...KEY, id: 'k2' });
      await keyUses.noteUses([{ keyId: 'k1', usedAtMs: 1 }]);
      await records.discardKey('k1');
      await records.discardKey('k1');
      expect(await records.findKey(SHA256)).toBeUndefined();
      expect(await records.findKeyById('k1')).toBeUndefined();
      expect((await records.listCustomerKeys('acme', undefined, 1000)).items.map(({ id }) => id)).toEqual(['k2']);
      expect(await keyUses.lastUses(['k1'])).toEqual([undefined]);
    });
  });

  describe(`${name}: a customer that is deleted`, () => {
    test('goes with its keys, its window and their last uses, and nobody else does', async () => {
      const { records, windows, keyUses } = await open();
      for (const id of ['acme', 'globex']) {
        await records.createCustomer({ ...CUSTOMER, id });
        await windows.reserve(need(10, id));
      }
      await createKeyWithCustomer(records, SHA256, KEY);
      await createKeyWithCustomer(records, OTHER_SHA256, { ...KEY, id: 'k2', customer: 'globex' });
      await keyUses.noteUses([
        { keyId: 'k1', usedAtMs: 1 },
        { keyId: 'k2', usedAtMs: 2 },
      ]);

      expect(await records.deleteCustomer('acme')).toBe(1);
      expect(await records.findCustomer('acme')).toBeUndefined();
      expect(await records.findKey(SHA256)).toBeUndefined();
      expect(await records.findKeyById('k1')).toBeUndefined();
      expect((await records.listCustomerKeys('acme', undefined, 1000)).items).toEqual([]);
      expect(await windows.reserve(need(0))).toMatchObject({ counts: [{ used: 0 }] });

      expect(await records.findCustomerRecord('globex')).toEqual({ ...CUSTOMER, id: 'globex' });
      expect((await records.listCustomerKeys('globex', undefined, 1000)).items).toEqual([
        { ...KEY, id: 'k2', customer: 'globex' },
      ]);
      expect(await windows.reserve(need(0, 'globex'))).toMatchObject({ counts: [{ used: 10 }] });
      expect(await keyUses.lastUses(['k1', 'k2'])).toEqual([undefined, 2]);
    });

    test('goes with as many keys as it has', async () => {
      const { records } = await open();
      await records.createCustomer(CUSTOMER);
      const numbers = Array.from({ length: 450 }, (_, i) => String(i).padStart(64, '0'));
      await Promise.all(
        numbers.map((sha256) => createKeyWithCustomer(records, sha256, { id: `id-${sha256}`, customer: 'acme' })),
      );
      expect(await records.deleteCustomer('acme')).toBe(450);
      expect((await records.listKeys(undefined, 1000)).items).toEqual([]);
    });

    test('is not there to be deleted again, and may be created anew', async () => {
      const { records } = await open();
      await records.createCustomer(CUSTOMER);
      await createKeyWithCustomer(records, SHA256, KEY);
      expect(await records.deleteCustomer('acme')).toBe(1);
      expect(await records.deleteCustomer('acme')).toBeUndefined();
      expect(await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false })).toBe('created');
      expect((await records.listCustomerKeys('acme', undefined, 1000)).items).toEqual([]);
      expect(await records.deleteCustomer('acme')).toBe(0);
    });
  });

  describe(`${name}: changes are told`, () => {
    const ofKey = { kind: 'key', sha256: SHA256 };
    const ofCustomer = { kind: 'customer', id: 'acme' };

    test.each<[string, (store: OpenedStore) => Promise<unknown>, object]>([
      ['a key that is changed', ({ records }) => records.updateKey('k1', { name: 'x' }), ofKey],
      ['a key that is replaced', ({ records }) => records.retireKey('k1', KEY, REPLACEMENT), ofKey],
      ['a key that is taken away', ({ records }) => records.discardKey('k1'), ofKey],
      ['a key whose customer is deleted', ({ records }) => records.deleteCustomer('acme'), ofKey],
      ['a customer that is changed', ({ records }) => records.updateCustomer('acme', { plan: 'starter' }), ofCustomer],
      ['a customer that is deleted', ({ records }) => records.deleteCustomer('acme'), ofCustomer],
    ])('of %s', async (_what, change, expected) => {
      const store = await open();
      await store.records.createCustomer(CUSTOMER);
      await createKeyWithCustomer(store.records, SHA256, KEY);
      await store.records.findKey(SHA256);
      await store.records.findCustomer('acme');
      const pushed = new RecordedInvalidations(store.invalidations);
      await change(store);
      await expect.poll(() => pushed.all).toContainEqual(expected);
    });
  });
}
