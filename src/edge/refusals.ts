/** Builds the problem documents for requests that the gateway refuses or whose forwarding fails. */
import { mapAll } from '../base/non-empty.ts';
import type { QuotaDecision } from '../customers/quota/customer-quota.ts';
import type { Problem } from '../http/problems/document.ts';
import type { Maintenance } from '../store/maintenance.ts';
import type { Policy } from '../store/windows.ts';
import { FAILURE_PROBLEMS, isClientFault, type UpstreamFailure } from '../upstream/failures.ts';
import { type KeyRefusalSettings, newKeyAdvice } from './credentials.ts';
import { findPathFault } from './path.ts';
import { BURST_POLICY, burstExceededHeaders, lastToEnd, refusalHeaders } from './rate-limit-headers.ts';
import type { RouteLife } from './route-life.ts';
import { listed, type PublicRouteTable } from './routes.ts';

const RETRY_SOON = ['Retry-After', '1'];

export function methodNotAllowed(allow: string, method?: string): Problem {
  const cors = method === 'OPTIONS' ? ' There is no CORS here: call this API from a server, not from a web page.' : '';
  const detail = `This path supports ${listed(allow.split(', '))}.${cors}`;
  return { code: 'method_not_allowed', detail, headers: ['Allow', allow] };
}

/** Refuses a method that Node.js's parser doesn't know. Only the target of such a request is available. */
export function refuseMethod(target: string, routes: PublicRouteTable): Problem {
  const [path = ''] = target.split('?', 1);
  const fault = findPathFault(path);
  if (fault) return { code: 'bad_request', detail: `The path ${fault}.` };
  const match = routes.match(path);
  return match.found ? methodNotAllowed(match.route.allow) : { code: 'not_found', detail: match.detail };
}

export function bodyTooLarge(maxBytes: number): Problem {
  return { code: 'body_too_large', detail: `The body of this request may have at most ${maxBytes} bytes.` };
}

export function invalidKey(settings: KeyRefusalSettings): Problem {
  return {
    code: 'invalid_key',
    detail: `The API key is not valid. Check that all of it was copied, or ${newKeyAdvice(settings)}.`,
    headers: ['WWW-Authenticate', settings.keyHeaders.challenges.invalidToken],
  };
}

/** Refuses an invalid key from an address that sent many invalid keys. A valid key is never refused for that. */
export function tooManyFailures(retrySeconds: number): Problem {
  return {
    code: 'too_many_failures',
    detail: `Invalid API key. Too many invalid keys came from your address. ${tryAgainIn(retrySeconds)}`,
    headers: ['Retry-After', String(retrySeconds)],
  };
}

export function browserUse(settings: KeyRefusalSettings): Problem {
  return {
    code: 'browser_use',
    detail: `This API key was sent by a browser, where it can be read. Consider it exposed: ${newKeyAdvice(settings)}, and call this API from a server.`,
  };
}

export const ADDRESS_NOT_ALLOWED: Problem = {
  code: 'address_not_allowed',
  detail: 'This API key may not be used from your address. Use another key, or have its allowed addresses changed.',
};

/** `scope`: what the route needs. Undefined: the key's scopes are unreadable, and the route needs none. */
export function insufficientScope(scope: string | undefined, { keyHeaders }: KeyRefusalSettings): Problem {
  const { insufficientScope: challenge } = keyHeaders.challenges;
  return {
    code: 'insufficient_scope',
    detail:
      scope === undefined
        ? 'The scopes of this API key cannot be read. Contact support.'
        : `This API key lacks the scope ${scope}. Use another key, or have its scopes changed.`,
    headers: ['WWW-Authenticate', scope === undefined ? challenge : `${challenge}, scope="${scope}"`],
  };
}

export const CUSTOMER_SUSPENDED: Problem = {
  code: 'customer_suspended',
  detail: 'This account is suspended. Contact support to have it reactivated.',
};

export const QUOTA_NOT_CONFIGURED: Problem = {
  code: 'quota_not_configured',
  detail: 'This account has no request quota yet. Contact support.',
};

/** Refuses a request by the limit that it exceeds. `nowMs`: wall time. */
export function limitExceeded(
  decision: Exclude<QuotaDecision, { outcome: 'admitted' | 'not_configured' }>,
  nowMs: number,
): Problem {
  const { outcome: code } = decision;
  if (code === 'too_many_concurrent') {
    // Without RateLimit headers: those describe quotas over time, and the hourly quota was not checked.
    const detail = `This account has reached its limit of requests in progress: ${decision.maxConcurrent}. Try again when one of them has ended.`;
    return { code, detail, headers: RETRY_SOON };
  }
  if (code === 'cost_exceeds_limit') {
    const { units, limit } = decision;
    const { policy, amount } = limit;
    const whose = policy === 'key' ? 'hourly limit of this API key' : `${policy} limit of this account`;
    const detail = `This request takes ${units} units, and the ${whose} is ${amount}: waiting does not help.`;
    return { code, detail, members: { units, limit: amount, policy } };
  }
  if (code === 'burst_exceeded') {
    const { burstLimit, resetSeconds } = decision;
    const what = `More than ${burstLimit} requests arrived within a second.`;
    return tooMany(code, what, resetSeconds, burstExceededHeaders(decision, nowMs), [BURST_POLICY]);
  }
  const { violated, units, burst } = decision;
  const states = mapAll(violated, (limit) => ({ remaining: 0, ...limit }));
  const what = states.map(({ policy, amount, remaining, ofCustomer }) => {
    const used =
      remaining === 0
        ? `All ${amount} requests ${PERIOD[policy]} are used.`
        : `This request takes ${units} units, and ${remaining} of the ${amount} ${PERIOD[policy]} are left.`;
    return ofCustomer === undefined ? used : `${used} The account has ${ofCustomer} left.`;
  });
  const policies = violated.map(({ policy }) => policy);
  const { resetSeconds, endsAtMs } = lastToEnd(states);
  const problem = tooMany(code, what.join(' '), resetSeconds, refusalHeaders(states, burst, nowMs), policies, endsAtMs);
  return units === 1 ? problem : { ...problem, members: { ...problem.members, units } };
}

const PERIOD: Readonly<Record<Policy, string>> = {
  hourly: 'of the last hour',
  key: 'of the last hour with this API key',
  daily: 'of this day',
  monthly: 'of this month',
};

function tooMany(
  code: 'quota_exceeded' | 'burst_exceeded',
  what: string,
  resetSeconds: number,
  headers: readonly string[],
  policies: readonly string[],
  resetsAtMs?: number,
): Problem {
  const resets_at = resetsAtMs === undefined ? undefined : new Date(resetsAtMs).toISOString();
  return {
    code,
    detail: `${what} ${resets_at === undefined ? tryAgainIn(resetSeconds) : `Try again after ${resets_at}.`}`,
    headers: ['Retry-After', String(resetSeconds), ...headers],
    members: { 'violated-policies': policies, ...(resets_at !== undefined && { resets_at }) },
  };
}

/** `nowMs`: wall time. */
export function inMaintenance({ mode, untilMs, message }: Maintenance, nowMs: number): Problem {
  const what =
    mode === 'down' ? 'This path is in maintenance.' : 'This path is in maintenance, and only read meanwhile.';
  const retrySeconds = untilMs === undefined ? undefined : Math.max(1, Math.ceil((untilMs - nowMs) / 1000));
  const when = retrySeconds === undefined ? 'Try again later.' : tryAgainIn(retrySeconds);
  return {
    code: 'maintenance',
    detail: message ?? `${what} The request was not counted. ${when}`,
    ...(retrySeconds !== undefined && { headers: ['Retry-After', String(retrySeconds)] }),
  };
}

export function gone({ successor }: RouteLife): Problem {
  const advice = successor === undefined ? 'See the documentation for what replaces it.' : `Use ${successor} instead.`;
  return {
    code: 'gone',
    detail: `This path was shut down, and the request was not counted. ${advice}`,
    ...(successor !== undefined && { members: { successor } }),
  };
}

export const STORE_UNAVAILABLE: Problem = {
  code: 'store_unavailable',
  detail: 'The request cannot be checked right now. This says nothing about your key: try again shortly.',
  headers: RETRY_SOON,
};

/** `closes`: close the connection as well, because it is above the connection limit. */
export function overloaded(closes: boolean): Problem {
  return {
    code: 'overloaded',
    detail: 'The gateway is overloaded. The request was not counted: try again shortly.',
    headers: closes ? [...RETRY_SOON, 'Connection', 'close'] : RETRY_SOON,
  };
}

/** The backend of the request has as many requests in progress as others leave to it. */
export const BACKEND_OVERLOADED: Problem = {
  code: 'overloaded',
  detail: 'The backend of this path is overloaded. The request was not counted: try again shortly.',
  headers: RETRY_SOON,
};

const UPSTREAM_DETAILS = {
  bad_gateway: 'The backend sent no valid response. The request was counted.',
  gateway_timeout: 'The backend did not respond in time. The request was counted.',
  overloaded: 'Too many requests of this account are in progress. The request was not counted: try again shortly.',
  upstream_unavailable: 'The backend cannot be reached. The request was not sent and not counted: try again shortly.',
  body_too_large: 'The body of the request is longer than allowed.',
  request_timeout: 'The body of the request arrived too slowly.',
  bad_request: 'The body of the request cannot be parsed, is incomplete, or is in chunks that are too small.',
} as const;

/** The same for requests without a key, which are never counted. */
const KEYLESS_DETAILS = {
  ...UPSTREAM_DETAILS,
  bad_gateway: 'The backend sent no valid response.',
  gateway_timeout: 'The backend did not respond in time.',
  overloaded: 'Too many requests without an API key are in progress: try again shortly.',
  upstream_unavailable: 'The backend cannot be reached. The request was not sent: try again shortly.',
} as const;

/** `quotaHeaders`: undefined if the request was never sent upstream, and so was not counted. */
export function upstreamFailed(
  failure: UpstreamFailure,
  quotaHeaders: string[] | undefined,
  isKeyless = false,
): Problem {
  const code = FAILURE_PROBLEMS[failure];
  const unsentHeaders = isClientFault(failure) ? [] : RETRY_SOON;
  const details = isKeyless ? KEYLESS_DETAILS : UPSTREAM_DETAILS;
  return { code, detail: details[code], headers: quotaHeaders ?? unsentHeaders };
}

/** A quarter of `limits.in_flight` bodies of this customer are arriving. */
export const TOO_MANY_UPLOADS = upstreamFailed('share_exceeded', undefined);

/** The requests without a key, or those from the client's address, use up their share of `limits.in_flight`. */
export const TOO_MANY_KEYLESS = upstreamFailed('share_exceeded', undefined, true);

export const INTERNAL_ERROR: Problem = {
  code: 'internal_error',
  detail: 'The gateway failed. Please report the request_id.',
};

/** Returns the wait in words, for people. `Retry-After` has the exact seconds. */
function tryAgainIn(seconds: number): string {
  if (seconds === 1) return 'Try again in a second.';
  if (seconds < 120) return `Try again in ${seconds} seconds.`;
  return `Try again in about ${Math.ceil(seconds / 60)} minutes.`;
}
