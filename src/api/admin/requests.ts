/**
 * The request bodies of the admin API: its handlers and the CLI's imports check them, and the OpenAPI file shows them.
 * No message repeats a value, because it may be a misplaced API key.
 */
import { z } from 'zod';
import { isAddressOrBlock } from '../../formats/address-block.ts';
import { containsGeneratedKey, failsChecksum, isPossibleKey } from '../../formats/api-key.ts';
import { isCustomerId } from '../../formats/ids.ts';
import { isScope, MAX_RESTRICTIONS } from '../../formats/key-restrictions.ts';
import { MAX_PORTAL_SESSION_MS } from '../../formats/portal.ts';
import { isWholeHour } from '../../formats/timestamp.ts';
import { isTrustworthyUrl } from '../../formats/url.ts';
import { isWebhookUrl, WEBHOOK_URL_RULE } from '../../formats/webhook-url.ts';
import { MAINTENANCE_MODES, MAX_GRACE_SECONDS, PORTAL_SCOPES } from './allowed-values.ts';
import { CUSTOMER_ID } from './responses.ts';

/** Control characters, and lone surrogates, which cannot be stored: they would be read back as another character. */
const NO_TEXT = /[\p{Cc}\p{Cs}]/u;
const NO_KEY = 'must not contain an API key';

export const NEW_CUSTOMER_ID = CUSTOMER_ID.refine(
  isCustomerId,
  'must be 1 to 128 letters, digits and . _ : @ -, beginning with a letter or digit',
).refine((id) => !containsGeneratedKey(id), NO_KEY);

export const DISPLAY_NAME = z
  .string()
  .min(1, 'must not be empty')
  .max(200, 'must have at most 200 characters')
  .refine((name) => !NO_TEXT.test(name), 'must not have control characters or halves of surrogate pairs')
  .refine((name) => !containsGeneratedKey(name), NO_KEY)
  .describe('For people. Without control characters, and without an API key in it.');

export const REQUESTS_PER_HOUR = z.int('must be an integer').min(1, 'must be at least 1');

export const NOTIFY_URL = z
  .string()
  .refine((url) => isWebhookUrl(url), WEBHOOK_URL_RULE)
  .refine((url) => !containsGeneratedKey(url), NO_KEY)
  .meta({
    description:
      "Where the customer's own notices are sent, once it has a secret (notify-secret). https, at most 2048 characters, and not in a private network.",
    examples: ['https://hooks.example/tollgate'],
  });

export const PLAN_NAME = z
  .string()
  .min(1, 'must not be empty')
  .meta({ description: 'A configured plan.', examples: ['starter'] });

/** An API key that was created outside the gateway. */
const KEY_VALUE = z
  .string()
  .refine(isPossibleKey, 'must be 8 to 512 characters of A-Z a-z 0-9 - . _ ~ + /, with "=" at the end only')
  .refine((value) => !failsChecksum(value), 'has the form of a generated key but not its checksum: it was mistyped')
  .meta({
    description: 'An existing key to import. If it has the form of a generated key, its checksum must be correct.',
    minLength: 8,
    maxLength: 512,
    pattern: '^[A-Za-z0-9._~+/-]+=*$',
  });

/** The SHA-256 of such a key, converted to lower case. */
export const KEY_SHA256 = z
  .string()
  .regex(/^[0-9A-Fa-f]{64}$/, 'must be the SHA-256 of the whole key in 64 hex digits')
  .describe('The SHA-256 of an existing key to import, computed over the whole key.')
  .transform((digest) => digest.toLowerCase());

export const FUTURE_TIME = z.iso
  .datetime({ error: 'must be an ISO 8601 time in UTC, such as 2030-01-31T00:00:00Z', abort: true })
  .meta({ description: 'In UTC, and in the future.', examples: ['2030-01-31T00:00:00Z'] });

/** The expiry of a key, converted to ISO 8601 with milliseconds. */
function expiry(nowMs: () => number) {
  return FUTURE_TIME.refine((time) => Date.parse(time) > nowMs(), 'must be in the future').transform((time) =>
    new Date(time).toISOString(),
  );
}

const SCOPE = z
  .string()
  .refine(isScope, 'must be 1 to 128 visible ASCII characters without " and \\')
  .refine((scope) => !containsGeneratedKey(scope), NO_KEY)
  .meta({ pattern: '^[!#-[\\]-~]{1,128}$' });

function restriction<Item extends z.ZodType>(item: Item) {
  const few = `must have at most ${MAX_RESTRICTIONS}`;
  return z.array(item).min(1, 'must not be empty: null allows everything').max(MAX_RESTRICTIONS, few);
}

/** What a key is restricted to. */
const SCOPES = restriction(SCOPE).describe('The key may use the routes with these scopes, and those without.');
const ALLOWED_ADDRESSES = restriction(
  z.string().refine(isAddressOrBlock, 'must be an IP address or a CIDR block such as 10.0.0.0/8'),
).meta({
  description: 'The addresses and CIDR blocks that may use the key.',
  examples: [['203.0.113.7', '2001:db8::/32']],
});

const PERIOD_ANCHOR = z.iso
  .datetime({ error: 'must be an ISO 8601 time in UTC, such as 2030-01-31T10:00:00Z', abort: true })
  .refine((time) => isWholeHour(Date.parse(time)), 'must be on a whole hour')
  .meta({
    description:
      'Its days or months begin at the hour of this time, months on this day or, if a month is shorter, on its last one. In UTC.',
    examples: ['2030-01-31T10:00:00Z'],
  })
  .transform((time) => new Date(time).toISOString());

/** What the rules of some bodies depend on. */
export interface BodyContext {
  /** Names of the configured plans. */
  readonly plans: ReadonlySet<string>;
  /** Returns wall time in ms. */
  nowMs(): number;
}

/** The optional members of a customer, for its creation, a change and an import. */
export function customerMembers(nowMs: () => number) {
  const limit = z.strictObject({ requests_per_hour: REQUESTS_PER_HOUR, until: expiry(nowMs) });
  return {
    name: DISPLAY_NAME.optional(),
    requests_per_hour: REQUESTS_PER_HOUR.optional().describe('Allowed for any plan; required for a custom one.'),
    period_requests: REQUESTS_PER_HOUR.optional().describe(
      'Its limit of a day or month, if its plan has one; required if that is custom.',
    ),
    period_anchor: PERIOD_ANCHOR.optional(),
    temporary_limit: limit.optional().describe('Precedes the other limits of the record until it ends.'),
    suspended: z
      .boolean()
      .optional()
      .describe('Requests of a suspended customer get 403. Without `suspended_until`, the suspension has no end.'),
    suspended_until: expiry(nowMs).optional().describe('Suspends the customer until then.'),
    notify_url: NOTIFY_URL.optional(),
  };
}

interface Suspension {
  readonly suspended?: boolean | undefined;
  readonly suspended_until?: string | undefined;
}

/** Parameters of `refine`, for schemas with {@link customerMembers}. */
export const END_NEEDS_SUSPENSION = [
  ({ suspended, suspended_until: until }: Suspension) => suspended !== false || until === undefined,
  { path: ['suspended_until'] as string[], message: 'must not be given with suspended: false' },
] as const;

export function newCustomer({ plans, nowMs }: BodyContext) {
  return z
    .strictObject({ id: NEW_CUSTOMER_ID, plan: configuredPlan(plans), ...customerMembers(nowMs) })
    .refine(...END_NEEDS_SUSPENSION);
}

export function customerChange({ plans, nowMs }: BodyContext) {
  const members = customerMembers(nowMs);
  const { suspended: _, suspended_until: __, ...unset } = members;
  return z
    .strictObject({ plan: configuredPlan(plans).optional(), ...members, ...orNull(unset) })
    .refine(...END_NEEDS_SUSPENSION)
    .describe('Null unsets a member. The change is refused if it leaves the customer without a limit.');
}

export function keyGeneration({ nowMs }: Pick<BodyContext, 'nowMs'>) {
  return z.strictObject({
    name: DISPLAY_NAME.optional(),
    expires_at: expiry(nowMs).optional(),
    scopes: SCOPES.optional(),
    allowed_addresses: ALLOWED_ADDRESSES.optional(),
    requests_per_hour: REQUESTS_PER_HOUR.optional().describe(
      'A limit of this key under that of its customer: both hold. A new key begins a new hour, a rotated one goes on with it.',
    ),
  });
}

export function keyCreation(context: Pick<BodyContext, 'nowMs'>) {
  return keyGeneration(context)
    .extend({ value: KEY_VALUE.optional(), sha256: KEY_SHA256.optional() })
    .refine(({ value, sha256 }) => value === undefined || sha256 === undefined, 'must have value or sha256, not both')
    .meta({ not: { required: ['value', 'sha256'] } });
}

export function keyChange(context: Pick<BodyContext, 'nowMs'>) {
  return z.strictObject(orNull(keyGeneration(context).shape)).describe('Null unsets a member.');
}

/** Returns the members, each of which may also be null. */
export function orNull<Shape extends z.ZodRawShape>(shape: Shape) {
  const members = Object.entries<z.core.SomeType>(shape).map(([name, schema]) => [name, z.nullable(schema)]);
  return Object.fromEntries(members) as { [Name in keyof Shape]: z.ZodNullable<Shape[Name]> };
}

export const ROTATION = z.strictObject({
  grace_seconds: z
    .int('must be an integer')
    .min(0, 'must be at least 0')
    .max(MAX_GRACE_SECONDS, `must be at most ${MAX_GRACE_SECONDS}`)
    .default(24 * 3600),
});

/** Of a JSON body. It replaces the former maintenance as a whole. */
export function maintenanceChange({ nowMs }: Pick<BodyContext, 'nowMs'>) {
  return z
    .strictObject({
      mode: z.enum(MAINTENANCE_MODES, `must be one of ${MAINTENANCE_MODES.join(', ')}`),
      routes: z
        .array(z.string())
        .min(1, 'must not be empty: null means all routes')
        .nullish()
        .describe('Only these routes, by their `path` in the configuration. Null or omitted: all routes.'),
      until: expiry(nowMs).nullish().describe('When it ends by itself. Null or omitted: it has no end.'),
      message: z
        .string()
        .min(1, 'must not be empty')
        .max(500, 'must have at most 500 characters')
        .refine((text) => !NO_TEXT.test(text), 'must not have control characters or halves of surrogate pairs')
        .refine((text) => !containsGeneratedKey(text), NO_KEY)
        .nullish()
        .describe('For clients, as the `detail` of their refusals. Null or omitted: default words.'),
    })
    .describe('Replaces the maintenance as a whole. With the mode `off`, the other members do not matter.');
}

const MAX_SESSION_SECONDS = MAX_PORTAL_SESSION_MS / 1000;
const SESSION_SECONDS_RULE = `must be an integer from 1 to ${MAX_SESSION_SECONDS}`;

/** Of a session or token for the portal. */
export const PORTAL_SESSION_REQUEST = z.strictObject({
  scopes: z
    .array(z.enum(PORTAL_SCOPES, `must be one of ${PORTAL_SCOPES.join(', ')}`))
    .min(1, 'must have at least one scope')
    .max(PORTAL_SCOPES.length, 'must have each scope once')
    .describe('What the holder may do. No scope includes another.'),
  user: DISPLAY_NAME.optional().describe('Who uses it, for the audit: a label that you choose.'),
  return_url: z
    .string()
    .max(2048, 'must have at most 2048 characters')
    .refine(
      (url) => isTrustworthyUrl(url, { allowFragment: true }),
      'must be an absolute https:// URL without credentials, or http:// with a loopback host',
    )
    .meta({ description: 'Where the pages lead back to.', examples: ['https://example.com/account'] })
    .optional(),
  ttl_seconds: z
    .int('must be an integer')
    .min(1, SESSION_SECONDS_RULE)
    .max(MAX_SESSION_SECONDS, SESSION_SECONDS_RULE)
    .default(3600),
});

function configuredPlan(plans: ReadonlySet<string>) {
  return PLAN_NAME.refine((plan) => plans.has(plan), `must be one of the configured plans: ${[...plans].join(', ')}`);
}

/** The nouns of a message: `the body` and `member`, or `the query` and `parameter`. */
export interface InputNouns {
  readonly whole: string;
  readonly member: string;
}

const PLAIN_NAME = /^[A-Za-z_]{1,24}$/;

/** Returns a member's name for a message. Somebody may write an API key by mistake where a name belongs. */
export function shownName(name: string): string {
  return PLAIN_NAME.test(name) ? `"${name}"` : 'a name that is not shown';
}

/** Returns the message for an issue: the member's name, and what is wrong. `issue`: from a parse with `reportInput`. */
export function describeIssue(issue: z.core.$ZodIssue, { whole, member }: InputNouns): string {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => `${shownName(key)}: unknown ${member}`).join('; ');
  }
  const path = issue.path.length > 0 ? issue.path.join('.') : whole;
  if (issue.code !== 'invalid_type') return `${path}: ${issue.message}`;
  if (issue.input === undefined) return `${path}: missing`;
  const type = issue.expected === 'int' ? 'integer' : issue.expected;
  return `${path}: must be ${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`;
}
