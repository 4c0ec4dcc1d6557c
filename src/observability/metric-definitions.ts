/**
 * All metrics of the gateway itself, in one table by name: the metrics are created from it, and docs/metrics.md is
 * generated from it. Times are in seconds. The configuration bounds the label values, and customers are limited in
 * number. No label has a key, a raw path or a header.
 */
import type { NoticeType } from '../customers/notices/notice.ts';
import type { CloseReason } from '../http/listener/connections.ts';
import type { RetryResult } from '../upstream/backend.ts';

/** `primary`: the primary process reports the metric, the workers do not. */
type AcrossWorkers = 'sum' | 'min' | 'max' | 'primary';

/**
 * By label name: the values with an explanation each, which may be empty; or a description of values that are not known
 * in advance. In an exposition, labels have the order of this table.
 */
type LabelDefinitions = Readonly<Record<string, Readonly<Record<string, string>> | string>>;

export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: LabelDefinitions;
  /** Upper bounds, of histograms only. */
  readonly buckets?: readonly number[];
  /** How the values of several workers are combined. */
  readonly acrossWorkers: AcrossWorkers;
}

/** If all labels list their values, the series with these exist from the start, with value 0. */
const counter = <const L extends LabelDefinitions>(help: string, labels: L = {} as L) =>
  ({ type: 'counter', help, labels, acrossWorkers: 'sum' }) as const;

const gauge = (acrossWorkers: AcrossWorkers, help: string, labels: LabelDefinitions = {}) =>
  ({ type: 'gauge', help, labels, acrossWorkers }) as const;

const histogram = (buckets: readonly number[], help: string, labels: LabelDefinitions) =>
  ({ type: 'histogram', help, labels, buckets, acrossWorkers: 'sum' }) as const;

const ROUTE = "the configured route's template, or `none` if no route matched";
const PLAN =
  "the configured plan's name, `none` before the customer is known, or if the route needs no key, `unknown` if it is not configured";
const BACKEND = '`default`, or a name in `upstreams`';
const SOURCE = '`upstream` if the response is from the backend, `check` on the check listener, `gateway` otherwise';
const STORE_OP =
  '`read_key`, `read_customer`, `create_customer`, `create_key`, `read_key_id`, `revoke_key`, `reset_usage`, `list_customers`, `update_customer`, `delete_customer`, `list_keys`, `list_customer_keys`, `update_key`, `retire_key`, `discard_key`, `reindex`, `inspect`, `note_uses`, `read_uses`, `read_usages`, `read_history`, `add_usage`, `add_failed_requests`, `read_failed_requests`, `claim_notice`, `take_notices`, `settle_notice`, `read_notices`, `rotate_notify_secret`, `read_notify_secret`, `add_portal_session`, `open_portal_session`, `read_portal_session`, `end_portal_session`, `count_portal_write`, `read_maintenance`, `write_maintenance`, `append_audit`, `read_audit`, `reserve`, `refund`, `report`, `announce`, `withdraw` or `initialise`';

/** From a backend in the same rack to long downloads. */
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];
/** The gateway normally adds tens of microseconds, and milliseconds if something is wrong. */
const OVERHEAD_BUCKETS = [
  0.00005, 0.0001, 0.00015, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
];
const STORE_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

/** By kind of record: what can be wrong with one that a request needs, separated by spaces. */
export const DAMAGES = {
  key: 'wrong_type no_id bad_id no_customer bad_customer_id unreadable_scopes unreadable_addresses unreadable_key_limit bad_root unreadable_time',
  customer: 'wrong_type no_plan unbraced_name unreadable_temporary_limit unreadable_period_anchor unreadable_time',
};

/** Returns words that are separated by spaces as a list in a sentence. Not by Intl, which takes long to load. */
function either(words: string): string {
  return `\`${words.replaceAll(' ', '`, `')}\``.replace(/, (?=[^ ]+$)/, ' or ');
}

export const METRICS = {
  tollgate_http_requests_total: counter('Requests on the public listener and the check listener, by response.', {
    route: ROUTE,
    method: '`GET`, `HEAD`, a method that is configured for the route, or `other`',
    code: 'the HTTP status of the response',
    source: SOURCE,
    plan: PLAN,
  }),
  tollgate_refusals_total: counter('Problem documents that the gateway sent.', {
    problem: 'a `code` of docs/errors.md',
    plan: PLAN,
  }),
  tollgate_failed_requests_dropped_total: counter(
    'Refused and failed requests that were not written to the store: beyond 20 a second of a customer or address, or too many to wait for the store.',
  ),
  tollgate_request_duration_seconds: histogram(
    REQUEST_BUCKETS,
    "From a request's headers to the end of its response.",
    { route: ROUTE, source: SOURCE },
  ),
  tollgate_upstream_duration_seconds: histogram(
    REQUEST_BUCKETS,
    "From sending a request to the backend to the end of the backend's response.",
    { backend: BACKEND, route: ROUTE },
  ),
  tollgate_overhead_seconds: histogram(
    OVERHEAD_BUCKETS,
    'The part of the request duration that was not spent with the backend; includes store calls.',
    { source: SOURCE },
  ),
  tollgate_auth_total: counter('Attempts to authenticate, by result.', {
    result: {
      valid: '',
      missing: 'no credentials',
      in_query: 'no credentials, but a key in the query',
      malformed: '',
      checksum: 'a mistyped key, refused without a store call',
      unknown: '',
      unusable: 'the record of the key, or of its customer, is damaged',
      revoked: '',
      expired: '',
      store_error: 'the store was unavailable',
    },
  }),
  tollgate_key_header_total: counter('Requests with a valid key, by the header that held it.', {
    header: 'a name in `auth.key_headers`',
  }),
  tollgate_browser_use_total: counter(
    'Requests with a valid key that a browser sent; not counted with `auth.browser_keys: allow`.',
    { plan: PLAN, outcome: '`allowed` or `refused`, by `auth.browser_keys`' },
  ),
  tollgate_spoofed_fields_total: counter(
    'Request headers that were dropped because only the gateway may send them to the backend, such as X-Tollgate-Customer.',
  ),
  tollgate_quota_decisions_total: counter('Quota decisions.', {
    plan: PLAN,
    policy:
      '`hourly`, `daily` and `monthly` (refusals and overage only), `key` (the limit of an API key), `burst` and `concurrent` (refusals only) or `shadow` (a limit that is tested, not enforced)',
    outcome:
      '`allowed`, `near` (allowed, and at least 80 % of the hourly limit is used with this request; counted instead of `allowed`, and not in mode `local`), `overage` (beyond a period that allows it, besides `allowed` or `near` of the hour; approximate), `denied`, `shadow_denied` (a shadow limit would have refused the request) or `store_error` (no decision was possible)',
    mode: '`lease`: decided from memory, `store`: decided by the store for this request, `local`: decided without the store, by `store.on_error`',
  }),
  tollgate_customer_usage_ratio: gauge(
    'max',
    'Used units divided by the hourly limit, for the ten customers with the highest ratio. Only customers for which the store replied to this instance within the last five minutes; units in open leases of other instances count as used.',
    { customer: 'ids of at most ten customers' },
  ),
  tollgate_store_calls_total: counter(
    'Calls to the store, including failed ones. One call may reserve and refund for up to 32 customers.',
    { op: STORE_OP },
  ),
  tollgate_store_command_duration_seconds: histogram(STORE_BUCKETS, 'Duration of store calls, including failed ones.', {
    op: STORE_OP,
  }),
  tollgate_store_up: gauge('min', '1 while the store is reachable, else 0.'),
  tollgate_degraded: gauge(
    'max',
    '1 while the store is unreachable after it was reached, refuses the writes that quotas need, or may lack records, used quota or usage history because it lost its data, is empty or evicted keys; else 0.',
  ),
  tollgate_store_refusing: gauge(
    'max',
    '1 while the store is reachable but refuses the writes that quotas need, for example because its memory is full or a permission is missing; quotas then follow `store.on_error`. Else 0.',
  ),
  tollgate_maintenance_since_timestamp_seconds: gauge(
    'max',
    'When the maintenance in force began, in seconds since the Unix epoch; 0 for a mode that is not in force.',
    { mode: '`read_only` or `down`' },
  ),
  tollgate_damaged_windows_total: counter(
    'Reservations that failed because another program damaged the window of the customer; its quota then follows `store.on_error`. The log names the customer.',
  ),
  tollgate_damaged_records_total: counter(
    'Reads of a damaged key or customer record; requests decided from memory are not counted again. The log names the record, and `tollgate store check` lists all.',
    {
      record: '`key` or `customer`',
      fault: `${either(DAMAGES.key)} of a key, ${either(DAMAGES.customer)} of a customer: see docs/redis.md`,
    },
  ),
  tollgate_notices_created_total: counter(
    'Notices to webhooks, each counted by the instance that made it; only with `notices`.',
    { type: { 'quota.threshold': '', 'quota.exceeded': '', 'key.expiring': '' } satisfies Record<NoticeType, string> },
  ),
  tollgate_notices_attempts_total: counter('Attempts to deliver a notice to an endpoint.', {
    endpoint: { operator: 'of `notices.endpoints`', customer: 'of a `notify_url`' },
    result: {
      delivered: '',
      failed: 'retried later',
      dead: 'failed, and was the last attempt',
      gone: 'the endpoint responded 410 and is disabled',
    },
  }),
  tollgate_notices_undelivered: gauge(
    'primary',
    'Notices of all gateways that are not delivered, as of at most 10 s ago; only with `notices`.',
    { state: '`pending` or `dead`' },
  ),
  tollgate_customers_without_plan: gauge(
    'primary',
    'Customers on plans that are not configured, so that all their requests get 403. Counted after each start and reload, and every minute while there are any.',
  ),
  tollgate_upstream_up: gauge('min', '1 while this backend server is in service, else 0.', {
    backend: BACKEND,
    upstream: 'an entry of `urls` of the backend: origin and base path',
  }),
  tollgate_upstream_retries_total: counter(
    'Requests whose first attempt failed before any byte of a response, so that they could be retried.',
    {
      backend: BACKEND,
      result: { sent: '', over_budget: 'the client got the error instead' } satisfies Record<RetryResult, string>,
    },
  ),
  tollgate_request_body_bytes_total: counter(
    'Body bytes received from clients, in requests that ended; without what was discarded after a response.',
  ),
  tollgate_inflight_requests: gauge('sum', 'Requests in progress on the public listener.'),
  tollgate_log_lines_dropped_total: counter(
    'Log lines that were lost because the reader of standard output was too slow, or gone.',
  ),
  tollgate_trace_spans_dropped_total: counter(
    'Trace spans that were not exported because the collector was unavailable, too slow, or refused them.',
  ),
  tollgate_connections: gauge('sum', 'Open client connections on the public listener.'),
  tollgate_connections_cut_total: counter(
    'Client connections that the gateway closed without an error response, to protect other clients.',
    {
      reason: {
        displaced: 'had no request in progress when a new connection exceeded `limits.connections`',
        surplus: 'opened while all connections were busy',
        silent: 'sent nothing within `limits.headers_timeout_ms`',
        slow_reader: '`limits.response_stall_timeout_ms`',
        pipelined: 'too many pipelined requests were waiting',
        tls: 'the TLS handshake failed',
      } satisfies Readonly<Record<CloseReason, string>>,
    },
  ),
  tollgate_certificate_expiry_timestamp_seconds: gauge(
    'min',
    'When the certificate of the public listener expires, in seconds since the Unix epoch; only with `listen.tls`.',
  ),
  tollgate_certificate_reloads_total: counter(
    'Changes of the certificate files of `listen.tls`. If the new files are refused, the last valid certificate stays in use.',
    { result: '`used` or `refused`' },
  ),
  tollgate_admin_requests_total: counter(
    'Requests on the admin and the portal listener. Codes 401 and 429 are refused credentials, 421 is an unknown Host.',
    {
      route: "the template of the path; the portal's begin with `/portal`. Or `none`",
      method: '`GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE` or `other`',
      code: 'the HTTP status of the response; 499: the client closed the connection first',
    },
  ),
  tollgate_config_info: gauge('primary', 'Always 1; the running configuration.', {
    hash: 'first 12 hex digits of the SHA-256 of the effective values, without secrets',
  }),
  tollgate_config_reloads_total: counter('Reloads of the config file: after a change, or on request.', {
    result: {
      applied: '',
      unchanged: 'equal to the running configuration',
      invalid: 'unreadable, or with errors',
      restart_required: '',
      plan_in_use: 'drops a plan that customers hold',
      unverified: 'could not determine whether customers hold a dropped plan; retried automatically',
      failed: 'a bug',
    },
  }),
  tollgate_config_reload_failing: gauge(
    'primary',
    '1 while the config file that was read last is not applied, so that the gateway runs another configuration; else 0.',
  ),
  tollgate_config_last_success_timestamp_seconds: gauge(
    'primary',
    'When the config file was last read and applied, or found equal to the running configuration, in seconds since the Unix epoch.',
  ),
  tollgate_worker_restarts_total: counter(
    'Workers that exited unexpectedly, or were killed because they failed to apply a configuration; all are restarted.',
  ),
  tollgate_build_info: gauge('primary', 'Always 1; what is running.', {
    version: "Tollgate's version",
    node: "Node.js's version",
  }),
} satisfies Record<string, MetricDefinition>;

export type MetricName<Type = MetricDefinition['type']> = {
  [Name in keyof typeof METRICS]: (typeof METRICS)[Name]['type'] extends Type ? Name : never;
}[keyof typeof METRICS];
