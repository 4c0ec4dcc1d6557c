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

/** In which form the headers are returned. `resetAt`: epoch second. X-RateLimit-* can describe only one policy. */
export type Form<Headers> = (
  policies: string,
  states: string,
  limit: number,
  remaining: number,
  resetAt: number,
) => Headers;

/** As lines, each after the CRLF of the line before it: for a response of the backend. */
export const asLines: Form<string> = (policies, states, limit, remaining, resetAt) =>
  `\r\nRateLimit-Policy: ${policies}\r\nRateLimit: ${states}` +
  `\r\nX-RateLimit-Limit: ${limit}\r\nX-RateLimit-Remaining: ${remaining}\r\nX-RateLimit-Reset: ${resetAt}`;

/** As a flat list (name, value, …): for a problem. */
export const asFlatList: Form<string[]> = (policies, states, limit, remaining, resetAt) => [
  'RateLimit-Policy',
  policies,
  'RateLimit',
  states,
  'X-RateLimit-Limit',
  String(limit),
  'X-RateLimit-Remaining',
  String(remaining),
  'X-RateLimit-Reset',
  String(resetAt),
];

/**
 * Returns the quota headers. `burst` is undefined if the plan has no burst limit. `nowMs` is wall time; the reset is
 * rounded up. X-RateLimit-* describe the hourly policy.
 */
export function rateLimitHeaders<Headers>(
  form: Form<Headers>,
  { limit, remaining, resetSeconds }: QuotaState,
  burst: BurstState | undefined,
  nowMs: number,
): Headers {
  const burstState = burst ? `, "${BURST_POLICY}";r=${burst.remaining};t=${BURST_RESET_SECONDS}` : '';
  return form(
    `${hourlyPolicy(limit)}${burst ? `, ${burstPolicy(burst.limit)}` : ''}`,
    `"${HOURLY_POLICY}";r=${remaining};t=${resetSeconds}${burstState}`,
    limit,
    remaining,
    resetAt(resetSeconds, nowMs),
  );
}

/**
 * Returns the headers for a request refused by its burst limit. The hourly window was not checked, so `RateLimit` and
 * `X-RateLimit-*` describe the burst policy: the one that the client has to wait for.
 */
export function burstExceededHeaders(
  { limit, burstLimit, resetSeconds }: Extract<QuotaDecision, { outcome: 'burst_exceeded' }>,
  nowMs: number,
): string[] {
  const policies = `${hourlyPolicy(limit)}, ${burstPolicy(burstLimit)}`;
  return asFlatList(policies, `"${BURST_POLICY}";r=0;t=${resetSeconds}`, burstLimit, 0, resetAt(resetSeconds, nowMs));
}

function resetAt(resetSeconds: number, nowMs: number): number {
  return Math.ceil(nowMs / 1000) + resetSeconds;
}

function hourlyPolicy(limit: number): string {
  return `"${HOURLY_POLICY}";q=${limit};w=${WINDOW_SECONDS}`;
}

function burstPolicy(limit: number): string {
  return `"${BURST_POLICY}";q=${limit};w=1`;
}
