/** Keys and customers in SQLite. Columns have the names and meanings of the Redis fields. */
import type { StatementSync } from 'node:sqlite';
import { searchedFields, searchMatcher } from '../customer-search.ts';
import type { Invalidation } from '../invalidations.ts';
import type { StoreOp } from '../observer.ts';
import { forgivePeriod } from '../period-counts.ts';
import { type DecideChange, recordChanges } from '../record-changes.ts';
import { customerFaults, keyFaults } from '../record-faults.ts';
import {
  CUSTOMER_FIELDS,
  type CustomerFields,
  type CustomerRecord,
  customerFields,
  customerRecordFrom,
  ENFORCED_CUSTOMER_FIELDS,
  ENFORCED_KEY_FIELDS,
  type Fields,
  KEY_FIELDS,
  type KeyFields,
  keyFields,
  keyRecordFrom,
} from '../record-fields.ts';
import type { RecordStore } from '../records.ts';
import { reset } from '../window-arithmetic.ts';
import { cursorAfter, idBefore, pageOf } from './cursor.ts';
import type { EmbeddedContext } from './database.ts';
import { sqliteHashes, sqlitePeriods } from './windows.ts';

type KeyRow = Required<KeyFields> & { readonly sha256: string; readonly id: string };
type CustomerRow = Required<CustomerFields> & { readonly id: string };

/** Rows that an inspection holds in memory at once. */
const PAGE = 1000;
/** Rows that one page of a search looks at, in about a millisecond. */
const SEARCHED_ROWS = 2000;

/** Where the data of a customer is, besides its record and its keys. */
const TABLES_BY_CUSTOMER = [
  'grant_note',
  'bucket',
  'window',
  'period',
  'notice',
  'notice_mark',
  'notify_secret',
  'portal_session',
  'portal_write',
  'usage_hour',
  'usage_day',
  'near_limit',
  'deprecated_calls',
];

/** Returns the records in SQLite. Calls `changed` synchronously with every change. */
export function embeddedRecords(
  { database, sql, run, transact, clock }: EmbeddedContext,
  changed: (change: Invalidation) => void,
): RecordStore {
  const insertCustomer = database.prepare(insertInto('customer', ['id', ...CUSTOMER_FIELDS]));
  const insertKey = database.prepare(insertInto('api_key', ['sha256', ...KEY_FIELDS]));
  const updateCustomer = database.prepare(updateOf('customer', CUSTOMER_FIELDS));
  const updateKey = database.prepare(updateOf('api_key', ['sha256', ...KEY_FIELDS]));
  const deleteDataOf = TABLES_BY_CUSTOMER.map((table) => database.prepare(`DELETE FROM ${table} WHERE customer = ?`));

  const customerRow = (id: string) => sql.get<CustomerRow>`SELECT * FROM customer WHERE id = ${id}`;
  const keyRow = (id: string) => sql.get<KeyRow>`SELECT * FROM api_key WHERE id = ${id}`;
  const keysAfter = (id: string, max: number) =>
    sql.all<KeyRow>`SELECT * FROM api_key WHERE id > ${id} ORDER BY id LIMIT ${max}`;
  const keysOf = (customer: string, after: string, max: number) =>
    sql.all<KeyRow>`SELECT * FROM api_key WHERE customer = ${customer} AND id > ${after} ORDER BY id LIMIT ${max}`;
  const customersAfter = (id: string, max: number) =>
    sql.all<CustomerRow>`SELECT * FROM customer WHERE id > ${id} ORDER BY id LIMIT ${max}`;
  const customerFrom = (row: CustomerRow | undefined) => row && customerRecordFrom(row.id, row);
  const keyFrom = (row: KeyRow | undefined) => row && keyRecordFrom(row);

  /** Returns a function that changes the record in a row. */
  const changeIn =
    <Row extends KeyRow | CustomerRow, R>(
      rowOf: (id: string) => Row | undefined,
      recordFrom: (row: Row | undefined) => R | undefined,
      update: StatementSync,
      invalidationOf: (row: Row) => Invalidation,
    ) =>
    (op: StoreOp, id: string, decide: DecideChange<R>) =>
      run(op, () => {
        const row = rowOf(id);
        const current = recordFrom(row);
        if (row === undefined || current === undefined) return undefined;
        const fields = decide(current);
        if (fields instanceof Error) return fields;
        if (Object.keys(fields).length === 0) return current;
        update.run({ ...row, ...fields });
        changed(invalidationOf(row));
        return recordFrom(rowOf(id));
      });
  const changes = recordChanges(
    changeIn(customerRow, customerFrom, updateCustomer, ({ id }) => ({ kind: 'customer', id })),
    changeIn(keyRow, keyFrom, updateKey, ({ sha256 }) => ({ kind: 'key', sha256 })),
  );
  const removeKey = ({ id, sha256 }: KeyRow) => {
    sql.run`DELETE FROM api_key WHERE id = ${id}`;
    sql.run`DELETE FROM key_use WHERE key_id = ${id}`;
    changed({ kind: 'key', sha256 });
  };
  const hashOf = sqliteHashes(sql);

  return {
    ...changes,

    findKey: (sha256) =>
      run('read_key', () => {
        const row = sql.get<KeyRow>`SELECT * FROM api_key WHERE sha256 = ${sha256}`;
        return keyRecordFrom(only(ENFORCED_KEY_FIELDS, row));
      }),

    findCustomer: (id) =>
      run('read_customer', () => customerRecordFrom(id, only(ENFORCED_CUSTOMER_FIELDS, customerRow(id)))),

    findCustomerRecord: (id) => run('read_customer', () => customerFrom(customerRow(id))),

    createCustomer: (record) =>
      run('create_customer', () => {
        const { changes } = insertCustomer.run({ id: record.id, ...customerFields(record) });
        if (changes === 0) return 'exists';
        changed({ kind: 'customer', id: record.id });
        return 'created';
      }),

    createKey: (sha256, record) =>
      run('create_key', () => {
        if (customerRow(record.customer) === undefined) return 'no_customer';
        const { changes } = insertKey.run({ sha256, ...keyFields(record) });
        if (changes === 0) return 'exists';
        changed({ kind: 'key', sha256 });
        return 'created';
      }),

    findKeyById: (keyId) => run('read_key_id', () => keyFrom(keyRow(keyId))),

    resetUsage: (id, resetAt) =>
      transact('reset_usage', (): CustomerRecord | undefined => {
        reset(hashOf(id));
        sql.run`UPDATE customer SET usage_reset_at = ${resetAt} WHERE id = ${id}`;
        changed({ kind: 'customer', id });
        return customerFrom(customerRow(id));
      }),

    resetKeyWindow: (customer, root) => transact('reset_usage', () => reset(hashOf(customer, root))),

    resetPeriod: (id, resetAt, period) =>
      transact('reset_usage', (): CustomerRecord | undefined => {
        forgivePeriod(sqlitePeriods(sql, id), period, clock.nowMs());
        sql.run`UPDATE customer SET period_reset_at = ${resetAt} WHERE id = ${id}`;
        changed({ kind: 'customer', id });
        return customerFrom(customerRow(id));
      }),

    listCustomers: async (cursor, limit) => {
      const after = idBefore(cursor);
      return run('list_customers', () => pageOf(customersAfter(after, limit + 1), limit, customerFrom));
    },

    findCustomers: async (search, cursor, limit) => {
      const { fragments = [], suspended } = search;
      // Two passes over all rows, one for each rank. A cursor has the rank before the id.
      const place = idBefore(cursor);
      const isLastPass = fragments.length === 0 || place.startsWith('1');
      const [rank, after] = [place.slice(0, 1) || '0', place.slice(1)];
      // SQLite lowers ASCII letters alone.
      const text = fragments.find((fragment) => /^[\x20-\x7e]*$/.test(fragment)) ?? '';
      const rankOf = searchMatcher(search);
      return run('list_customers', () => {
        const end = sql.get<Pick<CustomerRow, 'id'>>`
          SELECT id FROM customer WHERE id > ${after} ORDER BY id LIMIT 1 OFFSET ${SEARCHED_ROWS - 1}`;
        // Leaves out most rows that do not match: making records of all would take many times as long.
        const rows = sql.all<CustomerRow>`
          SELECT * FROM (SELECT * FROM customer WHERE id > ${after} ORDER BY id LIMIT ${SEARCHED_ROWS})
          WHERE (${Number(suspended === true)} = 0 OR suspended <> '')
            AND instr(lower(id || char(10) || coalesce(name, '')), ${text}) > 0
          ORDER BY id`;
        const found = rows
          .flatMap((row) => customerFrom(row) ?? [])
          .filter((customer) => rankOf(searchedFields(customer)) === (rank === '1' ? 'id' : 'name'));
        const items = found.slice(0, limit);
        const last = found.length > limit ? items.at(-1) : end;
        const next = last ? `${rank}${last.id}` : isLastPass ? undefined : '1';
        return { items, next: next && cursorAfter(next) };
      });
    },

    readCustomers: (ids) => run('list_customers', () => ids.map((id) => customerFrom(customerRow(id)))),

    deleteCustomer: (id) =>
      transact('delete_customer', () => {
        if (customerRow(id) === undefined) return undefined;
        const keys = keysOf(id, '', -1);
        keys.forEach(removeKey);
        for (const each of deleteDataOf) each.run(id);
        sql.run`DELETE FROM customer WHERE id = ${id}`;
        changed({ kind: 'customer', id });
        return keys.length;
      }),

    listKeys: async (cursor, limit) => {
      const after = idBefore(cursor);
      return run('list_keys', () => pageOf(keysAfter(after, limit + 1), limit, keyFrom));
    },

    listCustomerKeys: async (customer, cursor, limit) => {
      const after = idBefore(cursor);
      return run('list_customer_keys', () => pageOf(keysOf(customer, after, limit + 1), limit, keyFrom));
    },

    discardKey: (keyId) =>
      transact('discard_key', () => {
        const row = keyRow(keyId);
        if (row !== undefined) removeKey(row);
      }),

    // Nothing to repair: keys and their indexes are one table, which only this program writes.
    reindex: () =>
      run('reindex', () => ({
        keys: sql.get<{ keys: number }>`SELECT count(*) AS keys FROM api_key`?.keys ?? 0,
        entriesAdded: 0,
        entriesDropped: 0,
        passedOver: {},
        examples: [],
      })),

    async *inspect() {
      yield* pages((after) =>
        run('inspect', () =>
          keysAfter(after, PAGE).map((row) => ({
            kind: 'key' as const,
            id: row.id,
            record: `api_key ${row.id}`,
            faults: keyFaults(row),
            key: keyFrom(row),
            customerExists: customerRow(row.customer ?? '') !== undefined,
          })),
        ),
      );
      yield* pages((after) =>
        run('inspect', () =>
          customersAfter(after, PAGE).map((row) => ({
            kind: 'customer' as const,
            id: row.id,
            record: `customer ${row.id}`,
            faults: customerFaults(row.id, row),
            customer: customerFrom(row),
          })),
        ),
      );
    },
  };
}

function insertInto(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns}) VALUES (${columns.map((column) => `:${column}`)}) ON CONFLICT DO NOTHING`;
}

function updateOf(table: string, columns: readonly string[]): string {
  return `UPDATE ${table} SET ${columns.map((column) => `${column} = :${column}`)} WHERE id = :id`;
}

/** Yields all rows in pages. `read` receives the id after which its page begins. */
async function* pages<Row extends { readonly id: string }>(
  read: (after: string) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  let rows = await read('');
  for (; rows.length > 0; rows = await read(rows.at(-1)?.id ?? '')) yield rows;
}

/** Returns these fields of a row. Without a row, none is set. */
function only<Name extends string>(names: readonly Name[], row: Fields<Name> = {}): Fields<Name> {
  return Object.fromEntries(names.map((name) => [name, row[name]])) as Fields<Name>;
}
