/**
 * Quota headers: draft-ietf-httpapi-ratelimit-headers-11 (`RateLimit-Policy` §3, `RateLimit` §4) and the
 * `X-RateLimit-*` headers that older clients read.
 */
import type { NonEmpty } from '../base/non-empty.ts';
import type { BurstState, QuotaDecision } from '../customers/quota/customer-quota.ts';
import { periodOf } from '../store/period-counts.ts';
import { isPeriod, type Limit } from '../store/windows.ts';

export const BURST_POLICY = 'burst';
/** Reset time of the burst policy, whose window is one second. */
const BURST_RESET_SECONDS = 1;

export type LimitState = Limit & {
  /** See `Admitted.remaining` in src/customers/quota/hourly-quota.ts. */
  readonly remaining: number;
  /** Seconds until more than `remaining` become available, at least 1. */
  readonly resetSeconds: number;
};

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
 * rounded up. X-RateLimit-* describe the window with the fewest units left, of several the first one.
 */
export function rateLimitHeaders<Headers>(
  form: Form<Headers>,
  limits: NonEmpty<LimitState>,
  burst: BurstState | undefined,
  nowMs: number,
): Headers {
  let [tightest] = limits;
  for (const state of limits) if (!isPeriod(state) && state.remaining < tightest.remaining) tightest = state;
  return headersOf(form, limits, tightest, burst, nowMs);
}

/** Returns the quota headers of a refusal. X-RateLimit-* describe the limit that refuses for the longest time. */
export function refusalHeaders(limits: NonEmpty<LimitState>, burst: BurstState | undefined, nowMs: number): string[] {
  return headersOf(asFlatList, limits, lastToEnd(limits), burst, nowMs);
}

/** Returns the limit with the longest wait, of several the first one. */
export function lastToEnd<State extends Pick<LimitState, 'resetSeconds'>>([first, ...others]: NonEmpty<State>): State {
  return others.reduce((last, state) => (state.resetSeconds > last.resetSeconds ? state : last), first);
}

function headersOf<Headers>(
  form: Form<Headers>,
  limits: NonEmpty<LimitState>,
  described: LimitState,
  burst: BurstState | undefined,
  nowMs: number,
): Headers {
  let [policies, states] = ['', ''];
  for (const state of limits) {
    const separator = policies === '' ? '' : ', ';
    policies += separator + quotaPolicy(state, nowMs);
    states += `${separator}"${state.policy}";r=${state.remaining};t=${state.resetSeconds}`;
  }
  if (burst) {
    policies += `, ${burstPolicy(burst.limit)}`;
    states += `, "${BURST_POLICY}";r=${burst.remaining};t=${BURST_RESET_SECONDS}`;
  }
  const { amount, remaining, resetSeconds } = described;
  return form(policies, states, amount, remaining, resetAt(resetSeconds, nowMs));
}

/**
 * Returns the headers for a request refused by its burst limit. The other limits were not checked, so `RateLimit` and
 * `X-RateLimit-*` describe the burst policy: the one that the client has to wait for.
 */
export function burstExceededHeaders(
  { limits, burstLimit, resetSeconds }: Extract<QuotaDecision, { outcome: 'burst_exceeded' }>,
  nowMs: number,
): string[] {
  const policies = [...limits.map((limit) => quotaPolicy(limit, nowMs)), burstPolicy(burstLimit)].join(', ');
  return asFlatList(policies, `"${BURST_POLICY}";r=0;t=${resetSeconds}`, burstLimit, 0, resetAt(resetSeconds, nowMs));
}

function resetAt(resetSeconds: number, nowMs: number): number {
  return Math.ceil(nowMs / 1000) + resetSeconds;
}

function quotaPolicy(limit: Limit, nowMs: number): string {
  return `"${limit.policy}";q=${limit.amount};w=${windowSeconds(limit, nowMs)}`;
}

/** Months differ in length. */
function windowSeconds(limit: Limit, nowMs: number): number {
  if (!isPeriod(limit)) return 3600;
  const { startHour, endHour } = periodOf(limit, nowMs);
  return (endHour - startHour) * 3600;
}

function burstPolicy(limit: number): string {
  return `"${BURST_POLICY}";q=${limit};w=1`;
}
