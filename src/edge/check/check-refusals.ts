/** Refusals that only the check listener has. */
import type { Problem } from '../../http/problems/document.ts';

/** The proxy in front is at fault: its clients must not take it for a fault of theirs. */
export const CHECK_TOKEN: Problem = {
  code: 'check_token',
  detail: 'The proxy in front of this API is not set up correctly. This says nothing about your key.',
};

export const UNAUTHORIZED: Problem = {
  code: 'unauthorized',
  detail: 'Send the value of check.token in exactly one X-Tollgate-Check-Token header.',
  // RFC 9110 §15.5.2. In the form of other headers that hold a key.
  headers: ['WWW-Authenticate', 'ApiKey realm="check", header="X-Tollgate-Check-Token"'],
};

export const NO_SUCH_CALL: Problem = {
  code: 'not_found',
  detail: 'The check listener has /ext-authz/<path>, /forward-auth, /nginx, /refusal, /usage and /verify.',
};

/** For a method that Node.js's parser doesn't know. */
export const UNKNOWN_METHOD: Problem = { code: 'bad_request', detail: 'The gateway does not know this method.' };

export const NOT_NAMED: Problem = {
  code: 'bad_request',
  detail: 'The method and the path of the request must each be named exactly once.',
};

export const FORGED_HEADER: Problem = {
  code: 'bad_request',
  detail: 'Headers whose names begin with X-Tollgate- may not be sent to this API.',
};

/**
 * For a check that names `usage_path`: were it admitted, the backend would get a request that only the gateway can serve.
 * And for `/usage` if no usage is served.
 */
export const USAGE_IS_ELSEWHERE: Problem = {
  code: 'not_found',
  detail: 'Usage is not available at this path here.',
};
