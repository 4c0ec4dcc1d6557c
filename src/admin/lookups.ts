import { isCustomerId } from '../customer-id.ts';
import type { CustomerRecord, KeyRecord, RecordStore } from '../store/store.ts';
import { Refusal } from './refusal.ts';

/** Whoever writes records directly may name keys as they like, within reason. */
const LONGEST_KEY_ID = 256;

/** @throws Refusal `not_found`, also for what can be no customer's id. */
export async function requireCustomer(
  records: Pick<RecordStore, 'findCustomerRecord'>,
  id: string,
): Promise<CustomerRecord> {
  return (await records.findCustomerRecord(possibleCustomerId(id))) ?? noSuchCustomer();
}

/** @throws Refusal `not_found`, also for what can be no key's id. */
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
