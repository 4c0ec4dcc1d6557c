/**
 * Faults in key and customer records that other programs wrote, each with its remedy. Messages show a field's value
 * only where it cannot be an API key.
 */
import { isCustomerId, isKeyId } from '../formats/ids.ts';
import { MAX_RESTRICTIONS, parseAllowedAddresses, parseScopes } from '../formats/key-restrictions.ts';
import { parseTimestamp } from '../formats/timestamp.ts';
import { isWebhookUrl, WEBHOOK_URL_RULE } from '../formats/webhook-url.ts';
import {
  type CustomerFields,
  type CustomerRecord,
  ENDED,
  isSuspended,
  type KeyFields,
  type KeyRecord,
  parseAnchor,
  parseLimit,
  temporaryLimitFrom,
} from './record-fields.ts';

const TIME_FORM = 'write ISO 8601 with Z, such as 2030-01-31T00:00:00Z';
const CUSTOMER_ID_FORM = '1 to 128 characters of A-Z a-z 0-9 . _ : @ -, beginning with a letter or digit';

/** The text of each fault: what is wrong, its effect and the remedy. */
const TEXTS = {
  wrong_type: (fields: string) =>
    `is not a hash, so requests get 503: delete it, and write a hash (HSET) with ${fields}`,
  bad_name: () =>
    'is read by no gateway: after "key:" there must be the SHA-256 of the whole API key in 64 lower-case hex digits. If it is the key itself, delete the record, and replace the key',
  holds_key: (field: string) =>
    `has the key itself in the field ${field}, where everyone who reads Redis or lists keys can see it: delete the field or write another value, and replace the key`,
  unbraced_name: (correctName: string) =>
    `is read by no gateway: the customer's id must be in braces. Rename it to ${correctName}`,
  no_id: () => 'has no id, so the key is refused as invalid: write the field id (HSET)',
  bad_id: () => 'has an invalid id, so the key is refused as invalid: write 1 to 256 visible ASCII characters',
  duplicate_id: (other: string) =>
    `has the same id as ${other}, so it cannot be revoked by it: give one of them another id, and run "tollgate store reindex"`,
  no_customer: () => 'has no customer, so the key is refused as invalid: write the field customer (HSET)',
  bad_customer_id: (where: string) => `has an invalid customer id${where} ${CUSTOMER_ID_FORM}`,
  missing_customer: (customer: string) =>
    `works for customer ${customer}, which has no record, so requests get 403: create the customer, or delete this record`,
  missing_index: () =>
    'works, but cannot be revoked by its id and is not deleted with its customer: run "tollgate store reindex"',
  damaged_index: () =>
    'cannot be indexed: its key-id entry or the customer-keys set of its customer has another type. Delete that, and run "tollgate store reindex"',
  unreadable_scopes: () =>
    `has unreadable scopes, so the key is refused: write at most ${MAX_RESTRICTIONS} scopes separated by spaces, or delete the field to allow everything`,
  unreadable_addresses: () =>
    `has unreadable allowed_addresses, so the key is refused: write at most ${MAX_RESTRICTIONS} addresses or CIDR blocks separated by commas, or delete the field to allow every address`,
  unreadable_key_limit: () =>
    'has an unreadable requests_per_hour, so the key is refused: write an integer of at least 1, or delete the field for no limit of its own',
  bad_root: () =>
    'has a limit, and an invalid root, so the key is refused: write the id of the first key of its line of rotations, or delete the field',
  unreadable_time: (field: string, value: string, effect: string, remedy: string) =>
    `has ${field} ${value}, which is not a time, ${effect}: ${remedy}`,
  no_plan: () =>
    'has no plan, so requests get 403, as for a missing record: write the field plan (HSET), or delete the customer: a deletion that failed leaves this',
  unknown_plan: (reason: string) =>
    `has no limit, so requests get 403: ${reason}; configure that plan, list its name under "formerly" of another, or change the plan of the customer`,
  no_limit: (reason: string, field: string) =>
    `has no limit, so requests get 403, if not yet, then at the end of its temporary limit: ${reason}; write ${field} as an integer of at least 1`,
  doubtful_suspended: (value: string) =>
    `has suspended ${value}, which suspends the customer, as any value but 0 and false does: write 1 or 0`,
  ineffective_suspended_until: (value: string) =>
    `has suspended_until ${value}, but no suspension that began before it, so its requests are not refused: to suspend the customer, write suspended 1 and a later suspended_until or none; otherwise delete suspended_until, because it would end a later suspension, too`,
  unreadable_temporary_limit: () =>
    `has a temporary limit that is not applied: write temporary_requests_per_hour as an integer of at least 1 and temporary_until as a time (${TIME_FORM}), or delete both`,
  unreadable_period_anchor: (value: string) =>
    `has period_anchor ${value}, which is not a time on a whole hour of UTC, so its periods begin with those of the calendar: write one such as 2030-01-31T10:00:00Z, or delete the field`,
  bad_notify_url: () => `has a notify_url to which no notice is sent: it ${WEBHOOK_URL_RULE}`,
} satisfies Record<string, (...details: string[]) => string>;

export type FaultCode = keyof typeof TEXTS;

export interface RecordFault {
  readonly code: FaultCode;
  /** The fault, its consequence and the remedy. */
  readonly text: string;
}

/** A record as read from the store. */
export interface InspectedRecord {
  readonly kind: 'key' | 'customer';
  /** Identifies the record for operators. Contains neither the API key nor its whole hash. */
  readonly record: string;
  /** Faults of its fields, its type, its name and its index entries. */
  readonly faults: readonly RecordFault[];
  /** The key or the customer, if it can be read. */
  readonly key?: KeyRecord | undefined;
  readonly customer?: CustomerRecord | undefined;
  /** Whether the key's customer has a record. Undefined if not looked up, because the key cannot be valid. */
  readonly customerExists?: boolean | undefined;
}

const SHOWN_VALUE_LENGTH = 40;
const CANONICAL_SUSPENSIONS: ReadonlySet<string> = new Set(['1', '0', 'true', 'false']);

/** `details`: the parameters of the fault's text. */
export function recordFault<Code extends FaultCode>(
  code: Code,
  ...details: Parameters<(typeof TEXTS)[Code]>
): RecordFault {
  const text: (...details: string[]) => string = TEXTS[code];
  return { code, text: text(...details) };
}

export function wrongType(kind: 'key' | 'customer'): RecordFault {
  return recordFault('wrong_type', kind === 'key' ? 'id and customer' : 'plan');
}

export function missingCustomer(id: string): RecordFault {
  return recordFault('missing_customer', shown(id));
}

/** Returns all faults in the fields of a key record. */
export function keyFaults(fields: KeyFields): readonly RecordFault[] {
  const remedy = `${TIME_FORM}, or delete the field if the key is not revoked`;
  return [
    ...enforcedKeyFaults(fields),
    ...timeFaults('revoked_at', fields.revoked_at, 'and any value revokes the key', remedy),
    ...timeFaults('created_at', fields.created_at, 'so the age of the key is not known', TIME_FORM),
  ];
}

/** Returns all faults in a customer's id and fields. Does not check whether the plan is configured. */
export function customerFaults(id: string, fields: CustomerFields): readonly RecordFault[] {
  const { suspended, suspended_until, notify_url } = fields;
  const faults: RecordFault[] = [];
  if (!isCustomerId(id)) {
    const where = ' in its name, so no key can belong to it: between the braces there must be';
    faults.push(recordFault('bad_customer_id', where));
  }
  faults.push(...enforcedCustomerFaults(fields));
  if (suspended && !CANONICAL_SUSPENSIONS.has(suspended) && parseTimestamp(suspended) === undefined) {
    faults.push(recordFault('doubtful_suspended', shown(suspended)));
  }
  // After a suspension that ended by itself, `suspended` is 1 beside a time in the past. Only a date tells that one apart.
  const [began, ends] = [parseTimestamp(suspended ?? ''), parseTimestamp(suspended_until ?? '')];
  if (suspended_until && ends !== undefined && (!isSuspended(suspended) || (began ?? 0) >= ends)) {
    faults.push(recordFault('ineffective_suspended_until', shown(suspended_until)));
  }
  if (notify_url && !isWebhookUrl(notify_url)) faults.push(recordFault('bad_notify_url'));
  return faults;
}

/** Returns the faults that affect requests of this customer. Does not check whether the plan is configured. */
export function enforcedCustomerFaults(fields: CustomerFields): readonly RecordFault[] {
  const { period_anchor: anchor } = fields;
  const remedy = `${TIME_FORM}, or delete the field`;
  return [
    ...(fields.plan ? [] : [recordFault('no_plan')]),
    ...(temporaryLimitFrom(fields) === ENDED ? [recordFault('unreadable_temporary_limit')] : []),
    ...(anchor && parseAnchor(anchor) === 'invalid' ? [recordFault('unreadable_period_anchor', shown(anchor))] : []),
    ...timeFaults('suspended_until', fields.suspended_until, 'so a suspension has no end', remedy),
  ];
}

/** Returns the faults that affect requests with this key. */
export function enforcedKeyFaults(fields: KeyFields): readonly RecordFault[] {
  const { id, customer, expires_at, scopes, allowed_addresses: addresses, requests_per_hour: limit, root } = fields;
  const faults: RecordFault[] = [];
  if (!id) faults.push(recordFault('no_id'));
  else if (!isKeyId(id)) faults.push(recordFault('bad_id'));
  if (!customer) faults.push(recordFault('no_customer'));
  else if (!isCustomerId(customer)) {
    faults.push(recordFault('bad_customer_id', ', so the key is refused as invalid: write'));
  }
  if (scopes && parseScopes(scopes).length === 0) faults.push(recordFault('unreadable_scopes'));
  if (addresses && parseAllowedAddresses(addresses).length === 0) faults.push(recordFault('unreadable_addresses'));
  if (limit && parseLimit(limit) === 'invalid') faults.push(recordFault('unreadable_key_limit'));
  if (limit && root && !isKeyId(root)) faults.push(recordFault('bad_root'));
  const remedy = `${TIME_FORM}, or delete the field`;
  return [...faults, ...timeFaults('expires_at', expires_at, 'so the key counts as expired', remedy)];
}

function timeFaults(field: string, value: string | null | undefined, effect: string, remedy: string): RecordFault[] {
  if (!value || parseTimestamp(value) !== undefined) return [];
  return [recordFault('unreadable_time', field, shown(value), effect, remedy)];
}

function shown(value: string): string {
  const start = value.slice(0, SHOWN_VALUE_LENGTH);
  return `${JSON.stringify(start)}${start === value ? '' : '…'}`;
}
