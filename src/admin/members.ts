/** Schemas of members that several calls share. No message repeats a value: it may be a misplaced API key. */
import { z } from 'zod';
import { containsGeneratedKey, failsChecksum, isPossibleKey } from '../keys/api-key.ts';
import { isCustomerId } from '../store/record-ids.ts';

/** Control characters, and lone surrogates, which cannot be stored: they would be read back as another character. */
const NO_TEXT = /[\p{Cc}\p{Cs}]/u;
const NO_KEY = 'must not contain an API key';

/** A display name. */
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

/** Accepts one of `names`. */
export function planName(names: ReadonlySet<string>) {
  return z
    .string()
    .min(1, 'must not be empty')
    .refine((plan) => names.has(plan), `must be one of the configured plans: ${[...names].join(', ')}`);
}

/** An API key that was created outside the gateway. */
export const KEY_VALUE = z
  .string()
  .refine(isPossibleKey, 'must be 8 to 512 characters of A-Z a-z 0-9 - . _ ~ + /, with "=" at the end only')
  .refine((value) => !failsChecksum(value), 'has the form of a generated key but not its checksum: it was mistyped');

/** The SHA-256 of such a key, converted to lower case. */
export const KEY_SHA256 = z
  .string()
  .regex(/^[0-9a-f]{64}$/i, 'must be the SHA-256 of the whole key in 64 hex digits')
  .transform((digest) => digest.toLowerCase());

/** The expiry of a key, converted to ISO 8601 with milliseconds. */
export function expiry(nowMs: () => number) {
  return z.iso
    .datetime({ error: 'must be an ISO 8601 time in UTC, such as 2030-01-31T00:00:00Z', abort: true })
    .refine((time) => Date.parse(time) > nowMs(), 'must be in the future')
    .transform((time) => new Date(time).toISOString());
}
