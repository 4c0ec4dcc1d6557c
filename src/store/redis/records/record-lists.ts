/**
 * Lists of keys and customers. A list implies that other records do not exist, so listing fails when the store lost its
 * data or evicted keys: see data-loss-detection.ts.
 */
import { isCustomerId } from '../../../formats/ids.ts';
import type { StoreOp } from '../../observer.ts';
import { CUSTOMER_FIELDS, customerRecordFrom } from '../../record-fields.ts';
import type { RecordStore } from '../../records.ts';
import { readHashes } from '../connection/channel.ts';
import type { DataLossDetection } from '../installation/data-loss-detection.ts';
import { isSha256 } from '../protocol/key-names.ts';
import type { KeyIndex } from './key-index.ts';
import { scanPage, scanSetPage } from './name-scan.ts';

type RecordLists = Pick<RecordStore, 'listCustomers' | 'readCustomers' | 'listKeys' | 'listCustomerKeys'>;

export function redisRecordLists(index: KeyIndex, dataLoss: DataLossDetection): RecordLists {
  const { connection, names } = index;

  /** Reads the marks after the last read of records, so that records lost before it do not count as never created. */
  const requireWhole = async (op: StoreOp) => {
    await connection.run(op, (redis) => dataLoss.readMarksOn(redis));
    await dataLoss.requireCertainty('other');
  };

  const readCustomers: RecordLists['readCustomers'] = async (ids) => {
    const op = 'list_customers';
    const records = ids.map((id) => names.customerRecord(id));
    const fields = await readHashes(connection, op, records, CUSTOMER_FIELDS);
    await requireWhole(op);
    return ids.map((id, i) => (fields[i] && isCustomerId(id) ? customerRecordFrom(id, fields[i]) : undefined));
  };

  return {
    readCustomers,

    async listCustomers(cursor, limit) {
      const op = 'list_customers';
      const page = await scanPage(connection, op, names.customerRecords.pattern, cursor, limit);
      const ids = page.names.flatMap((name) => names.customerRecords.parse(name) ?? []).filter(isCustomerId);
      const records = await readCustomers(ids);
      return { items: records.filter((record) => record !== undefined), next: page.next };
    },

    async listKeys(cursor, limit) {
      const op = 'list_keys';
      const page = await scanPage(connection, op, names.keyRecords.pattern, cursor, limit);
      const sha256s = page.names.flatMap((name) => names.keyRecords.parse(name) ?? []).filter(isSha256);
      const records = await index.readRecords(op, sha256s);
      await requireWhole(op);
      return { items: records.filter((record) => record !== undefined), next: page.next };
    },

    async listCustomerKeys(customer, cursor, limit) {
      const op = 'list_customer_keys';
      const page = await scanSetPage(connection, op, names.customerKeys(customer), cursor, limit);
      const entries = await index.read(op, page.names);
      await requireWhole(op);
      return {
        items: entries.flatMap(({ record }) => (record?.customer === customer ? [record] : [])),
        next: page.next,
      };
    },
  };
}
