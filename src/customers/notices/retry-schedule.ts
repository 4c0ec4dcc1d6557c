/** Waits after the first, second, … failed attempt. A receiver that is down for half an hour still gets the notice. */
const WAITS_MS = [5000, 30_000, 120_000, 600_000, 1_800_000] as const;

/** Waits are lengthened by up to this part, so that receivers are not called by all notices at once. */
const JITTER = 0.2;

/** The longest Retry-After that is respected. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * Returns the wait until the next attempt in ms, or null when the notice is dead. `retryAfterMs`: what the receiver asked
 * for. `random`: from 0 to 1.
 */
export function waitBeforeAttempt(failedAttempts: number, retryAfterMs: number | null, random: number): number | null {
  const waitMs = WAITS_MS[failedAttempts - 1];
  if (waitMs === undefined) return null;
  return Math.max(Math.round(waitMs * (1 + JITTER * random)), Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS));
}
