/**
 * Reports malformed records, written by other programs, when they are read. All of them are counted. Each fault is
 * logged once a minute, and at most {@link MAX_REPORTED} faults a minute in all.
 */
import type { Clock } from '../../../base/clock.ts';
import { Throttle } from '../../../base/throttle.ts';
import { isCustomerId, isKeyId } from '../../../formats/ids.ts';
import type { RecordDamage, StoreObserver } from '../../observer.ts';
import {
  enforcedCustomerFaults,
  enforcedKeyFaults,
  type RecordFault,
  recordFault,
  wrongType,
} from '../../record-faults.ts';
import type { CustomerFields, Fields, KeyFields } from '../../record-fields.ts';
import type { RedisClient } from '../connection/client.ts';
import type { RedisKeyNames } from '../protocol/key-names.ts';

const REPORT_INTERVAL_MS = 60_000;
const MAX_REPORTED = 100;

interface DamagedRecordsOptions {
  readonly names: RedisKeyNames;
  readonly clock: Clock;
  readonly observer: Pick<StoreObserver, 'damagedRecord'>;
}

export class DamagedRecords {
  readonly #options: DamagedRecordsOptions;
  readonly #faults: Throttle;
  /** By the number of a report within {@link MAX_REPORTED}: the earliest of them is due first. */
  readonly #all: Throttle;
  #reports = 0;

  constructor(options: DamagedRecordsOptions) {
    this.#options = options;
    this.#faults = new Throttle(options.clock, REPORT_INTERVAL_MS, MAX_REPORTED);
    this.#all = new Throttle(options.clock, REPORT_INTERVAL_MS, MAX_REPORTED);
  }

  /** Must be called with the fields that were read of a key's record. Reports their faults. */
  checkKey(sha256: string, fields: KeyFields): void {
    if (!exists(fields)) return;
    const { id, customer } = fields;
    this.#report(enforcedKeyFaults(fields), {
      kind: 'key',
      record: this.#options.names.shownKeyRecord(sha256),
      ...(id && isKeyId(id) && { keyId: id }),
      ...(customer && isCustomerId(customer) && { customer }),
    });
  }

  /** Must be called with the fields that were read of a customer's record. Reports their faults. */
  checkCustomer(id: string, fields: CustomerFields): void {
    if (!exists(fields)) return;
    const record = this.#options.names.customerRecord(id);
    this.#report(enforcedCustomerFaults(fields), { kind: 'customer', record, customer: id });
  }

  /** Reports that the key or customer record of this name is not a hash. */
  reportWrongType(name: string): void {
    const { names } = this.#options;
    const sha256 = names.keyRecords.parse(name);
    const kind = sha256 === undefined ? 'customer' : 'key';
    const record = sha256 === undefined ? name : names.shownKeyRecord(sha256);
    this.#report([wrongType(kind)], { kind, record });
  }

  /** Must be called when a customer has no record, because it may have one under a name without braces. Never rejects. */
  async checkUnbraced(redis: RedisClient, customer: string): Promise<void> {
    const { names } = this.#options;
    const record = names.unbracedCustomer(customer);
    try {
      if ((await redis.exists(record)) === 0) return;
    } catch {
      // Not retried: the next read of the customer checks again.
      return;
    }
    this.#report([recordFault('unbraced_name', names.customerRecord(customer))], {
      kind: 'customer',
      record,
      customer,
    });
  }

  #report(faults: readonly RecordFault[], record: Omit<RecordDamage, 'fault'>): void {
    for (const fault of faults) {
      const isDue =
        this.#faults.isDue(`${fault.code} ${record.record}`) && this.#all.isDue(String(this.#reports % MAX_REPORTED));
      if (isDue) this.#reports++;
      this.#options.observer.damagedRecord?.({ ...record, fault }, isDue);
    }
  }
}

/** Without any field there is no record. */
function exists(fields: Fields<string>): boolean {
  return Object.values(fields).some(Boolean);
}
