/** What members of several calls must be like. No message repeats a value: it may be a key in the wrong place. */
import { z } from 'zod';
import { isCustomerId } from '../customer-id.ts';
import { containsGeneratedKey, failsChecksum, isPossibleKey } from '../keys/api-key.ts';

/** Half of a surrogate pair can be stored by nobody: it would come back as another character. */
const NO_TEXT = /[\p{Cc}\p{Cs}]/u;
const NO_KEY = 'must not contain an API key';

/** A name for people. */
export const DISPLAY_NAME = z
  .string()
  .min(1, 'must not be empty')
  .max(200, 'must have at most 200 characters')
  .refine((name) => !NO_TEXT.test(name), 'must not have control characters or halves of surrogate pairs')
  .refine((name) => !containsGeneratedKey(name), NO_KEY);

export const CUSTOMER_ID = z
  .string()
  .refine(isCustomerId, 'must be 1 to 128 letters, digits and . _ : @ -, beginning with a letter or digit')
  .refine((id) => !containsGeneratedKey(id), NO_KEY);

export const REQUESTS_PER_HOUR = z.int('must be an integer').min(1, 'must be at least 1');

/** One of `names`. */
export function planName(names: ReadonlySet<string>) {
  return z
    .string()
    .min(1, 'must not be empty')
    .refine((plan) => names.has(plan), `must be one of the configured plans: ${[...names].join(', ')}`);
}

/** A key that was made elsewhere. */
export const KEY_VALUE = z
  .string()
  .refine(isPossibleKey, 'must be 8 to 512 characters of A-Z a-z 0-9 - . _ ~ + /, with "=" at the end only')
  .refine((value) => !failsChecksum(value), 'has the form of a generated key but not its checksum: it was mistyped');

/** The same by its hash, in lower case. */
export const KEY_SHA256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/i, 'must be the SHA-256 of the whole key in 64 hex digits')
  .transform((digest) => digest.toLowerCase());

/** The end of a key, as ISO 8601 with milliseconds. */
export function expiry(nowMs: () => number) {
  return z.iso
    .datetime({ error: 'must be an ISO 8601 time in UTC, such as 2030-01-31T00:00:00Z', abort: true })
    .refine((time) => Date.parse(time) > nowMs(), 'must be in the future')
    .transform((time) => new Date(time).toISOString());
}
