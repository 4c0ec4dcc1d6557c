import { randomBytes } from 'node:crypto';

const RANDOM_BYTES = 6;

/** Returns a source of short ids without white space, `:` or `.` before its end, that differ from those of all other sources. */
export function uniqueIds(): () => string {
  const source = randomBytes(RANDOM_BYTES).toString('base64url');
  let count = 0;
  return () => `${source}.${(count++).toString(36)}`;
}
