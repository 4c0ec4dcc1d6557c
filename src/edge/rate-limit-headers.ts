/**
 * Quota headers: draft-ietf-httpapi-ratelimit-headers-11 (`RateLimit-Policy` §3, `RateLimit` §4) and the
 * `X-RateLimit-*` headers that older clients read.
 */

import type { BurstState, QuotaDecision } from '../quota/customer-quota.ts';

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
 * Returns the quota headers as lines, each after the CRLF of the line before it. `burst` is undefined if the plan has no
 * burst limit. `nowMs` is wall time; the reset is an epoch second, rounded up. X-RateLimit-* describe the hourly policy.
 */
export function rateLimitLines(quota: QuotaState, burst: BurstState | undefined, nowMs: number): string {
  const { limit, remaining, resetSeconds } = quota;
  const burstItem = burst ? `, "${BURST_POLICY}";r=${burst.remaining};t=${BURST_RESET_SECONDS}` : '';
  return (
    `\r\nRateLimit-Policy: ${hourlyPolicy(limit)}${burst ? `, ${burstPolicy(burst.limit)}` : ''}` +
    `\r\nRateLimit: "${HOURLY_POLICY}";r=${remaining};t=${resetSeconds}${burstItem}${onePolicyLines(quota, nowMs)}`
  );
}

/** Returns lines of headers as flat headers (name, value, …), for a problem. */
export function flatHeaders(lines: string): string[] {
  return lines.split(/\r\n|: /).slice(1);
}

/**
 * Like {@link rateLimitLines}, for a request refused by its burst limit. The hourly window was not checked, so
 * `RateLimit` and `X-RateLimit-*` describe the burst policy: the one that the client has to wait for.
 */
export function burstExceededLines(
  { limit, burstLimit, resetSeconds }: Extract<QuotaDecision, { outcome: 'burst_exceeded' }>,
  nowMs: number,
): string {
  return (
    `\r\nRateLimit-Policy: ${hourlyPolicy(limit)}, ${burstPolicy(burstLimit)}` +
    `\r\nRateLimit: "${BURST_POLICY}";r=0;t=${resetSeconds}` +
    onePolicyLines({ limit: burstLimit, remaining: 0, resetSeconds }, nowMs)
  );
}

/** The `X-RateLimit-*` headers, which can describe only one policy. */
function onePolicyLines({ limit, remaining, resetSeconds }: QuotaState, nowMs: number): string {
  const resetAt = Math.ceil(nowMs / 1000) + resetSeconds;
  return `\r\nX-RateLimit-Limit: ${limit}\r\nX-RateLimit-Remaining: ${remaining}\r\nX-RateLimit-Reset: ${resetAt}`;
}

function hourlyPolicy(limit: number): string {
  return `"${HOURLY_POLICY}";q=${limit};w=${WINDOW_SECONDS}`;
}

function burstPolicy(limit: number): string {
  return `"${BURST_POLICY}";q=${limit};w=1`;
}
