/**
 * What the gateway keeps outside its own memory, as two interfaces: records (keys and customers) and windows (the
 * hourly counters). Redis and the embedded store implement both and pass one contract suite.
 */

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
}

export interface CustomerRecord {
  readonly id: string;
  readonly plan: string;
  readonly name?: string;
  /** The customer's own limit. `'invalid'`: somebody wrote what is not an integer of at least 1. */
  readonly requestsPerHour?: number | 'invalid';
  readonly suspended: boolean;
  readonly usageResetAt?: string;
}

export interface RecordStore {
  /** `sha256`: lower-case hex digest of the whole API key. */
  findKey(sha256: string): Promise<KeyRecord | undefined>;
  findCustomer(id: string): Promise<CustomerRecord | undefined>;
  createCustomer(record: CustomerRecord): Promise<'created' | 'exists'>;
  createKey(sha256: string, record: KeyRecord): Promise<'created' | 'exists'>;
  findKeyById(keyId: string): Promise<KeyRecord | undefined>;
  /** Sets `revokedAt` unless it is set already; the record as it is afterwards, undefined when there is none. */
  revokeKey(keyId: string, revokedAt: string): Promise<KeyRecord | undefined>;
  /**
   * Deletes the customer's window and writes `usageResetAt`, both at once; the record as it is afterwards, undefined
   * when there is none.
   */
  resetUsage(customer: string, resetAt: string): Promise<CustomerRecord | undefined>;
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
}

export interface Store {
  readonly records: RecordStore;
  readonly windows: WindowStore;
  readonly invalidations: Invalidations;
  /**
   * Says that this instance runs. Resolves to the number of instances that said so within the last hour, this one
   * included. Rejects with {@link StoreUnavailableError}.
   */
  announce(instance: string): Promise<number>;
  /**
   * Declares that the store is meant as it is, though its data was lost: gateways stop doubting it. Rejects with
   * {@link StoreUnavailableError}.
   */
  initialise(): Promise<void>;
  /** Whether calls are worth making now. Cheap: asked for every request that needs the store. */
  isUp(): boolean;
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
  | 'reserve'
  | 'refund'
  | 'report'
  | 'announce'
  | 'initialise';

/** Told of every call and of every change between reachable and not; implementations never throw. */
export interface StoreObserver {
  called(op: StoreOp, durationSeconds: number, failed: boolean): void;
  up(up: boolean, reason?: string): void;
}

/** The store did not answer, or not in time, or not what it must. Never means "no such record". */
export class StoreUnavailableError extends Error {
  override readonly name: string = 'StoreUnavailableError';
}

/** The store answered and has no such record, but it lost its data: there may well have been one. */
export class StoreWipedError extends StoreUnavailableError {
  override readonly name = 'StoreWipedError';

  constructor() {
    super('the store has lost its data: what it does not know may exist all the same');
  }
}
