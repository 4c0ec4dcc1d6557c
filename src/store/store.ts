/**
 * The interfaces to the state that the gateway keeps outside its own memory: records (keys and customers), last uses of
 * keys, the audit log, windows (the hourly counters), usage reports, notices and invalidations. Redis and the embedded
 * store implement them and pass the same contract tests.
 *
 * Every method that returns a promise rejects with {@link StoreUnavailableError} when the store cannot perform the call.
 */
import type { KeyRestrictions } from '../formats/key-restrictions.ts';
import type { AnnouncedInstance, InstanceState } from './announced-instances.ts';
import type { CustomerSearch } from './customer-search.ts';
import type { Invalidations } from './invalidations.ts';
import type { NoticeStore } from './notices.ts';
import type { NotifySecretStore } from './notify-secrets.ts';
import type { PortalSessionStore } from './portal-sessions.ts';
import type { FaultCode, InspectedRecord, RecordFault } from './record-faults.ts';
import type {
  CustomerChange,
  CustomerRecord,
  EnforcedCustomer,
  EnforcedKey,
  KeyChange,
  KeyRecord,
} from './record-fields.ts';
import type { UsageHistory } from './usage-history.ts';

/** Returns the reason why the current record must not be changed, as an error; undefined when it may be changed. */
export type UpdateCheck<R> = (current: R) => Error | undefined;

export interface Page<Item> {
  readonly items: readonly Item[];
  /** The cursor of the next page; undefined on the last page. Opaque, in URL-safe characters. */
  readonly next: string | undefined;
}

/** Thrown for a cursor that this store did not issue. */
export class InvalidCursorError extends Error {
  override readonly name = 'InvalidCursorError';
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
   * already replaced, or when its expiry or its restrictions are not the expected ones. Resolves to the resulting record,
   * undefined when there is none.
   */
  retireKey(
    keyId: string,
    expected: Pick<KeyRecord, 'expiresAt' | keyof KeyRestrictions>,
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

export interface NotedUse {
  readonly keyId: string;
  /** The digest of the key; without it, the key is taken to exist. */
  readonly sha256?: string;
  /** Wall time in ms. */
  readonly usedAtMs: number;
}

/**
 * When keys were last used, to about a minute. Stored apart from the key records, so that a use does not invalidate
 * cached records.
 */
export interface KeyUseStore {
  /** Records the given uses, except those that are not later than the recorded ones, and those of deleted keys. */
  noteUses(uses: readonly NotedUse[]): Promise<void>;
  /** Resolves to wall times in ms, in the order of `keyIds`; undefined for a key that was never used. */
  lastUses(keyIds: readonly string[]): Promise<readonly (number | undefined)[]>;
}

/** One audited admin action: a change, a config preview or a refused access. Never contains the value of an API key. */
export interface AuditEntry {
  /** ISO 8601 UTC. */
  readonly at: string;
  /**
   * `token`, with the name that a person gave after a colon; `jwt:` followed by the subject; `portal:` followed by the
   * customer; or `unknown`.
   */
  readonly actor: string;
  /** The client's address. */
  readonly from: string;
  /** Such as `key.create`. */
  readonly action: string;
  /** The affected customer, if any. */
  readonly customer?: string;
  readonly keyId?: string;
  /** Parameters and results of the action, by the field names of the admin API. */
  readonly details?: AuditValues;
  /** What the members of `details` were before, where they changed. */
  readonly before?: AuditValues;
}

/** By the field names of the admin API. */
type AuditValues = Readonly<Record<string, string | number | boolean | null>>;

/** An append-only log. Entries are never changed, and deleted only when very old or very many. */
export interface AuditStore {
  append(entry: AuditEntry): Promise<void>;
  /**
   * Lists the entries appended within a range of wall times in ms, newest first. Without `fromMs` (inclusive) or `toMs`
   * (exclusive), that side is open. A cursor is valid only with its range. Rejects with {@link InvalidCursorError}.
   */
  list(
    cursor: string | undefined,
    limit: number,
    range?: { readonly fromMs?: number | undefined; readonly toMs?: number | undefined },
  ): Promise<Page<AuditEntry & { readonly id: string }>>;
}

/** Names a limit in headers, refusals and metrics. Each has a counter of its own for every customer. */
export type Policy = 'hourly';

export type NonEmpty<Item> = readonly [Item, ...Item[]];

/** As `items.map(to)`, which forgets that there is at least one item. */
export function mapAll<Item, Result>(
  items: NonEmpty<Item>,
  to: (item: Item, index: number) => Result,
): NonEmpty<Result> {
  return items.map(to) as readonly Result[] as NonEmpty<Result>;
}

/** One limit of a reservation. All limits of a reservation are counted in one slot of a cluster. */
export interface Limit {
  readonly policy: Policy;
  /** Units that the limit allows. */
  readonly amount: number;
}

/** A refund: units of one lease that return to the bucket of one counter. */
export interface Refund {
  readonly policy: Policy;
  readonly epoch: string;
  /** The hour of the grant in the store's time, as the number of hours since 1970: the history refunds it there. */
  readonly hour: number;
  readonly bucket: number;
  readonly units: number;
  /** The store session of the grant. A refund is sent only on that session, so that none can run twice. */
  readonly session: number;
}

export interface ReserveRequest {
  readonly customer: string;
  /**
   * Units for which requests wait now. With both `need` and `ahead` 0, the call reads the counters without taking units.
   */
  readonly need: number;
  /** Units wanted beyond `need`, granted from a fraction of the free units. */
  readonly ahead: number;
  /** The same units are taken from every limit, or none. The first one is the customer's hour. */
  readonly limits: NonEmpty<Limit>;
  /** How far in the future the last request on this grant may reach the upstream. At most 10,000. */
  readonly holdMs: number;
  /** Of the policies of `limits`. */
  readonly refunds: readonly Refund[];
}

/** What a limit of a reservation has left, and when it has more. */
export interface LimitCount {
  readonly policy: Policy;
  /** Units that are still free after this grant. */
  readonly free: number;
  /** Units counted, this grant included: of the policy `hourly`, those of the last hour. */
  readonly used: number;
  /**
   * Milliseconds from the grant's `storeTimeMs` until more than `free` units are free. -1: never, because nothing is
   * counted or the limit is 0.
   */
  readonly waitMs: number;
  readonly epoch: string;
  /** Store time at which the last open hold of this counter ends, across all gateways. */
  readonly holdEndMs: number;
}

export interface Grant {
  readonly granted: number;
  /** In the order of the request's limits. */
  readonly counts: NonEmpty<LimitCount>;
  readonly bucket: number;
  readonly session: number;
  readonly storeTimeMs: number;
}

export interface WindowStore {
  /** Checks the limits and counts units, atomically. Has no deadline of its own. */
  reserve(request: ReserveRequest): Promise<Grant>;
  /** Resolves to the number of refunded units; 0 when the window was replaced or the granting session has ended. */
  refund(customer: string, refunds: readonly Refund[]): Promise<number>;
  /**
   * Counts units that were admitted while the store was unavailable, regardless of the limit. Rejects with
   * NotChargedError if they may be sent again; after any other error the outcome is unknown, and they must not.
   */
  charge(customer: string, charged: readonly ChargedUnits[]): Promise<{ readonly used: number }>;
}

/** Reads the usage of many windows for reports, in small steps. Changes nothing. */
export interface UsageReader {
  /**
   * Resolves to the units counted in the last hour, in the order given. A usage below `from` may be inexact, but is
   * never reported as `from` or more.
   */
  usedOf(windows: readonly { readonly customer: string; readonly from: number }[]): Promise<readonly number[]>;
  /** Resolves to the units counted in the last hour, without those of leases that may still be refunded. */
  settledOf(customer: string): Promise<number>;
}

/**
 * Units that may have reached the upstream until `ageMs` before the call. A negative age is a time after it.
 */
export interface ChargedUnits {
  readonly ageMs: number;
  readonly units: number;
}

export interface StoreStatus {
  readonly kind: 'redis' | 'embedded';
  readonly up: boolean;
  /** True once the store has replied for the first time since startup. */
  readonly reached: boolean;
  /** The last failure, in words for operators, without secrets. */
  readonly lastError?: string;
  /** Whether changes to keys and customers are pushed. */
  readonly invalidation: 'connected' | 'disconnected';
  /** The store lost its data, so a missing record does not prove that it never existed. */
  readonly wiped: boolean;
  /** No record is known in the store, which may mean that it lost its data. */
  readonly empty: boolean;
  /** The store evicted keys for lack of memory: windows and usage history, and perhaps records. */
  readonly evicted: boolean;
  /** The store is reachable but refuses quota writes, so quotas are decided without it. */
  readonly refusing: boolean;
}

export interface Store {
  readonly records: RecordStore;
  readonly keyUses: KeyUseStore;
  readonly notifySecrets: NotifySecretStore;
  readonly portalSessions: PortalSessionStore;
  readonly audit: AuditStore;
  readonly windows: WindowStore;
  readonly usages: UsageReader;
  /** Undefined when the configuration turns the history off. */
  readonly usageHistory?: UsageHistory | undefined;
  readonly notices: NoticeStore;
  readonly invalidations: Invalidations;
  /**
   * Announces that this instance runs. Resolves to the number of instances announced within the last hour, including
   * this one, and to the store's time.
   */
  announce(
    instance: string,
    state?: InstanceState,
  ): Promise<{ readonly instances: number; readonly storeTimeMs: number }>;
  /** Resolves to the instances that were announced within the last hour and not withdrawn, oldest announcement last. */
  announced(): Promise<readonly AnnouncedInstance[]>;
  /** Deletes the announcement of this instance. */
  withdraw(instance: string): Promise<void>;
  /** Accepts the store's present data as intended, although data was lost: gateways trust the store again. */
  initialise(): Promise<void>;
  /**
   * Returns whether calls are worth making now; with `customer`, calls about that customer's window. Must be cheap:
   * called for every request that needs the store.
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
  | 'read_history'
  | 'add_usage'
  | 'claim_notice'
  | 'take_notices'
  | 'settle_notice'
  | 'read_notices'
  | 'rotate_notify_secret'
  | 'read_notify_secret'
  | 'add_portal_session'
  | 'open_portal_session'
  | 'read_portal_session'
  | 'end_portal_session'
  | 'count_portal_write'
  | 'append_audit'
  | 'read_audit'
  | 'reserve'
  | 'refund'
  | 'report'
  | 'announce'
  | 'withdraw'
  | 'initialise';

/** Receives every store call and every change of availability. Implementations never throw. */
export interface StoreObserver {
  called(op: StoreOp, durationSeconds: number, failed: boolean): void;
  up(up: boolean, reason?: string): void;
  /** The store began to refuse quota writes for `reason`, or accepts them again (undefined). */
  refusing?(reason: string | undefined): void;
  /**
   * A reservation failed because the customer's stored window is damaged. `reply` is rate-limited: undefined if one was
   * passed for this customer recently.
   */
  damagedWindow?(customer: string, reply: string | undefined): void;
  /**
   * A malformed record was read that another program wrote. `isReported` is rate-limited per record: true if the fault
   * should be logged.
   */
  damagedRecord?(damage: RecordDamage, isReported: boolean): void;
}

export interface RecordDamage {
  readonly kind: 'key' | 'customer';
  /** Identifies the record for operators. Contains neither the API key nor its whole hash. */
  readonly record: string;
  readonly fault: RecordFault;
  /** From the record, if valid there. */
  readonly keyId?: string;
  readonly customer?: string;
}

/**
 * Thrown when the store replied with an error or an unexpected value, too late or not at all. Never means "no such
 * record".
 */
export class StoreUnavailableError extends Error {
  override readonly name: string = 'StoreUnavailableError';
}

/** Thrown by {@link WindowStore.charge} when the store counted nothing, because it refused the call or did not get it. */
export class NotChargedError extends StoreUnavailableError {
  override readonly name = 'NotChargedError';
}

/** Thrown for a record that exists but is malformed, so it cannot be read. The store itself works. */
export class DamagedRecordError extends StoreUnavailableError {
  override readonly name = 'DamagedRecordError';
}

/** Why a record that is missing from the store may still have existed. */
const DOUBTS = {
  wiped: 'the store has lost its data',
  empty: 'the store has no customers and keys',
  evicted: 'the store has evicted keys',
};

/** Thrown when a record is missing from the store, but this does not prove that it never existed. */
export class StoreDoubtError extends StoreUnavailableError {
  override readonly name = 'StoreDoubtError';
  readonly doubt: keyof typeof DOUBTS;

  constructor(doubt: keyof typeof DOUBTS) {
    super(`${DOUBTS[doubt]}, so a missing record may have existed`);
    this.doubt = doubt;
  }
}

/** What a trial of the store found. */
export interface StoreFinding {
  readonly outcome: 'ok' | 'warning' | 'error';
  /** Without secrets. */
  readonly text: string;
}
