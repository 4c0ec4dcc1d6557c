/** The query parameters of the admin API: checked as text, and converted to what its handlers use. */
import { z } from 'zod';
import { isKeyBeginning, MAX_KEY_BEGINNING_LENGTH } from '../../formats/api-key.ts';
import { isCustomerId } from '../../formats/ids.ts';
import { EXPORT_FORMATS } from './allowed-values.ts';
import { KEY_SHA256 } from './requests.ts';
import { AUDIT_ACTIONS, CUSTOMER_ID, NOTICE_STATES, TIME } from './responses.ts';

const TEXT = z.string().min(1, 'must not be empty');

function integer(minimum: number, maximum: number, noun = 'an integer') {
  const isInRange = (text: string) => /^[1-9]\d*$/.test(text) && Number(text) >= minimum && Number(text) <= maximum;
  return z
    .string()
    .refine(isInRange, `must be ${noun} from ${minimum} to ${maximum}`)
    .transform(Number)
    .meta({ type: 'integer', minimum, maximum });
}

export const LIMIT = pageLimit(1000);

export function pageLimit(maximum: number) {
  return integer(1, maximum)
    .default(100)
    .describe('Maximum number of items in a page. A page may have fewer items even if more pages follow.');
}

export const CURSOR = z
  .string()
  .min(1, 'must be the next_cursor of an earlier response')
  .optional()
  .describe('The `next_cursor` of the previous page.');
const WALL_TIME_MS = TIME.transform((time) => Date.parse(time)).optional();
export const FROM = WALL_TIME_MS.describe("The start of the range, inclusive, by the store's clock.");
export const TO = WALL_TIME_MS.describe("The end of the range, exclusive, by the store's clock.");

export const WINDOW = z
  .enum(['hour', 'period'], 'must be hour or period')
  .default('hour')
  .describe('What is reset: the last hour, or the present day or month.');

const DAYS = integer(1, 99_999).optional();
export const UNUSED_DAYS = DAYS.describe(
  'Only keys that are neither revoked nor expired, and that were last used (or, if never used, created) at least this many days ago.',
);
export const EXPIRING_DAYS = DAYS.describe('Only live keys that expire within so many days.');
export const KEY_PREFIX = z
  .string()
  .refine(
    isKeyBeginning,
    `must be the first 1 to ${MAX_KEY_BEGINNING_LENGTH} characters of a key; never send more of one`,
  )
  .meta({ pattern: `^[A-Za-z0-9._~+/-]{1,${MAX_KEY_BEGINNING_LENGTH}}$` })
  .optional()
  .describe(
    'Only keys that may begin with this text, by their member `prefix`. At most 12 characters, because proxies log queries. Keys without `prefix` are never included.',
  );
export const KEY_ID = TEXT.optional().describe('Only the key with this id, if it exists.');
export const SHA256 = KEY_SHA256.optional().describe('Only the key with this SHA-256 in hex, if it exists.');

export const PLAN = TEXT.optional().describe(
  'Only customers of this plan, by its current name or the one in their records.',
);
export const SUSPENDED = z
  .enum(['true', 'false'], 'must be true or false')
  .transform((text) => text === 'true')
  .optional()
  .describe('true: only suspended customers; false: only customers that are not suspended.');
export const ID_PREFIX = CUSTOMER_ID.refine(isCustomerId, 'must be the beginning of a customer id')
  .optional()
  .describe('Only customers whose id begins with this text.');
const FRAGMENTS = TEXT.max(200, 'must have at most 200 characters').optional();
export const SEARCH = FRAGMENTS.describe(
  'Only customers whose id and name contain each word of this text, in any case and order; those whose name contains all of it first.',
);
export const KEY_SEARCH = FRAGMENTS.describe(
  'Only keys whose id, name, prefix, and customer with its name contain each word of this text, in any case and order, and which do not match by their customer alone. Never more than the first 12 characters of a key.',
);

export const REQUEST_CUSTOMER = TEXT.optional().describe('Only requests of this customer.');
export const REQUEST_CODE = TEXT.optional().describe('Only requests that were refused or failed with this `code`.');

export const NOTICE_ID = TEXT.optional().describe('Only the notice with this id, if it is not delivered yet.');
export const NOTICE_STATE = z
  .enum(NOTICE_STATES, 'must be pending or dead')
  .optional()
  .describe('Only notices with a delivery in this state.');
export const AUDIT_CUSTOMER = TEXT.optional().describe('Only entries about this customer.');
export const AUDIT_ACTION = z
  .enum(AUDIT_ACTIONS, 'must be an action of the audit')
  .optional()
  .describe('Only entries of this action.');

export const STEP = z.enum(['hour', 'day'], 'must be hour or day').default('hour');
const PERCENTAGE = integer(50, 999, 'a percentage');
export const ABOVE = PERCENTAGE.default(80).describe('The least percentage of the limit.');
export const ONLY_ABOVE = PERCENTAGE.optional().describe(
  'Only customers that have used at least this percentage of their limits, worst first, on one page.',
);
const FORMAT = z.enum(EXPORT_FORMATS, `must be one of ${EXPORT_FORMATS.join(', ')}`);
export const EXPORT_FORMAT = FORMAT.default('jsonl');
export const PERIOD_FORMAT = FORMAT.optional().describe('Lines of this format in place of the JSON document.');
export const ENDED_AFTER = WALL_TIME_MS.describe('Only periods that ended then or later.');
export const ENDED_BEFORE = WALL_TIME_MS.describe('Only periods that ended before.');
export const EXPORT_LIMIT = LIMIT.default(1000).describe('Customers in one response.');
