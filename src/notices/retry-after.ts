/**
 * Parses Retry-After, as seconds or as an HTTP date (RFC 9110 §10.2.3), to a wait in ms. Returns null if there is none,
 * or it is invalid or in the past.
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  if (/^\d{1,10}$/.test(value)) return Number(value) * 1000;
  // A date without a time zone, or a number with a sign, is not an HTTP date.
  const waitMs = / GMT$/.test(value) ? Date.parse(value) - nowMs : Number.NaN;
  return waitMs > 0 ? waitMs : null;
}
