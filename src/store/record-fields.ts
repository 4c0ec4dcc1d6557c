/**
 * Key and customer records, and their form as named text fields, in which both stores keep them. An absent, null or empty
 * field is unset. Other programs also write such records, so no value is trusted.
 */
import { type KeyRestrictions, parseAllowedAddresses, parseScopes } from '../formats/key-restrictions.ts';
import { isWholeHour, parseTimestamp } from '../formats/timestamp.ts';

/** An API key as stored under the SHA-256 of its value; the value itself is stored nowhere. Times: ISO 8601 UTC. */
export interface KeyRecord extends KeyRestrictions {
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
  /** The key's own limit, under that of its customer. `'invalid'`: as of a customer; the key is refused. */
  readonly requestsPerHour?: number | 'invalid';
  /** The first key of its line of rotations, which share a window. Undefined: the key itself. */
  readonly root?: string;
  readonly usageResetAt?: string;
}

/** The fields that affect requests. Texts for people are excluded, because they may be of any size. */
export type EnforcedKey = Omit<KeyRecord, 'name' | 'prefix' | 'createdAt'>;

/** A limit that precedes the customer's own until it ends. Unreadable fields make one that has ended. */
export interface TemporaryLimit {
  readonly requestsPerHour: number;
  /** Wall time in ms. */
  readonly untilMs: number;
}

export interface CustomerRecord {
  readonly id: string;
  readonly plan: string;
  readonly name?: string;
  /** The customer's own limit. `'invalid'`: the stored value is not an integer of at least 1. */
  readonly requestsPerHour?: number | 'invalid';
  readonly temporaryLimit?: TemporaryLimit;
  /** The customer's own limit of a period, as `requestsPerHour` of an hour. */
  readonly periodRequests?: number | 'invalid';
  /** Wall time in ms: its periods begin on this day of the month at this hour. `'invalid'`: not a whole hour. */
  readonly periodAnchorMs?: number | 'invalid';
  /** The customer was suspended. See {@link isSuspendedAt}: the suspension may have ended. */
  readonly suspended: boolean;
  /** Wall time in ms at which the suspension ends. Absent if it has no readable end. */
  readonly suspendedUntilMs?: number;
  /** Tells the customer from a deleted one with the same id. Records that other programs wrote may lack it. */
  readonly createdAt?: string;
  readonly usageResetAt?: string;
  readonly periodResetAt?: string;
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
  readonly temporaryLimit?: TemporaryLimit | null;
  readonly periodRequests?: number | null;
  readonly periodAnchorMs?: number | null;
  readonly suspended?: boolean;
  readonly suspendedUntilMs?: number | null;
  readonly notifyUrl?: string | null;
}

/** An omitted field keeps its value; null unsets it. */
export interface KeyChange {
  readonly name?: string | null;
  readonly expiresAt?: string | null;
  /** Not empty, like `allowedAddresses`. */
  readonly scopes?: readonly string[] | null;
  readonly allowedAddresses?: readonly string[] | null;
  readonly requestsPerHour?: number | null;
}

/** The members of a record, each with its field. */
type FieldNames<Member extends string = string> = Readonly<Record<Member, string>>;

/** The members of a key that are texts. */
const KEY = {
  id: 'id',
  customer: 'customer',
  name: 'name',
  prefix: 'prefix',
  createdAt: 'created_at',
  expiresAt: 'expires_at',
  revokedAt: 'revoked_at',
  replacedBy: 'replaced_by',
  root: 'root',
  usageResetAt: 'usage_reset_at',
} as const satisfies FieldNames<Exclude<keyof KeyRecord, keyof KeyRestrictions | 'requestsPerHour'>>;
/** The members of a customer that are texts. */
const CUSTOMER = {
  plan: 'plan',
  name: 'name',
  createdAt: 'created_at',
  usageResetAt: 'usage_reset_at',
  periodResetAt: 'period_reset_at',
  notifyUrl: 'notify_url',
} as const satisfies FieldNames;

export const KEY_FIELDS = [...Object.values(KEY), 'scopes', 'allowed_addresses', 'requests_per_hour'] as const;
/** The fields of {@link EnforcedKey}. */
export const ENFORCED_KEY_FIELDS = KEY_FIELDS.filter((field) => !['name', 'prefix', 'created_at'].includes(field));
export const CUSTOMER_FIELDS = [
  ...Object.values(CUSTOMER),
  'requests_per_hour',
  'temporary_requests_per_hour',
  'temporary_until',
  'period_requests',
  'period_anchor',
  'suspended',
  'suspended_until',
] as const;
/** The fields of {@link EnforcedCustomer}. */
export const ENFORCED_CUSTOMER_FIELDS = CUSTOMER_FIELDS.filter((field) => !['name', 'notify_url'].includes(field));

export type Fields<Name extends string> = { readonly [name in Name]?: string | null };
export type KeyFields = Fields<(typeof KEY_FIELDS)[number]>;
export type CustomerFields = Fields<(typeof CUSTOMER_FIELDS)[number]>;

/**
 * Returns the record, or undefined when a required field is unset: then the key does not exist. From the fields of an
 * {@link EnforcedKey}, it returns one.
 */
export function keyRecordFrom(fields: KeyFields): KeyRecord | undefined {
  const { id, customer, ...rest } = textsFrom(KEY, fields);
  if (id === undefined || customer === undefined) return undefined;
  const { scopes, allowed_addresses: addresses, requests_per_hour: limit } = fields;
  return {
    id,
    customer,
    ...rest,
    ...(limit && { requestsPerHour: parseLimit(limit) }),
    ...(scopes && { scopes: parseScopes(scopes) }),
    ...(addresses && { allowedAddresses: parseAllowedAddresses(addresses) }),
  };
}

/** Like {@link keyRecordFrom}, for a customer, of which only the plan is required. */
export function customerRecordFrom(id: string, fields: CustomerFields): CustomerRecord | undefined {
  const { plan, ...rest } = textsFrom(CUSTOMER, fields);
  if (plan === undefined) return undefined;
  const { requests_per_hour: limit, period_requests: periodLimit, period_anchor: anchor } = fields;
  const temporaryLimit = temporaryLimitFrom(fields);
  const suspended = isSuspended(fields.suspended);
  const suspendedUntilMs = suspended ? parseTimestamp(fields.suspended_until ?? '') : undefined;
  return {
    id,
    plan,
    ...rest,
    ...(limit && { requestsPerHour: parseLimit(limit) }),
    ...(temporaryLimit && { temporaryLimit }),
    ...(periodLimit && { periodRequests: parseLimit(periodLimit) }),
    ...(anchor && { periodAnchorMs: parseAnchor(anchor) }),
    suspended,
    ...(suspendedUntilMs !== undefined && { suspendedUntilMs }),
  };
}

/** Returns undefined if neither field is set. */
export function temporaryLimitFrom(fields: CustomerFields): TemporaryLimit | undefined {
  const { temporary_requests_per_hour: number, temporary_until: until } = fields;
  if (!number && !until) return undefined;
  const [requestsPerHour, untilMs] = [parseLimit(number ?? ''), parseTimestamp(until ?? '')];
  return requestsPerHour === 'invalid' || untilMs === undefined ? ENDED : { requestsPerHour, untilMs };
}

export const ENDED: TemporaryLimit = { requestsPerHour: 0, untilMs: 0 };

/** `nowMs`: wall time, see StoreBoundedClock. */
export function isSuspendedAt(
  { suspended, suspendedUntilMs }: Pick<CustomerRecord, 'suspended' | 'suspendedUntilMs'>,
  nowMs: number,
): boolean {
  return suspended && (suspendedUntilMs === undefined || nowMs < suspendedUntilMs);
}

/**
 * Returns the wall time in ms at which a key expires; undefined if it does not. An unreadable time counts as already
 * past: a limit was intended, and no assumed one is safe.
 */
export function expiryMsOf({ expiresAt }: Pick<EnforcedKey, 'expiresAt'>): number | undefined {
  return expiresAt === undefined ? undefined : (parseTimestamp(expiresAt) ?? 0);
}

/** Returns the fields that are set or changed; null or an empty value unsets a field. */
export function keyFields(record: KeyRecord | KeyChange): KeyFields {
  const { scopes, allowedAddresses, requestsPerHour } = record;
  return {
    ...fieldsOf(KEY, record),
    ...(requestsPerHour !== undefined && { requests_per_hour: requestsPerHour?.toString() ?? null }),
    ...(scopes !== undefined && { scopes: listText(scopes, ' ') }),
    ...(allowedAddresses !== undefined && { allowed_addresses: listText(allowedAddresses, ',') }),
  };
}

/** @throws Error for an empty list: its text would unset the field, and the key could do everything. */
function listText(items: readonly string[] | null, separator: string): string | null {
  if (items?.length === 0) throw new Error('a key is restricted to nothing: its record is unreadable');
  return items?.join(separator) ?? null;
}

/** Returns the fields that are set or changed; null or an empty value unsets a field. */
export function customerFields(record: CustomerRecord | CustomerChange): CustomerFields {
  const { requestsPerHour, temporaryLimit, periodRequests, periodAnchorMs, suspended, suspendedUntilMs } = record;
  return {
    ...fieldsOf(CUSTOMER, record),
    ...(requestsPerHour !== undefined && { requests_per_hour: requestsPerHour?.toString() ?? null }),
    ...(temporaryLimit !== undefined && {
      temporary_requests_per_hour: temporaryLimit?.requestsPerHour.toString() ?? null,
      temporary_until: timeText(temporaryLimit?.untilMs),
    }),
    ...(periodRequests !== undefined && { period_requests: periodRequests?.toString() ?? null }),
    ...(periodAnchorMs !== undefined && { period_anchor: timeText(periodAnchorMs) }),
    ...(suspended !== undefined && { suspended: suspended ? '1' : null }),
    ...(suspendedUntilMs !== undefined && { suspended_until: timeText(suspendedUntilMs) }),
  };
}

/** An unreadable time was never written by this program, and is unset. */
function timeText(ms: number | 'invalid' | null | undefined): string | null {
  return typeof ms === 'number' ? new Date(ms).toISOString() : null;
}

/** Returns the members of which the fields are set. */
export function textsFrom<Names extends FieldNames>(
  names: Names,
  fields: Fields<Names[keyof Names]>,
): { [member in keyof Names]?: string } {
  const texts: { [member in keyof Names]?: string } = {};
  for (const member of Object.keys(names) as (keyof Names)[]) {
    const text = fields[names[member]];
    if (text) texts[member] = text;
  }
  return texts;
}

/** Returns the fields of the members that are not undefined. */
export function fieldsOf<Names extends FieldNames>(
  names: Names,
  members: { readonly [member in keyof Names]?: string | null | undefined },
): Fields<Names[keyof Names]> {
  const fields: { [field: string]: string | null } = {};
  for (const [member, field] of Object.entries(names)) {
    const text = members[member];
    if (text !== undefined) fields[field] = text;
  }
  return fields as Fields<Names[keyof Names]>;
}

/** Other programs also write `true` or a date: any value except `0`, `false` and empty suspends the customer. */
export function isSuspended(text: string | null | undefined): boolean {
  return Boolean(text) && text !== '0' && text !== 'false';
}

export function parseLimit(text: string): number | 'invalid' {
  const limit = /^\d+$/.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(limit) && limit >= 1 ? limit : 'invalid';
}

/** Periods begin at whole hours, because the usage history counts in hours. */
export function parseAnchor(text: string): number | 'invalid' {
  const timeMs = parseTimestamp(text);
  return timeMs !== undefined && isWholeHour(timeMs) ? timeMs : 'invalid';
}
