/** What every store promises of last uses and of the audit log. Part of the contract suite. */
import { describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../src/store/audit.ts';
import { InvalidCursorError } from '../../src/store/errors.ts';
import { createKeyWithCustomer } from '../support/stored-key.ts';
import { everyPage } from './every-page.ts';
import type { OpenedStore } from './opened-store.ts';

const NOW_MS = Date.UTC(2026, 2, 1, 12);
const ENTRY: AuditEntry = { at: '2026-03-01T12:00:00.000Z', actor: 'token', from: '::1', action: 'key.create' };

export function notesContract(name: string, open: () => Promise<OpenedStore>): void {
  async function openWithKeys(): Promise<OpenedStore> {
    const opened = await open();
    for (const id of ['k1', 'k2', 'k3']) {
      await createKeyWithCustomer(opened.records, Buffer.from(id).toString('hex').padEnd(64, '0'), {
        id,
        customer: 'acme',
      });
    }
    return opened;
  }

  describe(`${name}: last uses`, () => {
    test('are known by key id, in the order of the question', async () => {
      const { keyUses } = await openWithKeys();
      await keyUses.noteUses([
        { keyId: 'k1', usedAtMs: NOW_MS },
        { keyId: 'k2', usedAtMs: NOW_MS + 1 },
      ]);
      expect(await keyUses.lastUses(['k2', 'unknown', 'k1', 'k3', 'k2'])).toEqual([
        NOW_MS + 1,
        undefined,
        NOW_MS,
        undefined,
        NOW_MS + 1,
      ]);
    });

    test('only ever become later, whichever gateway tells of them last', async () => {
      const { keyUses } = await openWithKeys();
      await keyUses.noteUses([{ keyId: 'k1', usedAtMs: NOW_MS }]);
      await keyUses.noteUses([{ keyId: 'k1', usedAtMs: NOW_MS - 1 }]);
      expect(await keyUses.lastUses(['k1'])).toEqual([NOW_MS]);
      await keyUses.noteUses([
        { keyId: 'k1', usedAtMs: NOW_MS + 2 },
        { keyId: 'k1', usedAtMs: NOW_MS + 1 },
      ]);
      expect(await keyUses.lastUses(['k1'])).toEqual([NOW_MS + 2]);
    });

    test('of none are none', async () => {
      const { keyUses } = await open();
      await keyUses.noteUses([]);
      expect(await keyUses.lastUses([])).toEqual([]);
    });

    test('of thousands of keys are noted and read in one call', async () => {
      const { records, keyUses } = await open();
      const keyIds = Array.from({ length: 2345 }, (_, i) => `key-${i}`);
      await Promise.all(
        keyIds.map((id, i) =>
          createKeyWithCustomer(records, String(i).padStart(64, '0'), { id, customer: `customer-${i}` }),
        ),
      );
      await keyUses.noteUses(keyIds.map((keyId, i) => ({ keyId, usedAtMs: NOW_MS + i })));
      expect(await keyUses.lastUses(keyIds)).toEqual(keyIds.map((_, i) => NOW_MS + i));
    });

    test('invalidate nothing', async () => {
      const { records, keyUses, invalidations } = await openWithKeys();
      for (const { id } of (await records.listCustomerKeys('acme', undefined, 1000)).items)
        await records.findKeyById(id);
      let told = 0;
      const stop = invalidations.subscribe(() => {
        told += 1;
      });
      await keyUses.noteUses([{ keyId: 'k1', usedAtMs: NOW_MS }]);
      await keyUses.lastUses(['k1']);
      // A round trip on the connection that would carry the push.
      await records.findKeyById('k1');
      stop();
      expect(told).toBe(0);
    });
  });

  describe(`${name}: the audit log`, () => {
    test('gives back what was appended, with an id', async () => {
      const { audit } = await open();
      const full: AuditEntry = {
        ...ENTRY,
        actor: 'jwt:Zoë "Q"\n',
        customer: 'acme',
        keyId: 'k1',
        details: { name: 'production', requests_per_hour: 5, suspended: false, expires_at: null },
        before: { name: null, requests_per_hour: 4 },
      };
      await audit.append(ENTRY);
      await audit.append(full);
      const { items, next } = await audit.list(undefined, 10);
      expect(items).toEqual([
        { ...full, id: expect.any(String) },
        { ...ENTRY, id: expect.any(String) },
      ]);
      expect(new Set(items.map(({ id }) => id)).size).toBe(2);
      expect(next).toBeUndefined();
    });

    test.each([1, 2, 5, 12, 13, 100])('gives every entry once, newest first, in pages of %d', async (limit) => {
      const { audit } = await open();
      const actions = Array.from({ length: 12 }, (_, i) => `action-${i}`);
      for (const action of actions) await audit.append({ ...ENTRY, action });
      const pages = await everyPage((cursor) => audit.list(cursor, limit));
      expect(pages).toHaveLength(Math.ceil(12 / limit));
      expect(pages.flat().map(({ action }) => action)).toEqual(actions.toReversed());
    });

    test('goes on where it was, whatever is appended meanwhile', async () => {
      const { audit } = await open();
      for (const action of ['first', 'second', 'third']) await audit.append({ ...ENTRY, action });
      const { next } = await audit.list(undefined, 1);
      await audit.append({ ...ENTRY, action: 'fourth' });
      const rest = await audit.list(next, 10);
      expect(rest.items.map(({ action }) => action)).toEqual(['second', 'first']);
      expect(rest.next).toBeUndefined();
    });

    test('is empty at first', async () => {
      const { audit } = await open();
      expect(await audit.list(undefined, 10)).toEqual({ items: [], next: undefined });
    });

    test.each(['', 'x', '5.5', '-', '1-', '-1', '18446744073709551616-0', '(1-1', '+', 'MS4=', '0-0', '00-00'])(
      'refuses a cursor that it never gave: %j',
      async (cursor) => {
        const { audit, observer } = await open();
        await expect(audit.list(cursor, 10)).rejects.toBeInstanceOf(InvalidCursorError);
        expect(observer.calls).toEqual([]);
      },
    );
  });
}
