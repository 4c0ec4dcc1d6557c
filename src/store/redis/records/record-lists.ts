/**
 * Lists of keys and customers. A list implies that other records do not exist, so listing fails when the store lost its
 * data or evicted keys: see data-loss-detection.ts.
 */

import { type CustomerKeys, customerKeyPage } from '../../customer-key-pages.ts';
import {
  CUSTOMER_FIELDS,
  type CustomerRecord,
  customerRecordFrom,
  isCustomerId,
  type KeyRecord,
} from '../../record-fields.ts';
import type { Page, RecordStore, StoreOp } from '../../store.ts';
import { readHashes } from '../connection/replies.ts';
import type { DataLossDetection } from '../installation/data-loss-detection.ts';
import {
  CUSTOMER_RECORDS,
  customerKeysName,
  customerRecordName,
  isSha256,
  KEY_RECORDS,
} from '../protocol/key-names.ts';
import type { FoundKey } from './key-expiry-index.ts';
import type { KeyIndex } from './key-index.ts';
import { scanPage, scanSetPage } from './name-scan.ts';

interface RecordLists extends Pick<RecordStore, 'listCustomers' | 'readCustomers' | 'listKeys' | 'listCustomerKeys'> {
  /** Like `listCustomers` and `listKeys`, as part of another call. */
  scanCustomers(op: StoreOp, cursor: string | undefined, limit: number): Promise<Page<CustomerRecord>>;
  scanKeys(op: StoreOp, cursor: string | undefined, limit: number): Promise<Page<FoundKey>>;
  readFoundKeys(op: StoreOp, sha256s: readonly string[]): Promise<readonly (FoundKey | undefined)[]>;
  readCustomersFor(op: StoreOp, ids: readonly string[]): Promise<readonly (CustomerRecord | undefined)[]>;
}

export function redisRecordLists(index: KeyIndex, dataLoss: DataLossDetection): RecordLists {
  const { connection, prefix } = index;

  /** Reads the marks after the last read of records, so that records lost before it do not count as never created. */
  const requireWhole = async (op: StoreOp) => {
    // Repairing an index says nothing about records that are missing.
    if (op === 'reindex') return;
    await connection.run(op, (redis) => dataLoss.readMarksOn(redis));
    await dataLoss.requireCertainty('other');
  };

  const recordsOf = async (op: StoreOp, customer: string, ids: readonly string[]): Promise<KeyRecord[]> => {
    const entries = await index.read(op, ids);
    await requireWhole(op);
    return entries.flatMap(({ record }) => (record?.customer === customer ? [record] : []));
  };

  const readCustomersFor: RecordLists['readCustomersFor'] = async (op, ids) => {
    const names = ids.map((id) => customerRecordName(prefix, id));
    const fields = await readHashes(connection, op, names, CUSTOMER_FIELDS);
    await requireWhole(op);
    return ids.map((id, i) => (fields[i] && isCustomerId(id) ? customerRecordFrom(id, fields[i]) : undefined));
  };

  const readFoundKeys: RecordLists['readFoundKeys'] = async (op, sha256s) => {
    const records = await index.readRecords(op, sha256s);
    await requireWhole(op);
    return sha256s.map((sha256, i) => records[i] && { sha256, record: records[i] });
  };

  const scanKeys: RecordLists['scanKeys'] = async (op, cursor, limit) => {
    const { names, next } = await scanPage(connection, op, KEY_RECORDS.pattern(prefix), cursor, limit);
    const sha256s = names.flatMap((name) => KEY_RECORDS.parse(prefix, name) ?? []).filter(isSha256);
    const found = await readFoundKeys(op, sha256s);
    return { items: found.filter((key) => key !== undefined), next };
  };

  const scanCustomers: RecordLists['scanCustomers'] = async (op, cursor, limit) => {
    const { names, next } = await scanPage(connection, op, CUSTOMER_RECORDS.pattern(prefix), cursor, limit);
    const ids = names.flatMap((name) => CUSTOMER_RECORDS.parse(prefix, name) ?? []).filter(isCustomerId);
    const records = await readCustomersFor(op, ids);
    return { items: records.filter((record) => record !== undefined), next };
  };

  return {
    readCustomersFor,
    readCustomers: (ids) => readCustomersFor('list_customers', ids),

    scanCustomers,
    listCustomers: (cursor, limit) => scanCustomers('list_customers', cursor, limit),
    readFoundKeys,
    scanKeys,

    async listKeys(cursor, limit) {
      const { items, next } = await scanKeys('list_keys', cursor, limit);
      return { items: items.map(({ record }) => record), next };
    },

    listCustomerKeys(customer, cursor, limit) {
      const op = 'list_customer_keys';
      const setName = customerKeysName(prefix, customer);
      const keys: CustomerKeys = {
        async readUpTo(max) {
          if ((await connection.run(op, (redis) => redis.scard(setName))) > max) return undefined;
          const ids = new Set<string>();
          for await (const piece of index.idsOf(op, customer)) for (const id of piece) ids.add(id);
          return recordsOf(op, customer, [...ids]);
        },
        async readPage(storeCursor) {
          const { names: ids, next } = await scanSetPage(connection, op, setName, storeCursor, limit);
          return { items: await recordsOf(op, customer, ids), next };
        },
      };
      return customerKeyPage(keys, cursor, limit);
    },
  };
}
