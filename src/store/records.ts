import type { KeyRestrictions } from '../formats/key-restrictions.ts';
import type { CustomerSearch } from './customer-search.ts';
import type { FaultCode, InspectedRecord, RecordFault } from './record-faults.ts';
import type {
  CustomerChange,
  CustomerRecord,
  EnforcedCustomer,
  EnforcedKey,
  KeyChange,
  KeyRecord,
} from './record-fields.ts';
import type { PeriodAnchor } from './windows.ts';

/** Returns the reason why the current record must not be changed, as an error; undefined when it may be changed. */
export type UpdateCheck<R> = (current: R) => Error | undefined;

export interface Page<Item> {
  readonly items: readonly Item[];
  /** The cursor of the next page; undefined on the last page. Opaque, in URL-safe characters. */
  readonly next: string | undefined;
}

/**
 * Lists are not snapshots. A record that exists from the first page to the last is listed. One that is created, deleted
 * or changed meanwhile may be missing, and a record may appear on two pages. List methods reject with
 * {@link InvalidCursorError}.
 */
export interface RecordStore {
  /** `sha256`: lower-case hex digest of the whole API key. */
  findKey(sha256: string): Promise<EnforcedKey | undefined>;
  findCustomer(id: string): Promise<EnforcedCustomer | undefined>;
  /** Resolves to the whole record, including the fields that do not affect requests. */
  findCustomerRecord(id: string): Promise<CustomerRecord | undefined>;
  createCustomer(record: CustomerRecord): Promise<'created' | 'exists'>;
  /** Creates a key only if its customer exists. A key created while its customer is being deleted is deleted too. */
  createKey(sha256: string, record: KeyRecord): Promise<'created' | 'exists' | 'no_customer'>;
  findKeyById(keyId: string): Promise<KeyRecord | undefined>;
  /** Sets `revokedAt` unless it is already set. Resolves to the resulting record, undefined when there is none. */
  revokeKey(keyId: string, revokedAt: string): Promise<KeyRecord | undefined>;
  /**
   * Deletes the customer's window and writes `usageResetAt`, atomically. Resolves to the resulting record, undefined
   * when there is none.
   */
  resetUsage(customer: string, resetAt: string): Promise<CustomerRecord | undefined>;
  /** Begins the window of a key anew, if it has one. `root`: see {@link KeyRecord}. */
  resetKeyWindow(customer: string, root: string): Promise<void>;
  /** Writes `usageResetAt`, which ends the key's leases. Resolves to the resulting record, undefined when there is none. */
  noteKeyReset(keyId: string, resetAt: string): Promise<KeyRecord | undefined>;
  /**
   * Lets the units that the present period has counted be used again, and writes `periodResetAt`, atomically. Resolves as
   * {@link resetUsage}.
   */
  resetPeriod(customer: string, resetAt: string, period: PeriodAnchor): Promise<CustomerRecord | undefined>;
  /** Lists at most `limit` customers, including those that other programs wrote. */
  listCustomers(cursor: string | undefined, limit: number): Promise<Page<CustomerRecord>>;
  /**
   * Lists at most `limit` customers that match. A page may have fewer, or none: the call is over after a bounded number
   * of records.
   */
  findCustomers(search: CustomerSearch, cursor: string | undefined, limit: number): Promise<Page<CustomerRecord>>;
  /** Reads these customers, in this order; undefined where there is no record. */
  readCustomers(ids: readonly string[]): Promise<readonly (CustomerRecord | undefined)[]>;
  /**
   * Resolves to the resulting record, undefined when there is none. When `check` returns an error for the current
   * record, rejects with it and changes nothing. Calls `check` again when the record has changed between check and
   * write.
   */
  updateCustomer(
    id: string,
    change: CustomerChange,
    check?: UpdateCheck<EnforcedCustomer>,
  ): Promise<CustomerRecord | undefined>;
  /**
   * Deletes the customer with its window, its usage history and its keys; keys that other programs wrote only if they
   * are indexed. Resolves to the number of deleted keys, undefined when there was no such customer. A repetition
   * completes a deletion that failed.
   */
  deleteCustomer(id: string): Promise<number | undefined>;
  /** Lists at most `limit` keys of all customers, including those that other programs wrote without index entries. */
  listKeys(cursor: string | undefined, limit: number): Promise<Page<KeyRecord>>;
  /** Lists at most `limit` keys of one customer; keys that other programs wrote only if they are indexed. */
  listCustomerKeys(customer: string, cursor: string | undefined, limit: number): Promise<Page<KeyRecord>>;
  /** Like {@link updateCustomer}. */
  updateKey(keyId: string, change: KeyChange, check?: UpdateCheck<EnforcedKey>): Promise<KeyRecord | undefined>;
  /**
   * Sets a key's replacement and the end of its grace period, atomically. Changes nothing when the key is revoked or
   * already replaced, or when its expiry, its limit or its restrictions are not the expected ones. Resolves to the resulting
   * record, undefined when there is none.
   */
  retireKey(
    keyId: string,
    expected: Pick<KeyRecord, 'expiresAt' | 'requestsPerHour' | keyof KeyRestrictions>,
    replacement: KeyReplacement,
  ): Promise<KeyRecord | undefined>;
  /** Deletes a key without a trace. Only for a key that was never handed out. */
  discardKey(keyId: string): Promise<void>;
  /**
   * Adds missing index entries of records that other programs wrote. Deletes entries without a matching record. Reports
   * on the indexes of keys by id and by customer. Safe to repeat and to run while gateways run.
   */
  reindex(): Promise<ReindexReport>;
  /** Reads every record as stored, in batches of bounded size; some records may appear twice. Changes nothing. */
  inspect(): AsyncIterable<readonly InspectedRecord[]>;
}

export interface KeyReplacement {
  readonly replacedBy: string;
  /** The end of the replaced key's grace period. */
  readonly expiresAt: string;
}

export interface ReindexReport {
  readonly keys: number;
  readonly entriesAdded: number;
  readonly entriesDropped: number;
  /** The number of key records that could not be indexed, by fault. */
  readonly passedOver: Readonly<Partial<Record<FaultCode, number>>>;
  /** At most ten of the records that could not be indexed. */
  readonly examples: readonly { readonly record: string; readonly fault: RecordFault }[];
}
