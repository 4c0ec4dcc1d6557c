/**
 * What the gateway keeps outside its own memory, as four interfaces: records (keys and customers), last uses of keys, the
 * audit log, and windows (the hourly counters). Redis and the embedded store implement them and pass one contract suite.
 */

import type { FaultCode, InspectedRecord, RecordFault } from './record-faults.ts';

/** An API key as stored under the SHA-256 of its value; the value itself is stored nowhere. Times: ISO 8601 UTC. */
export interface KeyRecord {
  readonly id: string;
  readonly customer: string;
  readonly name?: string;
  /** The first characters of the key, for people to recognise it by. */
  readonly prefix?: string;
  readonly createdAt?: string;
  readonly expiresAt?: string;
  readonly revokedAt?: string;
  /** The id of the key that was made to take its place: `expiresAt` ends its grace. */
  readonly replacedBy?: string;
}

/** What decisions about requests depend on. Texts for people are not in it: they may be of any size. */
export type EnforcedKey = Pick<KeyRecord, 'id' | 'customer' | 'expiresAt' | 'revokedAt' | 'replacedBy'>;

export interface CustomerRecord {
  readonly id: string;
  readonly plan: string;
  readonly name?: string;
  /** The customer's own limit. `'invalid'`: somebody wrote what is not an integer of at least 1. */
  readonly requestsPerHour?: number | 'invalid';
  readonly suspended: boolean;
  readonly usageResetAt?: string;
}

/** As {@link EnforcedKey}. */
export type EnforcedCustomer = Omit<CustomerRecord, 'name'>;

/** What is not named stays as it is; null unsets. */
export interface CustomerChange {
  readonly plan?: string;
  readonly name?: string | null;
  readonly requestsPerHour?: number | null;
  readonly suspended?: boolean;
}

/** What is not named stays as it is; null unsets. */
export interface KeyChange {
  readonly name?: string | null;
  readonly expiresAt?: string | null;
}

/** Why the record, as it is, must not be changed; undefined when it may be. */
export type UpdateCheck<R> = (current: R) => Error | undefined;

/** Throws what a check returned, outside of what turns failures into {@link StoreUnavailableError}. */
export function unlessRefused<R>(result: R | Error): R {
  if (result instanceof Error) throw result;
  return result;
}

/** How a key that is to be replaced was found; only `retired` changed anything. */
export type Retirement =
  | { readonly outcome: 'retired'; readonly record: KeyRecord }
  /** Revoked, or replaced before, or its expiry is not the expected one any more. */
  | { readonly outcome: 'changed'; readonly record: KeyRecord }
  | { readonly outcome: 'missing' };

/** Part of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Where the next page begins; undefined after the last. Opaque, of URL-safe characters. */
  readonly next: string | undefined;
}

/** The cursor is none that this store gave. */
export class InvalidCursorError extends Error {
  override readonly name = 'InvalidCursorError';
}

/**
 * Lists promise what a walk over a living store can: what is there from the first page to the last is listed; what
 * comes, goes or changes meanwhile may be listed or not, and in two pages something may be listed twice. Their methods
 * reject with {@link InvalidCursorError}.
 */
export interface RecordStore {
  /** `sha256`: lower-case hex digest of the whole API key. */
  findKey(sha256: string): Promise<EnforcedKey | undefined>;
  findCustomer(id: string): Promise<EnforcedCustomer | undefined>;
  /** With what only people read. */
  findCustomerRecord(id: string): Promise<CustomerRecord | undefined>;
  createCustomer(record: CustomerRecord): Promise<'created' | 'exists'>;
  /** A key of no customer is not created; one that is created while its customer is being deleted goes with it. */
  createKey(sha256: string, record: KeyRecord): Promise<'created' | 'exists' | 'no_customer'>;
  findKeyById(keyId: string): Promise<KeyRecord | undefined>;
  /** Sets `revokedAt` unless it is set already; the record as it is afterwards, undefined when there is none. */
  revokeKey(keyId: string, revokedAt: string): Promise<KeyRecord | undefined>;
  /**
   * Deletes the customer's window and writes `usageResetAt`, both at once; the record as it is afterwards, undefined
   * when there is none.
   */
  resetUsage(customer: string, resetAt: string): Promise<CustomerRecord | undefined>;
  /** At most `limit` customers, also such as other programs wrote. */
  listCustomers(cursor: string | undefined, limit: number): Promise<Page<CustomerRecord>>;
  /**
   * The record as it is afterwards, undefined when there is none. Rejects with the error that `check` returns for the record
   * that would be changed; then nothing is. Called again when the record was changed between check and write.
   */
  updateCustomer(
    id: string,
    change: CustomerChange,
    check?: UpdateCheck<EnforcedCustomer>,
  ): Promise<CustomerRecord | undefined>;
  /**
   * With its keys, those that other programs wrote once they are indexed, and its window. The number of keys that went
   * with it, undefined when there was no such customer.
   */
  deleteCustomer(id: string): Promise<number | undefined>;
  /** At most `limit` keys of all customers, also such as other programs wrote without their indexes. */
  listKeys(cursor: string | undefined, limit: number): Promise<Page<KeyRecord>>;
  /**
   * At most `limit` keys of one customer; those that other programs wrote once they are indexed. Costs what a page has, so
   * only the keys of a customer that has few come oldest first: see customer-key-pages.ts.
   */
  listCustomerKeys(customer: string, cursor: string | undefined, limit: number): Promise<Page<KeyRecord>>;
  /** As {@link updateCustomer}. */
  updateKey(keyId: string, change: KeyChange, check?: UpdateCheck<EnforcedKey>): Promise<KeyRecord | undefined>;
  /**
   * Gives a key that is neither revoked nor replaced, and expires when the caller thinks it does, a successor and the end
   * of its grace, all at once.
   */
  retireKey(keyId: string, expected: Pick<KeyRecord, 'expiresAt'>, replacement: KeyReplacement): Promise<Retirement>;
  /** Takes a key away as if it had never been. For one that nobody can have used. */
  discardKey(keyId: string): Promise<void>;
  /**
   * Writes the indexes by key id and by customer for keys that other programs wrote without them, and drops entries that
   * lead nowhere. Safe to repeat and while gateways run.
   */
  reindex(): Promise<ReindexReport>;
  /** Reads every record as it is, in pieces of bounded size, some records perhaps twice. Changes nothing. */
  inspect(): AsyncIterable<readonly InspectedRecord[]>;
}

export interface KeyReplacement {
  readonly replacedBy: string;
  /** The end of the grace. */
  readonly expiresAt: string;
}

export interface ReindexReport {
  readonly keys: number;
  readonly entriesAdded: number;
  readonly entriesDropped: number;
  /** Key records without entries, by fault. */
  readonly passedOver: Readonly<Partial<Record<FaultCode, number>>>;
  /** Ten of them at most. */
  readonly examples: readonly { readonly record: string; readonly fault: RecordFault }[];
}

/** When keys were last used, to about a minute: kept apart from their records, so that a use invalidates nothing. */
export interface KeyUseStore {
  /** Later than what is known, or nothing happens. Wall time in ms. */
  noteUses(uses: readonly { readonly keyId: string; readonly usedAtMs: number }[]): Promise<void>;
  /** In the order of `keyIds`; undefined for one that was never used. */
  lastUses(keyIds: readonly string[]): Promise<readonly (number | undefined)[]>;
}

/** One change that somebody made. Values of keys are never in it. */
export interface AuditEntry {
  /** ISO 8601 UTC. */
  readonly at: string;
  /** `token`, or `jwt:` and the subject. */
  readonly actor: string;
  /** The address that the call came from. */
  readonly from: string;
  /** Such as `key.create`. */
  readonly action: string;
  /** The customer that it was about, where there is one. */
  readonly customer?: string;
  readonly keyId?: string;
  /** What was changed to what, by the names of the admin API. */
  readonly details?: Readonly<Record<string, string | number | boolean | null>>;
}

/** Wall time in ms. Left out: no bound. */
export interface TimeRange {
  /** Inclusive. */
  readonly fromMs?: number | undefined;
  /** Exclusive. */
  readonly toMs?: number | undefined;
}

/** Entries are added, and dropped when they are very old or very many; none is ever changed. */
export interface AuditStore {
  append(entry: AuditEntry): Promise<void>;
  /**
   * Newest first; of those that were appended within `range`. A cursor belongs to the range that it was given for. Rejects
   * with {@link InvalidCursorError}.
   */
  list(
    cursor: string | undefined,
    limit: number,
    range?: TimeRange,
  ): Promise<Page<AuditEntry & { readonly id: string }>>;
}

/** What a store says has changed: by this program or by any other. */
export type Invalidation =
  | { readonly kind: 'key'; readonly sha256: string }
  | { readonly kind: 'customer'; readonly id: string }
  /** Anything may have changed: the push was interrupted, or everything was deleted. */
  | { readonly kind: 'all' };

/** The push of changes to keys and customers that were read before, missing ones included. */
export interface Invalidations {
  /** While false, changes made elsewhere are noticed only by reading again. */
  readonly connected: boolean;
  /** `listener` is called in the turn in which the push arrives. Returns how to stop. */
  subscribe(listener: (invalidation: Invalidation) => void): () => void;
}

/** Units of one lease that go back to the bucket they were counted in. */
export interface GiveBack {
  readonly epoch: string;
  readonly bucket: number;
  readonly units: number;
  /** The store session of the grant. A give-back is sent on that session only, so that none can run twice. */
  readonly session: number;
}

export interface ReserveRequest {
  readonly customer: string;
  /** Requests that wait for a unit now; 0 reads the window without taking anything. */
  readonly need: number;
  /** Units wanted beyond `need`, granted from a fraction of what is free. */
  readonly ahead: number;
  readonly limit: number;
  /** How far in the future the last request on this grant may reach the upstream. At most 10,000. */
  readonly holdMs: number;
  readonly giveBacks: readonly GiveBack[];
}

export interface Grant {
  readonly granted: number;
  /** Units left for anybody after this grant. */
  readonly free: number;
  /** Units counted in the last hour, this grant included. */
  readonly used: number;
  /** Milliseconds from `storeTimeMs` until more than `free` are free; -1: nothing is counted, so nothing will drop. */
  readonly waitMs: number;
  readonly bucket: number;
  readonly epoch: string;
  readonly session: number;
  readonly storeTimeMs: number;
  /** Store time at which the last open hold of this customer, by whatever gateway, ends. */
  readonly holdEndMs: number;
}

export interface WindowStore {
  /** One atomic check and count. Rejects with {@link StoreUnavailableError}; has no deadline of its own. */
  reserve(request: ReserveRequest): Promise<Grant>;
  /** Units that went back; 0 when the window is another one, or the session that granted them is over. */
  refund(customer: string, giveBacks: readonly GiveBack[]): Promise<number>;
  /**
   * Counts units that were admitted while the store was away, whatever the limit. Not to be repeated when the outcome
   * is unknown. Rejects with {@link StoreUnavailableError}.
   */
  report(customer: string, admitted: readonly AdmittedUnits[]): Promise<{ readonly used: number }>;
}

/** What many windows hold, for reports: reads in small steps, and changes nothing. */
export interface UsageReader {
  /**
   * Units counted in the last hour, in the order given; of those below `from`, some number below `from`. Rejects with
   * {@link StoreUnavailableError}.
   */
  usedOf(windows: readonly { readonly customer: string; readonly from: number }[]): Promise<readonly number[]>;
}

/** Units that may have reached the upstream until `ageMs` before the report; negative: until so long after it. */
export interface AdmittedUnits {
  readonly ageMs: number;
  readonly units: number;
}

export interface StoreStatus {
  readonly kind: 'redis' | 'embedded';
  readonly up: boolean;
  /** True once the store answered for the first time since start. */
  readonly reached: boolean;
  /** The last failure in words for operators, without secrets. */
  readonly lastError?: string;
  /** Whether changes to keys and customers are pushed. */
  readonly invalidation: 'connected' | 'disconnected';
  /** The store lost its data since this gateway saw it: what it does not know is no longer proof of anything. */
  readonly wiped: boolean;
  /** The store has no record at all, as one that lost its data has none. */
  readonly empty: boolean;
  /** The store threw records away for want of memory, or may have. */
  readonly evicted: boolean;
  /** The store can be reached and refuses what quotas have to write: they are decided without it. */
  readonly refusing: boolean;
}

export interface Store {
  readonly records: RecordStore;
  readonly keyUses: KeyUseStore;
  readonly audit: AuditStore;
  readonly windows: WindowStore;
  readonly usages: UsageReader;
  readonly invalidations: Invalidations;
  /**
   * Says that this instance runs. Resolves to the number of instances that said so within the last hour, this one
   * included. Rejects with {@link StoreUnavailableError}.
   */
  announce(instance: string): Promise<number>;
  /** Takes the announcement of this instance away. Rejects with {@link StoreUnavailableError}. */
  withdraw(instance: string): Promise<void>;
  /**
   * Declares that the store is meant as it is, though its data was lost: gateways stop doubting it. Rejects with
   * {@link StoreUnavailableError}.
   */
  initialise(): Promise<void>;
  /**
   * Whether calls are worth making now; for a customer: those about its window. Cheap: asked for every request that needs
   * the store.
   */
  isUp(customer?: string): boolean;
  status(): StoreStatus;
  close(): Promise<void>;
}

export type StoreOp =
  | 'read_key'
  | 'read_customer'
  | 'create_customer'
  | 'create_key'
  | 'read_key_id'
  | 'revoke_key'
  | 'reset_usage'
  | 'list_customers'
  | 'update_customer'
  | 'delete_customer'
  | 'list_keys'
  | 'list_customer_keys'
  | 'update_key'
  | 'retire_key'
  | 'discard_key'
  | 'reindex'
  | 'inspect'
  | 'note_uses'
  | 'read_uses'
  | 'read_usages'
  | 'append_audit'
  | 'read_audit'
  | 'reserve'
  | 'refund'
  | 'report'
  | 'announce'
  | 'withdraw'
  | 'initialise';

/** Told of every call and of every change between reachable and not; implementations never throw. */
export interface StoreObserver {
  called(op: StoreOp, durationSeconds: number, failed: boolean): void;
  up(up: boolean, reason?: string): void;
  /** The store began to refuse what quotas have to write, for this reason, or takes it again. */
  refusing?(reason: string | undefined): void;
  /** A reservation failed because of what the customer's window holds. `reply`: only now and then for each customer. */
  damagedWindow?(customer: string, reply: string | undefined): void;
  /** A record was read that another program wrote wrongly. `isReported`: only now and then for each record. */
  damagedRecord?(damage: RecordDamage, isReported: boolean): void;
}

export interface RecordDamage {
  readonly kind: 'key' | 'customer';
  /** Tells the record from others, and holds neither the key nor all of its hash. */
  readonly record: string;
  readonly fault: RecordFault;
  /** Of the record, where it has usable ones. */
  readonly keyId?: string;
  readonly customer?: string;
}

/** The store did not answer, or not in time, or not what it must. Never means "no such record". */
export class StoreUnavailableError extends Error {
  override readonly name: string = 'StoreUnavailableError';
}

/** The record is there, and is not of the form in which it could be read. The store itself works. */
export class DamagedRecordError extends StoreUnavailableError {
  override readonly name = 'DamagedRecordError';
}

/** Why a record that the store does not have may exist all the same. */
export type StoreDoubt = 'wiped' | 'empty' | 'evicted';

const DOUBTS: Readonly<Record<StoreDoubt, string>> = {
  wiped: 'the store has lost its data',
  empty: 'the store has no record at all',
  evicted: 'the store has evicted keys',
};

/** The store answered and has no such record, but that proves nothing. */
export class StoreDoubtError extends StoreUnavailableError {
  override readonly name = 'StoreDoubtError';
  readonly doubt: StoreDoubt;

  constructor(doubt: StoreDoubt) {
    super(`${DOUBTS[doubt]}: what it does not know may exist all the same`);
    this.doubt = doubt;
  }
}
