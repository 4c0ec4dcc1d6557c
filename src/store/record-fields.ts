/**
 * Key and customer records, and their form as named text fields, in which both stores keep them. An absent, null or empty
 * field is unset. Other programs also write such records, so no value is trusted.
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
  /** The id of the key that replaces this one; `expiresAt` is then the end of this key's grace period. */
  readonly replacedBy?: string;
}

/** The fields that affect requests. Texts for people are excluded, because they may be of any size. */
export type EnforcedKey = Pick<KeyRecord, 'id' | 'customer' | 'expiresAt' | 'revokedAt' | 'replacedBy'>;

export interface CustomerRecord {
  readonly id: string;
  readonly plan: string;
  readonly name?: string;
  /** The customer's own limit. `'invalid'`: the stored value is not an integer of at least 1. */
  readonly requestsPerHour?: number | 'invalid';
  readonly suspended: boolean;
  /** Tells the customer from a deleted one with the same id. Records that other programs wrote may lack it. */
  readonly createdAt?: string;
  readonly usageResetAt?: string;
  /** Where the customer's own notices are sent. As stored: other programs may have written something else than a URL. */
  readonly notifyUrl?: string;
}

/** Like {@link EnforcedKey}: the fields that affect requests. */
export type EnforcedCustomer = Omit<CustomerRecord, 'name' | 'notifyUrl'>;

/** An omitted field keeps its value; null unsets it. */
export interface CustomerChange {
  readonly plan?: string;
  readonly name?: string | null;
  readonly requestsPerHour?: number | null;
  readonly suspended?: boolean;
  readonly notifyUrl?: string | null;
}

/** An omitted field keeps its value; null unsets it. */
export interface KeyChange {
  readonly name?: string | null;
  readonly expiresAt?: string | null;
}

/** A customer's id: safe in header values, Redis key names and URLs. */
const CUSTOMER_ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/;

export function isCustomerId(text: string): boolean {
  return CUSTOMER_ID.test(text);
}

/** The public id of an API key: safe in header values and log lines. */
const KEY_ID = /^[\x21-\x7e]{1,256}$/;

export function isKeyId(text: string): boolean {
  return KEY_ID.test(text);
}

/** The fields of {@link EnforcedKey}. */
export const ENFORCED_KEY_FIELDS = ['id', 'customer', 'expires_at', 'revoked_at', 'replaced_by'] as const;
export const KEY_FIELDS = [...ENFORCED_KEY_FIELDS, 'name', 'prefix', 'created_at'] as const;

/** The fields of {@link EnforcedCustomer}. */
export const ENFORCED_CUSTOMER_FIELDS = [
  'plan',
  'requests_per_hour',
  'suspended',
  'created_at',
  'usage_reset_at',
] as const;
export const CUSTOMER_FIELDS = [...ENFORCED_CUSTOMER_FIELDS, 'name', 'notify_url'] as const;

export type Fields<Name extends string> = { readonly [name in Name]?: string | null };
export type KeyFields = Fields<(typeof KEY_FIELDS)[number]>;
export type CustomerFields = Fields<(typeof CUSTOMER_FIELDS)[number]>;
export type EnforcedKeyFields = Fields<(typeof ENFORCED_KEY_FIELDS)[number]>;
export type EnforcedCustomerFields = Fields<(typeof ENFORCED_CUSTOMER_FIELDS)[number]>;

/** Returns the record, or undefined when a required field is unset: then the key does not exist. */
export function keyRecordFrom(fields: KeyFields): KeyRecord | undefined {
  const enforced = enforcedKeyFrom(fields);
  return (
    enforced && {
      ...enforced,
      ...(fields.name && { name: fields.name }),
      ...(fields.prefix && { prefix: fields.prefix }),
      ...(fields.created_at && { createdAt: fields.created_at }),
    }
  );
}

/** Like {@link keyRecordFrom}, without the fields that do not affect requests. */
export function enforcedKeyFrom(fields: EnforcedKeyFields): EnforcedKey | undefined {
  if (!fields.id || !fields.customer) return undefined;
  return {
    id: fields.id,
    customer: fields.customer,
    ...(fields.expires_at && { expiresAt: fields.expires_at }),
    ...(fields.revoked_at && { revokedAt: fields.revoked_at }),
    ...(fields.replaced_by && { replacedBy: fields.replaced_by }),
  };
}

/** Returns the record, or undefined when the plan is unset: then the customer does not exist. */
export function customerRecordFrom(id: string, fields: CustomerFields): CustomerRecord | undefined {
  const enforced = enforcedCustomerFrom(id, fields);
  return (
    enforced && {
      ...enforced,
      ...(fields.name && { name: fields.name }),
      ...(fields.notify_url && { notifyUrl: fields.notify_url }),
    }
  );
}

/** Like {@link customerRecordFrom}, without the fields that do not affect requests. */
export function enforcedCustomerFrom(id: string, fields: EnforcedCustomerFields): EnforcedCustomer | undefined {
  if (!fields.plan) return undefined;
  return {
    id,
    plan: fields.plan,
    ...(fields.requests_per_hour && { requestsPerHour: parseLimit(fields.requests_per_hour) }),
    suspended: isSuspended(fields.suspended),
    ...(fields.created_at && { createdAt: fields.created_at }),
    ...(fields.usage_reset_at && { usageResetAt: fields.usage_reset_at }),
  };
}

export function keyFields(record: KeyRecord): KeyFields {
  return {
    id: record.id,
    customer: record.customer,
    name: record.name ?? null,
    prefix: record.prefix ?? null,
    created_at: record.createdAt ?? null,
    expires_at: record.expiresAt ?? null,
    revoked_at: record.revokedAt ?? null,
    replaced_by: record.replacedBy ?? null,
  };
}

export function customerFields(record: CustomerRecord): CustomerFields {
  return {
    plan: record.plan,
    requests_per_hour: record.requestsPerHour === undefined ? null : String(record.requestsPerHour),
    name: record.name ?? null,
    suspended: record.suspended ? '1' : null,
    created_at: record.createdAt ?? null,
    usage_reset_at: record.usageResetAt ?? null,
    notify_url: record.notifyUrl ?? null,
  };
}

/** Returns only the fields that change; null or an empty value unsets a field. */
export function keyChangeFields({ name, expiresAt }: KeyChange): KeyFields {
  return { ...(name !== undefined && { name }), ...(expiresAt !== undefined && { expires_at: expiresAt }) };
}

/** Returns only the fields that change; null or an empty value unsets a field. */
export function customerChangeFields(change: CustomerChange): CustomerFields {
  const { plan, name, requestsPerHour, suspended, notifyUrl } = change;
  return {
    ...(plan !== undefined && { plan }),
    ...(name !== undefined && { name }),
    ...(requestsPerHour !== undefined && { requests_per_hour: requestsPerHour?.toString() ?? null }),
    ...(suspended !== undefined && { suspended: suspended ? '1' : null }),
    ...(notifyUrl !== undefined && { notify_url: notifyUrl }),
  };
}

/** Other programs also write `true` or a date: any value except `0`, `false` and empty suspends the customer. */
function isSuspended(text: string | null | undefined): boolean {
  return Boolean(text) && text !== '0' && text !== 'false';
}

function parseLimit(text: string): number | 'invalid' {
  const limit = /^\d+$/.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(limit) && limit >= 1 ? limit : 'invalid';
}
