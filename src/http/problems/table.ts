/**
 * All problem types of the gateway, keyed by code. docs/errors.md is generated from this table, and the console shows its
 * titles and advice. Codes are stable: clients may switch on them. A code's title is constant; what happened this time
 * goes into `detail`.
 */

export interface ProblemEntry {
  readonly status: number;
  readonly title: string;
  /** When the gateway responds with it: one sentence for docs/errors.md. */
  readonly when: string;
  /** What the recipient can do about it, for docs/errors.md. */
  readonly remedy: string;
  /** What the operator can do for a customer whose requests are refused with it, for the console. */
  readonly advice?: string;
  /** Type that draft-ietf-httpapi-ratelimit-headers-11 requests for IANA's registry of problem types (RFC 9457 §4.2). */
  readonly requestedType?: 'quota-exceeded';
}

export const PROBLEMS = {
  missing_key: {
    status: 401,
    title: 'API key required',
    when: 'None of the headers in `auth.key_headers` is in the request, or `Authorization` has a scheme other than Bearer.',
    remedy:
      'Send the key that you were given in the header that `detail` names, by default `Authorization: Bearer <API_KEY>`.',
  },
  malformed_key: {
    status: 400,
    title: 'Malformed credentials',
    when: 'The request has two headers that may hold the key, even with the same one, or two Authorization headers. Or the value cannot be an API key.',
    remedy:
      'Send exactly one header with the key as it was shown; in Authorization, after `Bearer` and one space. Other headers hold nothing but the key.',
  },
  invalid_key: {
    status: 401,
    title: 'Invalid API key',
    when: 'The key is unknown, revoked or expired; the response does not say which.',
    remedy: 'Check that the whole key was copied; otherwise ask whoever gave you the key for a new one.',
    advice: 'The key is revoked or expired. Create a new one, and replace the old one in the client.',
  },
  key_in_query: {
    status: 401,
    title: 'API key in the query',
    when: 'No header holds an API key, but the query does, where servers and proxies log it.',
    remedy: 'Rotate the key: it must be considered exposed. Send the new one in the header that `detail` names.',
    advice: 'Rotate the key: servers and proxies log queries.',
  },
  too_many_failures: {
    status: 429,
    title: 'Too many failed attempts',
    when: 'The API key, token or JWT is invalid, and so were too many others from the same address within the last minute (`auth.failures_per_minute`). Valid credentials are never refused for this reason.',
    remedy: 'Correct or stop the client, and wait for the seconds in `Retry-After`.',
    advice: 'Find the client that sends invalid keys; see its address in the log.',
  },
  browser_use: {
    status: 403,
    title: 'API key used from a browser',
    when: 'A browser sent the request (`Origin` or `Sec-Fetch-Site`), and `auth.browser_keys` is `reject`.',
    remedy: 'Rotate the key: every user of the page can read it. Call the API from your own server.',
    advice: 'Rotate the key: users of the page can read it.',
  },
  address_not_allowed: {
    status: 403,
    title: 'Address not allowed',
    when: 'The key may be used from certain addresses only, and the request comes from another one. Or the allowed addresses in its record are unreadable.',
    remedy: 'Send the request from an allowed address, or use another key. The request was not counted.',
    advice:
      'Compare the address in the log with the allowed addresses of the key. If many clients share one address, check listen.trusted_proxies.',
  },
  insufficient_scope: {
    status: 403,
    title: 'Insufficient scope',
    when: 'The key has scopes, but not the `scope` of the route (RFC 6750), or the scopes in its record are unreadable. Portal: the session or token lacks the scope that the call needs.',
    remedy:
      'Use a key that has the scope in `WWW-Authenticate`; the request was not counted. Portal: open it with a link or token that has the scope that `detail` names.',
    advice: 'Give the key the scope of the route, or the client another key.',
  },
  customer_suspended: {
    status: 403,
    title: 'Account suspended',
    when: 'The customer that owns the key is suspended. Portal: a suspended customer can change nothing.',
    remedy: 'Contact support to have the account reactivated. The key itself is fine.',
    advice: 'Reactivate the customer. The audit shows who suspended it.',
  },
  quota_not_configured: {
    status: 403,
    title: 'No quota configured',
    when: 'No limit can be found: the plan is unknown, the customer record is missing, or a custom plan has no number.',
    remedy: 'Contact support: the account needs a plan with a limit. The key itself is fine.',
    advice: 'Give the customer a configured plan, or a limit of its own.',
  },
  quota_exceeded: {
    status: 429,
    title: 'Quota exceeded',
    requestedType: 'quota-exceeded',
    when: 'The customer has used its quota of the last 3600 seconds, or of the present day or month; all keys of a customer share it.',
    remedy: 'Wait for the seconds in `Retry-After`, then try again; refused requests are not counted.',
    advice: 'Wait, raise the limit, or reset the usage.',
  },
  cost_exceeds_limit: {
    status: 403,
    title: 'Request exceeds the limit',
    when: 'A request to this route takes more `units` than one of the limits of the account allows in all; `policy` names it.',
    remedy: 'Contact support: the account needs a higher limit for this route. The request was not counted.',
    advice: 'Raise the limit of the customer, or lower the units of the route.',
  },
  burst_exceeded: {
    status: 429,
    title: 'Too many requests at once',
    requestedType: 'quota-exceeded',
    when: "The customer sent more requests within a second than its plan's `burst_per_second`.",
    remedy: 'Wait for the seconds in `Retry-After` and send more slowly; refused requests are not counted.',
    advice: 'The client should spread its requests and obey Retry-After. Or raise burst_per_second of the plan.',
  },
  too_many_concurrent: {
    status: 429,
    title: 'Too many requests in progress',
    when: "The customer has as many requests in progress as its plan's `max_concurrent` allows.",
    remedy:
      'Wait for the seconds in `Retry-After`, and send fewer requests at the same time; refused requests are not counted.',
    advice: 'The client should send fewer requests at the same time. Or raise max_concurrent of the plan.',
  },
  store_unavailable: {
    status: 503,
    title: 'Temporarily unable to check the request',
    when: 'The gateway cannot use its store, so it can decide neither on the key nor on the quota.',
    remedy: 'Try again after `Retry-After`; the key itself may be valid.',
    advice: 'Restore the store: the overview shows its last error.',
  },
  maintenance: {
    status: 503,
    title: 'In maintenance',
    when: 'An operator put the route, or the whole API, into maintenance; `read_only` lets GET, HEAD and OPTIONS pass. Decided before the key is looked at.',
    remedy: 'Try again after `Retry-After`, or without it, later; the request was not counted. `detail` may say more.',
    advice: 'End the maintenance when the work is done: console, or "tollgate maintenance off".',
  },
  gone: {
    status: 410,
    title: 'No longer available',
    when: 'The `sunset_at` of the route has passed.',
    remedy: 'Call what the member `successor` names, or see the documentation; the request was not counted.',
    advice: 'Tell the customer what replaces the route: "tollgate usage deprecated" lists who still calls it.',
  },
  too_many_writes: {
    status: 429,
    title: 'Too many changes',
    when: 'Portal: the customer made 60 changes within the last hour.',
    remedy: 'Wait for the seconds in `Retry-After`.',
  },
  too_many_reads: {
    status: 429,
    title: 'Too many requests',
    when: 'Portal: the customer made 50 requests within the last second, at this instance.',
    remedy: 'Wait for the seconds in `Retry-After`.',
  },
  not_found: {
    status: 404,
    title: 'No such resource',
    when: 'The path is not part of the API, has a trailing slash, or names a version that does not exist.',
    remedy: 'Compare the path with the documentation; `detail` names the correct path if there is one.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    when: 'The path exists, but not with this method.',
    remedy: 'Use one of the methods in the `Allow` header.',
  },
  bad_request: {
    status: 400,
    title: 'Malformed request',
    when: 'The bytes are not one well-formed HTTP/1.1 request: a malformed header or body, or a body of ambiguous length. Or the path has forbidden characters or encodings.',
    remedy: 'Correct what `detail` names. The connection is closed.',
  },
  body_not_allowed: {
    status: 400,
    title: 'Request body not allowed',
    when: 'The request is a GET or HEAD, and has a body.',
    remedy: 'Send the request without a body, without `Transfer-Encoding`, and with `Content-Length: 0` or none.',
  },
  body_too_large: {
    status: 413,
    title: 'Request body too large',
    when: 'The body is longer than the `max_body_bytes` of its route, or than `limits.body_bytes`. Admin API and portal: it is larger than 64 KiB, or the config file to preview larger than 1 MiB; without valid credentials, larger than 1 KiB, or a login at the console larger than 16 KiB.',
    remedy:
      'Send less at a time. A request whose Content-Length is too large is not counted; one with a chunked body is, if a part of it was already forwarded. The connection is closed.',
    advice: 'The client should send less at a time. Or raise max_body_bytes of the route.',
  },
  expectation_failed: {
    status: 417,
    title: 'Expectation failed',
    when: 'The `Expect` header has a value other than `100-continue`.',
    remedy: 'Send the request without `Expect`. The connection is closed.',
  },
  target_too_long: {
    status: 414,
    title: 'Request target too long',
    when: 'Path and query together are longer than `limits.target_bytes`.',
    remedy: 'Shorten the query. The connection is closed.',
  },
  headers_too_large: {
    status: 431,
    title: 'Request headers too large',
    when: 'The headers exceed `limits.header_bytes` or `limits.header_count`.',
    remedy: 'Send fewer or smaller headers. The connection is closed.',
  },
  request_timeout: {
    status: 408,
    title: 'Request took too long to arrive',
    when: 'The headers were not complete within `limits.headers_timeout_ms`, or the headers and the first 16 KiB of the body within `limits.request_timeout_ms`. Or no byte of the body arrived for `limits.body_stall_timeout_ms`, or fewer than 500 bytes a second on average after its first minute.',
    remedy:
      'Send the request again on a new connection. If a part of its body was already forwarded, it was counted: check first whether it had an effect.',
  },
  not_implemented: {
    status: 501,
    title: 'Not implemented',
    when: 'The request uses a transfer coding other than chunked, or asks for a WebSocket (`Upgrade: websocket`).',
    remedy:
      'Send the request with a Content-Length, or with `Transfer-Encoding: chunked` alone. WebSockets are not available here.',
  },
  overloaded: {
    status: 503,
    title: 'The gateway is overloaded',
    when: '`limits.in_flight` requests are in progress, all of `limits.connections` connections are busy, or the customer has used up its share of the connections to the backend (`upstream.max_connections_per_customer`), or requests for the backend hold half of `limits.in_flight` while other backends have work, or the customer sends the beginning of as many bodies at once as a quarter of `limits.in_flight`. Admin API: another preview is in progress.',
    remedy: 'Try again after `Retry-After`; the request was not counted.',
    advice: 'Check the response times of the backend, or add instances.',
  },
  bad_gateway: {
    status: 502,
    title: 'Bad answer from the backend',
    when: 'The backend closed the connection, or its response is not valid HTTP.',
    remedy:
      'Try a GET again; before you repeat another method, check whether it had an effect. The request was counted. If it persists, report `request_id`.',
    advice: 'Check the backend: it closed the connection or sent no valid HTTP.',
  },
  gateway_timeout: {
    status: 504,
    title: 'The backend did not answer in time',
    when: 'The response did not begin within `upstream.response_timeout_ms`, or not within `upstream.total_timeout_ms`. Or the backend took none of the request body for `upstream.response_timeout_ms`.',
    remedy:
      'Try a GET again later, or ask for less; before you repeat another method, check whether it had an effect. The request was counted. If it persists, report `request_id`.',
    advice: 'Check the backend, or raise upstream.response_timeout_ms.',
  },
  upstream_unavailable: {
    status: 503,
    title: 'The backend is unavailable',
    when: 'No backend could be reached, none is in service, or none had a free connection in time, so the request was never sent.',
    remedy: 'Try again after `Retry-After`; the request was not counted.',
    advice: 'Check the backend: see the overview.',
  },
  internal_error: {
    status: 500,
    title: 'Internal error',
    when: 'The request hit a bug in the gateway.',
    remedy: 'Report `request_id`.',
  },
  unauthorized: {
    status: 401,
    title: 'Credentials required',
    when: 'Portal: no session or token, or it has ended; or the link was used before, or is too old. Admin API: no bearer token, or neither the admin token nor a valid JWT of the configured issuer; or the session of the console has ended. Check listener, `/verify` and `/usage`: not the value of `check.token`.',
    remedy:
      'Portal: open it again from where you came. Admin API: send `Authorization: Bearer <token>` with the value of `admin.token`, or with a JWT that `admin.jwt` accepts.',
  },
  forbidden: {
    status: 403,
    title: 'Not permitted',
    when: 'Admin API: the JWT is valid, but lacks `tollgate:read`, or `tollgate:write` for a call that is not GET or HEAD. Or the request has the session cookie of the console or the portal, but comes from a page of another origin.',
    remedy:
      'Have the issuer grant the scope that `detail` names; or call from the console, or with an `Authorization` header.',
  },
  check_token: {
    status: 500,
    title: 'The proxy in front is not set up correctly',
    when: 'Check listener: `X-Tollgate-Check-Token` is missing, doubled, or not the value of `check.token`.',
    remedy: 'Report it: nothing is wrong with the request or the key. Nothing was counted.',
  },
  issuer_unavailable: {
    status: 503,
    title: 'Temporarily unable to check the token',
    when: "Admin API: the keys of the JWT's issuer cannot be loaded from `admin.jwt.jwks_url`, and the last ones are too old or lack the key of this JWT.",
    remedy: 'Try again after `Retry-After`, or use the admin token; the JWT itself may be valid.',
  },
  misdirected_request: {
    status: 421,
    title: 'Not a host name of this listener',
    when: 'Admin API: `Host` is neither an address of the admin listener nor one of `admin.allowed_hosts`. Portal: it is not the host of `portal.public_url`.',
    remedy: 'Call the listener by one of its names, or add the name to the configuration.',
  },
  conflict: {
    status: 409,
    title: 'In conflict with what is there',
    when: 'Admin API and portal: the customer or key already exists, the state of the key rules out the change, or the customer has `portal.max_keys` keys.',
    remedy: 'Read the existing record; `detail` says what conflicts.',
  },
  unprocessable: {
    status: 422,
    title: 'The request cannot be carried out as asked',
    when: 'Admin API and portal: a member or query parameter is missing, unknown or of the wrong type; the plan is unknown; a custom plan lacks its limit; a customer would lift a restriction of its own key.',
    remedy: 'Correct what `detail` names.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    when: 'Admin API and portal: the body is not declared as JSON, or a change with a session cookie is not.',
    remedy: 'Send `Content-Type: application/json`.',
  },
  malformed_json: {
    status: 400,
    title: 'Malformed JSON',
    when: 'Admin API and portal: the body is not valid JSON in UTF-8, or its chunks have more than 16 KiB of framing.',
    remedy: 'Send one JSON document, encoded in UTF-8.',
  },
} as const satisfies Record<string, ProblemEntry>;

export type ProblemCode = keyof typeof PROBLEMS;
