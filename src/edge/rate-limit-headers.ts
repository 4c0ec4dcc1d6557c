/**
 * Quota headers: draft-ietf-httpapi-ratelimit-headers-11 (`RateLimit-Policy` §3, `RateLimit` §4) and the
 * `X-RateLimit-*` headers that older clients read.
 */

import type { BurstState } from '../quota/customer-quota.ts';

export const HOURLY_POLICY = 'hourly';
export const BURST_POLICY = 'burst';
const WINDOW_SECONDS = 3600;
/** Reset time of the burst policy, whose window is one second. */
const BURST_RESET_SECONDS = 1;

interface QuotaState {
  readonly limit: number;
  /** See `Admitted.remaining` in src/quota/hourly-quota.ts. */
  readonly remaining: number;
  /** Seconds until more than `remaining` become available, at least 1. */
  readonly resetSeconds: number;
}

/**
 * Returns `headers` with the quota headers appended (name, value, …). `burst` is undefined if the plan has no burst limit.
 * `nowMs` is wall time; the reset is an epoch second, rounded up. X-RateLimit-* describe the hourly policy.
 */
export function rateLimitHeaders(
  quota: QuotaState,
  burst: BurstState | undefined,
  nowMs: number,
  headers: string[] = [],
): string[] {
  const { limit, remaining, resetSeconds } = quota;
  const burstItem = burst ? `, "${BURST_POLICY}";r=${burst.remaining};t=${BURST_RESET_SECONDS}` : '';
  headers.push(
    'RateLimit-Policy',
    `"${HOURLY_POLICY}";q=${limit};w=${WINDOW_SECONDS}${burst ? `, ${burstPolicy(burst.limit)}` : ''}`,
    'RateLimit',
    `"${HOURLY_POLICY}";r=${remaining};t=${resetSeconds}${burstItem}`,
  );
  return withOnePolicy(headers, quota, nowMs);
}

/**
 * Returns the headers for a request refused by its burst limit. The hourly window was not checked, so `RateLimit` and
 * `X-RateLimit-*` describe the burst policy: the one that the client has to wait for.
 */
export function burstExceededHeaders(
  hourlyLimit: number,
  burstLimit: number,
  resetSeconds: number,
  nowMs: number,
): string[] {
  const headers = [
    'RateLimit-Policy',
    `"${HOURLY_POLICY}";q=${hourlyLimit};w=${WINDOW_SECONDS}, ${burstPolicy(burstLimit)}`,
    'RateLimit',
    `"${BURST_POLICY}";r=0;t=${resetSeconds}`,
  ];
  return withOnePolicy(headers, { limit: burstLimit, remaining: 0, resetSeconds }, nowMs);
}

/** Appends the `X-RateLimit-*` headers, which can describe only one policy. */
function withOnePolicy(headers: string[], { limit, remaining, resetSeconds }: QuotaState, nowMs: number): string[] {
  headers.push(
    'X-RateLimit-Limit',
    String(limit),
    'X-RateLimit-Remaining',
    String(remaining),
    'X-RateLimit-Reset',
    String(Math.ceil(nowMs / 1000) + resetSeconds),
  );
  return headers;
}

function burstPolicy(limit: number): string {
  return `"${BURST_POLICY}";q=${limit};w=1`;
}
