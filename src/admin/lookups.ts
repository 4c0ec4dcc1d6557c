import { isCustomerId } from '../store/record-ids.ts';
import type { CustomerRecord, KeyRecord, RecordStore } from '../store/store.ts';
import { Refusal } from './refusal.ts';

/** Programs that write records directly choose their own key ids, up to this length. */
const LONGEST_KEY_ID = 256;

/** Returns the customer. @throws Refusal `not_found`, also for an invalid customer id. */
export async function requireCustomer(
  records: Pick<RecordStore, 'findCustomerRecord'>,
  id: string,
): Promise<CustomerRecord> {
  return (await records.findCustomerRecord(possibleCustomerId(id))) ?? noSuchCustomer();
}

/** Returns the key. @throws Refusal `not_found`, also for an invalid key id. */
export async function requireKey(records: Pick<RecordStore, 'findKeyById'>, id: string): Promise<KeyRecord> {
  return (await records.findKeyById(possibleKeyId(id))) ?? noSuchKey();
}

export function possibleCustomerId(id: string): string {
  return isCustomerId(id) ? id : noSuchCustomer();
}

export function possibleKeyId(id: string): string {
  return id.length <= LONGEST_KEY_ID ? id : noSuchKey();
}

export function noSuchCustomer(): never {
  throw new Refusal('not_found', 'There is no customer with this id.');
}

export function noSuchKey(): never {
  throw new Refusal('not_found', 'There is no key with this id.');
}
