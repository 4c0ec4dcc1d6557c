/** What every store promises of lists. Part of the contract suite. */
import { describe, expect, test } from 'vitest';
import { type CustomerSearch, fragmentsOf } from '../../src/store/customer-search.ts';
import { InvalidCursorError } from '../../src/store/errors.ts';
import type { InspectedRecord } from '../../src/store/record-faults.ts';
import type { KeyRecord } from '../../src/store/record-fields.ts';
import { createKeyWithCustomer } from '../support/stored-key.ts';
import { everyPage } from './every-page.ts';
import type { OpenedStore } from './opened-store.ts';

const CUSTOMERS = 23;
const KEYS = 37;
const MANY_KEYS = 230;
const LIMITS = [1, 2, 7, CUSTOMERS, 1000];

export function listsContract(name: string, open: () => Promise<OpenedStore>): void {
  const customers = Array.from({ length: CUSTOMERS }, (_, i) => ({
    id: `customer-${i}`,
    plan: 'starter',
    suspended: i % 2 === 0,
    ...(i % 3 === 0 && { requestsPerHour: i + 1 }),
  }));
  const keys = Array.from({ length: KEYS }, (_, i): KeyRecord => ({ id: `key-${i}`, customer: `customer-${i % 5}` }));

  async function openFilled(): Promise<OpenedStore> {
    const opened = await open();
    await Promise.all([
      ...customers.map((customer) => opened.records.createCustomer(customer)),
      ...keys.map((key) => createKeyWithCustomer(opened.records, sha256Of(key), key)),
    ]);
    return opened;
  }

  describe(`${name}: lists`, () => {
    test.each(LIMITS)('give every customer and every key once, in pages of at most %d', async (limit) => {
      const { records } = await openFilled();
      const customerPages = await everyPage((cursor) => records.listCustomers(cursor, limit));
      const keyPages = await everyPage((cursor) => records.listKeys(cursor, limit));
      for (const page of [...customerPages, ...keyPages]) expect(page.length).toBeLessThanOrEqual(limit);
      expect(byId(customerPages.flat())).toEqual(byId(customers));
      expect(byId(keyPages.flat())).toEqual(byId(keys));
    });

    test('end at once when there is nothing', async () => {
      const { records } = await open();
      expect(await records.listCustomers(undefined, 1)).toEqual({ items: [], next: undefined });
      expect(await records.listKeys(undefined, 1)).toEqual({ items: [], next: undefined });
      expect((await records.listCustomerKeys('acme', undefined, 1000)).items).toEqual([]);
    });

    test.each([1, 3, 10])(
      'give all that is there from the first page to the last, whatever comes and goes between pages of %d',
      async (limit) => {
        const { records } = await openFilled();
        const passing = keys.filter((_, i) => i % 3 === 0);
        const lasting = keys.filter((_, i) => i % 3 !== 0);
        let step = 0;
        const pages = await everyPage(
          (cursor) => records.listKeys(cursor, limit),
          async () => {
            const gone = passing[step];
            if (gone !== undefined) await records.discardKey(gone.id);
            if (step < 50)
              await createKeyWithCustomer(records, `${step}`.padStart(64, 'f'), {
                id: `late-${step}`,
                customer: 'late',
              });
            step += 1;
          },
        );
        const listed = new Set(pages.flat().map(({ id }) => id));
        expect(lasting.filter(({ id }) => !listed.has(id))).toEqual([]);
      },
    );

    test.each([
      '',
      'x',
      '!',
      '0.',
      '-1',
      '1.2.3',
      '1.0123456789abcdef',
      '1.0123456789abcdef.18446744073709551616',
      '18446744073709551616',
      ' 0',
      'a b',
      '\u{1f511}',
    ])('refuse a cursor that no list gave: %j', async (cursor) => {
      const { records, observer } = await open();
      await expect(records.listCustomers(cursor, 10)).rejects.toBeInstanceOf(InvalidCursorError);
      await expect(records.listKeys(cursor, 10)).rejects.toBeInstanceOf(InvalidCursorError);
      await expect(records.listCustomerKeys('acme', cursor, 10)).rejects.toBeInstanceOf(InvalidCursorError);
      await expect(records.findCustomers({}, cursor, 10)).rejects.toBeInstanceOf(InvalidCursorError);
      expect(observer.calls).toEqual([]);
    });

    test('have cursors that can stand in a URL as they are, and hold nothing of a key', async () => {
      const { records } = await openFilled();
      const cursors: string[] = [];
      for (let cursor = (await records.listKeys(undefined, 1)).next; cursor !== undefined; ) {
        cursors.push(cursor);
        cursor = (await records.listKeys(cursor, 1)).next;
      }
      expect(cursors.length).toBeGreaterThan(10);
      for (const cursor of cursors) {
        expect(cursor).toMatch(/^[A-Za-z0-9._~-]+$/);
        const plain = cursor + Buffer.from(cursor, 'base64url').toString();
        for (const key of keys) expect(plain).not.toContain(sha256Of(key).slice(0, 20));
      }
    });

    test.each([1, 7, 100, 199, 200, 1000])(
      'of one customer with many keys give each once, in pages of at most %d',
      async (limit) => {
        const { records } = await open();
        await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
        const many = Array.from({ length: MANY_KEYS }, (_, i) => ({ id: `many-${i}`, customer: 'acme' }));
        await Promise.all(many.map((key) => records.createKey(sha256Of(key), key)));
        const pages = await everyPage((cursor) => records.listCustomerKeys('acme', cursor, limit));
        for (const page of pages) expect(page.length).toBeLessThanOrEqual(limit);
        expect(byId(pages.flat())).toEqual(byId(many));
      },
    );

    test('of one customer lose no key when the list grows long between two pages', async () => {
      const { records } = await open();
      await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
      const create = (from: number, to: number) =>
        Promise.all(
          Array.from({ length: to - from }, (_, i) => ({ id: `many-${from + i}`, customer: 'acme' })).map((key) =>
            records.createKey(sha256Of(key), key),
          ),
        );
      await create(0, 150);
      const pages = await everyPage(
        (cursor) => records.listCustomerKeys('acme', cursor, 100),
        () => create(150, MANY_KEYS),
      );
      const listed = new Set(pages.flat().map(({ id }) => id));
      for (let i = 0; i < 150; i += 1) expect(listed).toContain(`many-${i}`);
    });

    test('of one customer give its keys as they are, and no others', async () => {
      const { records } = await open();
      const own = [
        { id: 'a', customer: 'acme', createdAt: '2026-03-01T00:00:00Z' },
        { id: 'b', customer: 'acme', createdAt: 'yesterday' },
        { id: 'c', customer: 'acme' },
      ];
      for (const key of own) await createKeyWithCustomer(records, sha256Of(key), key);
      await createKeyWithCustomer(records, 'e'.repeat(64), { id: 'another', customer: 'acme2' });
      expect(byId((await records.listCustomerKeys('acme', undefined, 1000)).items)).toEqual(own);
    });

    const FOUND = [
      { id: 'acme', name: 'Zenith  Foods', plan: 'starter', suspended: false },
      { id: 'acme-2', name: 'acme', plan: 'starter', suspended: true },
      { id: 'Globex', name: 'The Acme Works of Acme', plan: 'business', suspended: false },
      { id: 'other', name: 'Ünlü \u{1f511}keys', plan: 'starter-2', suspended: true },
      { id: 'unnamed', plan: 'business', suspended: false },
    ];

    test.each<[CustomerSearch, string[]]>([
      [{ fragments: fragmentsOf('ACME') }, ['Globex', 'acme', 'acme-2']],
      [{ fragments: fragmentsOf('acme-') }, ['acme-2']],
      [{ fragments: fragmentsOf('works acme') }, ['Globex']],
      [{ fragments: fragmentsOf('foods  ACME ') }, ['acme']],
      [{ fragments: fragmentsOf('cme -2') }, ['acme-2']],
      [{ fragments: fragmentsOf('acme\nzenith') }, ['acme']],
      [{ fragments: fragmentsOf('acme none') }, []],
      [{ fragments: fragmentsOf('ünL') }, ['other']],
      [{ fragments: fragmentsOf('ÜNL other') }, ['other']],
      [{ fragments: fragmentsOf('\u{1f511}') }, ['other']],
      [{ fragments: fragmentsOf('%') }, []],
      [{ suspended: true }, ['acme-2', 'other']],
      [{ suspended: false }, ['Globex', 'acme', 'unnamed']],
      [{ plans: ['starter'] }, ['acme', 'acme-2']],
      [{ plans: ['starter-2', 'business'] }, ['Globex', 'other', 'unnamed']],
      [{ plans: [] }, []],
      [{ fragments: ['a'], suspended: true, plans: ['starter'] }, ['acme-2']],
      [{}, ['Globex', 'acme', 'acme-2', 'other', 'unnamed']],
    ])('find the customers that match %j, each once, in pages of any size', async (search, expected) => {
      const { records } = await open();
      for (const customer of FOUND) await records.createCustomer(customer);
      for (const limit of [1, 2, 1000]) {
        const pages = await everyPage((cursor) => records.findCustomers(search, cursor, limit));
        for (const page of pages) expect(page.length).toBeLessThanOrEqual(limit);
        expect(byId(pages.flat())).toEqual(FOUND.filter(({ id }) => expected.includes(id)).toSorted(compareIds));
      }
    });

    test('find a customer by what it is now, and never by what it was', async () => {
      const { records } = await open();
      const find = async (search: CustomerSearch) =>
        (await everyPage((cursor) => records.findCustomers(search, cursor, 10))).flat().map(({ id }) => id);
      await records.createCustomer({ id: 'acme', name: 'Before', plan: 'starter', suspended: true });
      await records.updateCustomer('acme', { name: 'After', plan: 'business', suspended: false });
      for (const search of [{ fragments: ['before'] }, { plans: ['starter'] }, { suspended: true }]) {
        expect(await find(search)).toEqual([]);
      }
      for (const search of [{ fragments: ['after'] }, { plans: ['business'] }, { suspended: false }]) {
        expect(await find(search)).toEqual(['acme']);
      }
      await records.deleteCustomer('acme');
      expect(await find({ fragments: ['acme'] })).toEqual([]);
      expect(await find({ plans: ['business'] })).toEqual([]);
    });

    test('read customers by their ids, in the order asked for', async () => {
      const { records } = await openFilled();
      const read = await records.readCustomers(['customer-2', 'none', 'customer-0']);
      expect(read.map((record) => record?.id)).toEqual(['customer-2', undefined, 'customer-0']);
      expect(await records.readCustomers([])).toEqual([]);
    });

    test('are in order already when this program wrote everything: reindex finds nothing to do', async () => {
      const { records } = await openFilled();
      expect(await records.reindex()).toEqual({
        keys: KEYS,
        entriesAdded: 0,
        entriesDropped: 0,
        passedOver: {},
        examples: [],
      });
    });

    test('an inspection reads every record once, with nothing wrong about what this program wrote', async () => {
      const { records } = await openFilled();
      const found: InspectedRecord[] = [];
      for await (const piece of records.inspect()) found.push(...piece);
      const ofKeys = found.filter((each) => each.kind === 'key');
      expect(ofKeys.map(({ key }) => key?.id).toSorted()).toEqual(keys.map(({ id }) => id).toSorted());
      expect(found.flatMap(({ faults }) => faults)).toEqual([]);
      expect(ofKeys.every(({ customerExists }) => customerExists)).toBe(true);
      const ofCustomers = found.filter((each) => each.kind === 'customer');
      expect(ofCustomers.map(({ customer }) => customer?.id).toSorted()).toEqual(
        customers.map(({ id }) => id).toSorted(),
      );
    });
  });
}

function sha256Of({ id }: Pick<KeyRecord, 'id'>): string {
  return Buffer.from(id).toString('hex').padEnd(64, '0');
}

function byId<Item extends { readonly id: string }>(items: readonly Item[]): Item[] {
  return items.toSorted(compareIds);
}

function compareIds(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : 1;
}
