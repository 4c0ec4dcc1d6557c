/** What members of several calls must be like. No message repeats a value: it may be a key in the wrong place. */
import { z } from 'zod';
import { isCustomerId } from '../customer-id.ts';
import { containsGeneratedKey } from '../keys/api-key.ts';

const CONTROL_CHARACTER = /\p{Cc}/u;
const NO_KEY = 'must not contain an API key';

/** A name for people. */
export const DISPLAY_NAME = z
  .string()
  .min(1, 'must not be empty')
  .max(200, 'must have at most 200 characters')
  .refine((name) => !CONTROL_CHARACTER.test(name), 'must not have control characters')
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

/** The end of a key, as ISO 8601 with milliseconds. */
export function expiry(nowMs: () => number) {
  return z.iso
    .datetime('must be an ISO 8601 time in UTC, such as 2030-01-31T00:00:00Z')
    .refine((time) => Date.parse(time) > nowMs(), 'must be in the future')
    .transform((time) => new Date(time).toISOString());
}
