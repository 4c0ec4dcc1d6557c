import type { KeyRecord } from '../../src/store/record-fields.ts';
import type { RecordStore } from '../../src/store/records.ts';

/** Creates a key, and before it its customer where there is none: a key without a customer is not created. */
export async function createKeyWithCustomer(
  records: Pick<RecordStore, 'createCustomer' | 'createKey'>,
  sha256: string,
  record: KeyRecord,
): Promise<'created' | 'exists' | 'no_customer'> {
  await records.createCustomer({ id: record.customer, plan: 'starter', suspended: false });
  return records.createKey(sha256, record);
}

/** The key hash of a number. */
export const sha256Of = (number: number | string) => String(number).padStart(64, '0');
