/**
 * Faults in key and customer records that other programs wrote, each with its remedy. Messages show a field's value
 * only where it cannot be an API key.
 */

import { parseTimestamp } from '../base/timestamp.ts';
import { isWebhookUrl, WEBHOOK_URL_RULE } from '../base/webhook-url.ts';
import {
  type CustomerFields,
  type EnforcedCustomerFields,
  type EnforcedKeyFields,
  isCustomerId,
  isKeyId,
  type KeyFields,
} from './record-fields.ts';

export type FaultCode =
  | 'wrong_type'
  | 'bad_name'
  | 'holds_key'
  | 'unbraced_name'
  | 'no_id'
  | 'bad_id'
  | 'duplicate_id'
  | 'no_customer'
  | 'bad_customer_id'
  | 'missing_customer'
  | 'missing_index'
  | 'damaged_index'
  | 'unreadable_time'
  | 'no_plan'
  | 'unknown_plan'
  | 'no_limit'
  | 'doubtful_suspended'
  | 'bad_notify_url';

export interface RecordFault {
  readonly code: FaultCode;
  /** The fault, its consequence and the remedy. */
  readonly text: string;
}

/** A record as read from the store. */
export type InspectedRecord = InspectedKey | InspectedCustomer;

export interface InspectedKey {
  readonly kind: 'key';
  /** Identifies the record for operators. Contains neither the API key nor its whole hash. */
  readonly record: string;
  readonly found: KeyFields | RecordFault;
  /** Faults other than malformed fields: faults of the index entries, or a field that contains the API key. */
  readonly faults: readonly RecordFault[];
  /**
   * Whether the key's customer has a record. Undefined if not looked up, because the record's name, id or customer is
   * invalid.
   */
  readonly customerExists?: boolean | undefined;
}

export interface InspectedCustomer {
  readonly kind: 'customer';
  readonly record: string;
  readonly found: { readonly id: string; readonly fields: CustomerFields } | RecordFault;
}

/** Returns whether `found` is a fault in place of a record's fields. */
export function isFault(found: object): found is RecordFault {
  return 'code' in found && 'text' in found;
}

const TIME_FORM = 'write ISO 8601 with Z, such as 2030-01-31T00:00:00Z';
const CUSTOMER_ID_FORM = '1 to 128 characters of A-Z a-z 0-9 . _ : @ -, beginning with a letter or digit';
const SHOWN_VALUE_LENGTH = 40;
const CANONICAL_SUSPENSIONS: ReadonlySet<string> = new Set(['1', '0', 'true', 'false']);

export function wrongType(kind: 'key' | 'customer'): RecordFault {
  const fields = kind === 'key' ? 'id and customer' : 'plan';
  return {
    code: 'wrong_type',
    text: `is not a hash, so requests get 503: delete it, and write a hash (HSET) with ${fields}`,
  };
}

export const BAD_NAME: RecordFault = {
  code: 'bad_name',
  text: 'is read by no gateway: after "key:" there must be the SHA-256 of the whole API key in 64 lower-case hex digits. If it is the key itself, delete the record, and replace the key',
};

/** Returns the fault of a record whose field `field` contains the API key itself. */
export function holdsKey(field: string): RecordFault {
  return {
    code: 'holds_key',
    text: `has the key itself in the field ${field}, where everyone who reads Redis or lists keys can see it: delete the field or write another value, and replace the key`,
  };
}

/** Returns the fault of a customer record without braces in its name. `name`: the correct name. */
export function unbracedName(name: string): RecordFault {
  return {
    code: 'unbraced_name',
    text: `is read by no gateway: the customer's id must be in braces. Rename it to ${name}`,
  };
}

export const MISSING_INDEX: RecordFault = {
  code: 'missing_index',
  text: 'works, but cannot be revoked by its id and is not deleted with its customer: run "tollgate store reindex"',
};

export const DAMAGED_INDEX: RecordFault = {
  code: 'damaged_index',
  text: 'cannot be indexed: its key-id entry or the customer-keys set of its customer has another type. Delete that, and run "tollgate store reindex"',
};

/** Returns the fault of a key record whose id also belongs to the record `other`. */
export function duplicateId(other: string): RecordFault {
  return {
    code: 'duplicate_id',
    text: `has the same id as ${other}, so it cannot be revoked by it: give one of them another id, and run "tollgate store reindex"`,
  };
}

export function missingCustomer(id: string): RecordFault {
  return {
    code: 'missing_customer',
    text: `works for customer ${shown(id)}, which has no record, so requests get 403: create the customer, or delete this record`,
  };
}

/** Returns the fault of a customer without a limit. `reason`: why the config and the customer's record give none. */
export function noLimit(code: 'unknown_plan' | 'no_limit', reason: string): RecordFault {
  const remedy =
    code === 'unknown_plan'
      ? 'configure that plan, list its name under "formerly" of another, or change the plan of the customer'
      : 'write requests_per_hour as an integer of at least 1';
  return { code, text: `has no limit, so requests get 403: ${reason}; ${remedy}` };
}

/** Returns the faults that affect requests with this key. Empty when all fields are unset: then there is no record. */
export function enforcedKeyFaults(fields: EnforcedKeyFields): readonly RecordFault[] {
  const exists = Object.values(fields).some(Boolean);
  return exists ? faultsForRequests(fields) : [];
}

/** Returns all faults in the fields of a key record. */
export function keyFaults(fields: KeyFields): readonly RecordFault[] {
  const { created_at, revoked_at } = fields;
  const faults = faultsForRequests(fields);
  if (isUnreadable(revoked_at)) {
    const remedy = `${TIME_FORM}, or delete the field if the key is not revoked`;
    faults.push(unreadable('revoked_at', revoked_at, 'and any value revokes the key', remedy));
  }
  if (isUnreadable(created_at)) {
    faults.push(unreadable('created_at', created_at, 'so the age of the key is not known', TIME_FORM));
  }
  return faults;
}

/** Like {@link enforcedKeyFaults}, for a customer. Does not check whether the plan is configured. */
export function enforcedCustomerFaults(fields: EnforcedCustomerFields): readonly RecordFault[] {
  const exists = Object.values(fields).some(Boolean);
  return exists && !fields.plan ? [NO_PLAN] : [];
}

/** Returns all faults in a customer's id and fields. Does not check whether the plan is configured. */
export function customerFaults(id: string, { plan, suspended, notify_url }: CustomerFields): readonly RecordFault[] {
  const faults: RecordFault[] = [];
  if (!isCustomerId(id)) {
    faults.push({
      code: 'bad_customer_id',
      text: `has an invalid customer id in its name, so no key can belong to it: between the braces there must be ${CUSTOMER_ID_FORM}`,
    });
  }
  if (!plan) faults.push(NO_PLAN);
  if (suspended && !CANONICAL_SUSPENSIONS.has(suspended) && parseTimestamp(suspended) === undefined) {
    faults.push({
      code: 'doubtful_suspended',
      text: `has suspended ${shown(suspended)}, which suspends the customer, as any value but 0 and false does: write 1 or 0`,
    });
  }
  if (notify_url && !isWebhookUrl(notify_url)) {
    faults.push({
      code: 'bad_notify_url',
      text: `has a notify_url to which no notice is sent: it ${WEBHOOK_URL_RULE}`,
    });
  }
  return faults;
}

const NO_PLAN: RecordFault = {
  code: 'no_plan',
  text: 'has no plan, so requests get 403, as for a missing record: write the field plan (HSET), or delete the customer: a deletion that failed leaves this',
};

function faultsForRequests({ id, customer, expires_at }: EnforcedKeyFields): RecordFault[] {
  const faults: RecordFault[] = [];
  if (!id) {
    faults.push({ code: 'no_id', text: 'has no id, so the key is refused as invalid: write the field id (HSET)' });
  } else if (!isKeyId(id)) {
    faults.push({
      code: 'bad_id',
      text: 'has an invalid id, so the key is refused as invalid: write 1 to 256 visible ASCII characters',
    });
  }
  if (!customer) {
    faults.push({
      code: 'no_customer',
      text: 'has no customer, so the key is refused as invalid: write the field customer (HSET)',
    });
  } else if (!isCustomerId(customer)) {
    faults.push({
      code: 'bad_customer_id',
      text: `has an invalid customer id, so the key is refused as invalid: write ${CUSTOMER_ID_FORM}`,
    });
  }
  if (isUnreadable(expires_at)) {
    const remedy = `${TIME_FORM}, or delete the field`;
    faults.push(unreadable('expires_at', expires_at, 'so the key counts as expired', remedy));
  }
  return faults;
}

function unreadable(field: string, value: string, consequence: string, remedy: string): RecordFault {
  return {
    code: 'unreadable_time',
    text: `has ${field} ${shown(value)}, which is not a time, ${consequence}: ${remedy}`,
  };
}

function isUnreadable(value: string | null | undefined): value is string {
  return Boolean(value) && parseTimestamp(value ?? '') === undefined;
}

function shown(value: string): string {
  const start = value.slice(0, SHOWN_VALUE_LENGTH);
  return `${JSON.stringify(start)}${start === value ? '' : '…'}`;
}
