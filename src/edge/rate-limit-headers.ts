/**
 * Quota header fields: draft-ietf-httpapi-ratelimit-headers-11 (`RateLimit-Policy` §3, `RateLimit` §4) and the
 * `X-RateLimit-*` fields that older clients read.
 */

export const HOURLY_POLICY = 'hourly';
const WINDOW_SECONDS = 3600;

export interface QuotaState {
  readonly limit: number;
  /** A lower bound of what is left. */
  readonly remaining: number;
  /** Seconds until more than `remaining` become available, at least 1. */
  readonly resetSeconds: number;
}

/** Flat `[name, value, …]`. `nowMs` is wall time; the epoch second of the reset is rounded up. */
export function rateLimitHeaders(quota: QuotaState, nowMs: number): string[] {
  const { limit, remaining, resetSeconds } = quota;
  return [
    'RateLimit-Policy',
    `"${HOURLY_POLICY}";q=${limit};w=${WINDOW_SECONDS}`,
    'RateLimit',
    `"${HOURLY_POLICY}";r=${remaining};t=${resetSeconds}`,
    'X-RateLimit-Limit',
    String(limit),
    'X-RateLimit-Remaining',
    String(remaining),
    'X-RateLimit-Reset',
    String(Math.ceil(nowMs / 1000) + resetSeconds),
  ];
}
