/**
 * All metrics of the gateway itself, in one table: the metrics are created from it, and docs/metrics.md is generated
 * from it. Times are in seconds. The configuration bounds the label values, and customers are limited in number. No
 * label has a key, a raw path or a header.
 */

/** `primary`: the primary process reports the metric, the workers do not. */
type AcrossWorkers = 'sum' | 'min' | 'max' | 'primary';

export interface MetricDefinition {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Label names, each with a description of its values. Omitted: no labels. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Upper bounds, of histograms only. */
  readonly buckets?: readonly number[];
  /** How the values of several workers are combined; gauges only. Counters and histograms are summed. */
  readonly acrossWorkers?: AcrossWorkers;
}

const ROUTE = "the configured route's template, or `none` if no route matched";
const PLAN = "the configured plan's name, `none` before the customer is known, `unknown` if it is not configured";
const SOURCE = '`upstream` if the response is from the backend, `gateway` otherwise';
const STORE_OP =
  '`read_key`, `read_customer`, `create_customer`, `create_key`, `read_key_id`, `revoke_key`, `reset_usage`, `list_customers`, `update_customer`, `delete_customer`, `list_keys`, `list_customer_keys`, `update_key`, `retire_key`, `discard_key`, `reindex`, `inspect`, `note_uses`, `read_uses`, `read_usages`, `read_history`, `add_usage`, `claim_notice`, `take_notices`, `settle_notice`, `read_notices`, `rotate_notify_secret`, `read_notify_secret`, `append_audit`, `read_audit`, `reserve`, `refund`, `report`, `announce`, `withdraw` or `initialise`';

/** From a backend in the same rack to `upstream.total_timeout_ms`. */
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120];
/** The gateway normally adds tens of microseconds, and milliseconds if something is wrong. */
const OVERHEAD_BUCKETS = [
  0.00005, 0.0001, 0.00015, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
];
const STORE_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

export const METRIC_DEFINITIONS = {
  httpRequests: {
    name: 'tollgate_http_requests_total',
    type: 'counter',
    help: 'Requests on the public listener, by response.',
    labels: {
      route: ROUTE,
      method: '`GET`, `HEAD`, a method that is configured for the route, or `other`',
      code: 'the HTTP status of the response',
      source: SOURCE,
      plan: PLAN,
    },
  },
  refusals: {
    name: 'tollgate_refusals_total',
    type: 'counter',
    help: 'Problem documents that the gateway sent.',
    labels: { problem: 'a `code` of docs/errors.md', plan: PLAN },
  },
  requestDuration: {
    name: 'tollgate_request_duration_seconds',
    type: 'histogram',
    help: "From a request's headers to the end of its response.",
    labels: { route: ROUTE, source: SOURCE },
    buckets: REQUEST_BUCKETS,
  },
  upstreamDuration: {
    name: 'tollgate_upstream_duration_seconds',
    type: 'histogram',
    help: "From sending a request to the backend to the end of the backend's response.",
    labels: { route: ROUTE },
    buckets: REQUEST_BUCKETS,
  },
  overhead: {
    name: 'tollgate_overhead_seconds',
    type: 'histogram',
    help: 'The part of the request duration that was not spent with the backend; includes store calls.',
    labels: { source: SOURCE },
    buckets: OVERHEAD_BUCKETS,
  },
  auth: {
    name: 'tollgate_auth_total',
    type: 'counter',
    help: 'Attempts to authenticate, by result.',
    labels: {
      result:
        '`valid`, `missing` (no credentials), `in_query` (no credentials, but a key in the query), `malformed`, `checksum` (a mistyped key, refused without a store call), `unknown`, `unusable` (the record of the key, or of its customer, is damaged), `revoked`, `expired` or `store_error` (the store was unavailable)',
    },
  },
  browserUse: {
    name: 'tollgate_browser_use_total',
    type: 'counter',
    help: 'Requests with a valid key that a browser sent; not counted with `auth.browser_keys: allow`.',
    labels: { plan: PLAN, outcome: '`allowed` or `refused`, by `auth.browser_keys`' },
  },
  spoofedHeaders: {
    name: 'tollgate_spoofed_fields_total',
    type: 'counter',
    help: 'Request headers that were dropped because only the gateway may send them to the backend, such as X-Tollgate-Customer.',
  },
  quotaDecisions: {
    name: 'tollgate_quota_decisions_total',
    type: 'counter',
    help: 'Quota decisions.',
    labels: {
      plan: PLAN,
      policy: '`hourly`, `burst` and `concurrent` (refusals only) or `shadow` (a limit that is tested, not enforced)',
      outcome:
        '`allowed`, `near` (allowed, and at least 80 % of the hourly limit is used with this request; counted instead of `allowed`, and not in mode `local`), `denied`, `shadow_denied` (a shadow limit would have refused the request) or `store_error` (no decision was possible)',
      mode: '`lease`: decided from memory, `store`: decided by the store for this request, `local`: decided without the store, by `store.on_error`',
    },
  },
  customerUsageRatio: {
    name: 'tollgate_customer_usage_ratio',
    type: 'gauge',
    acrossWorkers: 'max',
    help: 'Used units divided by the hourly limit, for the ten customers with the highest ratio. Only customers for which the store replied to this instance within the last five minutes; units in open leases of other instances count as used.',
    labels: { customer: 'ids of at most ten customers' },
  },
  storeCalls: {
    name: 'tollgate_store_calls_total',
    type: 'counter',
    help: 'Calls to the store, including failed ones. One call may reserve and refund for up to 32 customers.',
    labels: { op: STORE_OP },
  },
  storeCommandDuration: {
    name: 'tollgate_store_command_duration_seconds',
    type: 'histogram',
    help: 'Duration of store calls, including failed ones.',
    labels: { op: STORE_OP },
    buckets: STORE_BUCKETS,
  },
  storeUp: {
    name: 'tollgate_store_up',
    type: 'gauge',
    acrossWorkers: 'min',
    help: '1 while the store is reachable, else 0.',
  },
  degraded: {
    name: 'tollgate_degraded',
    type: 'gauge',
    acrossWorkers: 'max',
    help: '1 while the store is unreachable after it was reached, refuses the writes that quotas need, or may lack records, used quota or usage history because it lost its data, is empty or evicted keys; else 0.',
  },
  storeRefusing: {
    name: 'tollgate_store_refusing',
    type: 'gauge',
    acrossWorkers: 'max',
    help: '1 while the store is reachable but refuses the writes that quotas need, for example because its memory is full or a permission is missing; quotas then follow `store.on_error`. Else 0.',
  },
  damagedWindows: {
    name: 'tollgate_damaged_windows_total',
    type: 'counter',
    help: 'Reservations that failed because another program damaged the window of the customer; its quota then follows `store.on_error`. The log names the customer.',
  },
  damagedRecords: {
    name: 'tollgate_damaged_records_total',
    type: 'counter',
    help: 'Reads of a damaged key or customer record; requests decided from memory are not counted again. The log names the record, and `tollgate store check` lists all.',
    labels: {
      record: '`key` or `customer`',
      fault:
        '`wrong_type`, `no_id`, `bad_id`, `no_customer`, `bad_customer_id` or `unreadable_time` of a key, `wrong_type`, `no_plan` or `unbraced_name` of a customer: see docs/redis.md',
    },
  },
  noticesCreated: {
    name: 'tollgate_notices_created_total',
    type: 'counter',
    help: 'Notices to webhooks, each counted by the instance that made it; only with `notices`.',
    labels: { type: '`quota.threshold`, `quota.exceeded` or `key.expiring`' },
  },
  noticeAttempts: {
    name: 'tollgate_notices_attempts_total',
    type: 'counter',
    help: 'Attempts to deliver a notice to an endpoint.',
    labels: {
      endpoint: '`operator` (of `notices.endpoints`) or `customer` (of a `notify_url`)',
      result:
        '`delivered`, `failed` (retried later), `dead` (failed, and was the last attempt) or `gone` (the endpoint responded 410 and is disabled)',
    },
  },
  noticesUndelivered: {
    name: 'tollgate_notices_undelivered',
    type: 'gauge',
    acrossWorkers: 'primary',
    help: 'Notices of all gateways that are not delivered, as of at most 10 s ago; only with `notices`.',
    labels: { state: '`pending` or `dead`' },
  },
  customersWithoutPlan: {
    name: 'tollgate_customers_without_plan',
    type: 'gauge',
    acrossWorkers: 'primary',
    help: 'Customers on plans that are not configured, so that all their requests get 403. Counted after each start and reload, and every minute while there are any.',
  },
  upstreamUp: {
    name: 'tollgate_upstream_up',
    type: 'gauge',
    acrossWorkers: 'min',
    help: '1 while this backend server is in service, else 0.',
    labels: { upstream: 'an entry of `upstream.urls`: origin and base path' },
  },
  upstreamRetries: {
    name: 'tollgate_upstream_retries_total',
    type: 'counter',
    help: 'Requests whose first attempt failed before any byte of a response, so that they could be retried.',
    labels: { result: '`sent`, or `over_budget` (the client got the error instead)' },
  },
  requestBodyBytes: {
    name: 'tollgate_request_body_bytes_total',
    type: 'counter',
    help: 'Body bytes received from clients, in requests that ended; without what was discarded after a response.',
  },
  inflightRequests: {
    name: 'tollgate_inflight_requests',
    type: 'gauge',
    acrossWorkers: 'sum',
    help: 'Requests in progress on the public listener.',
  },
  logLinesDropped: {
    name: 'tollgate_log_lines_dropped_total',
    type: 'counter',
    help: 'Log lines that were lost because the reader of standard output was too slow, or gone.',
  },
  connections: {
    name: 'tollgate_connections',
    type: 'gauge',
    acrossWorkers: 'sum',
    help: 'Open client connections on the public listener.',
  },
  closedConnections: {
    name: 'tollgate_connections_cut_total',
    type: 'counter',
    help: 'Client connections that the gateway closed without an error response, to protect other clients.',
    labels: {
      reason:
        '`displaced` (had no request in progress when a new connection exceeded `limits.connections`), `surplus` (opened while all connections were busy), `silent` (sent nothing within `limits.headers_timeout_ms`), `slow_reader` (`limits.response_stall_timeout_ms`), `pipelined` (too many pipelined requests were waiting) or `tls` (the TLS handshake failed)',
    },
  },
  certificateExpiry: {
    name: 'tollgate_certificate_expiry_timestamp_seconds',
    type: 'gauge',
    acrossWorkers: 'min',
    help: 'When the certificate of the public listener expires, in seconds since the Unix epoch; only with `listen.tls`.',
  },
  certificateReloads: {
    name: 'tollgate_certificate_reloads_total',
    type: 'counter',
    help: 'Changes of the certificate files of `listen.tls`. If the new files are refused, the last valid certificate stays in use.',
    labels: { result: '`used` or `refused`' },
  },
  adminRequests: {
    name: 'tollgate_admin_requests_total',
    type: 'counter',
    help: 'Requests on the admin listener. Codes 401 and 429 are refused credentials, 421 is an unknown Host.',
    labels: {
      route: "the template of the admin API's path, or `none`",
      method: '`GET`, `HEAD`, `POST`, `PATCH`, `DELETE` or `other`',
      code: 'the HTTP status of the response; 499: the client closed the connection first',
    },
  },
  configInfo: {
    name: 'tollgate_config_info',
    type: 'gauge',
    acrossWorkers: 'primary',
    help: 'Always 1; the running configuration.',
    labels: { hash: 'first 12 hex digits of the SHA-256 of the effective values, without secrets' },
  },
  configReloads: {
    name: 'tollgate_config_reloads_total',
    type: 'counter',
    help: 'Reloads of the config file: after a change, or on request.',
    labels: {
      result:
        '`applied`, `unchanged` (equal to the running configuration), `invalid` (unreadable, or with errors), `restart_required`, `plan_in_use` (drops a plan that customers hold), `unverified` (could not determine whether customers hold a dropped plan; retried automatically) or `failed` (a bug)',
    },
  },
  configReloadFailing: {
    name: 'tollgate_config_reload_failing',
    type: 'gauge',
    acrossWorkers: 'primary',
    help: '1 while the config file that was read last is not applied, so that the gateway runs another configuration; else 0.',
  },
  configLastSuccess: {
    name: 'tollgate_config_last_success_timestamp_seconds',
    type: 'gauge',
    acrossWorkers: 'primary',
    help: 'When the config file was last read and applied, or found equal to the running configuration, in seconds since the Unix epoch.',
  },
  workerRestarts: {
    name: 'tollgate_worker_restarts_total',
    type: 'counter',
    help: 'Workers that exited unexpectedly, or were killed because they failed to apply a configuration; all are restarted.',
  },
  buildInfo: {
    name: 'tollgate_build_info',
    type: 'gauge',
    acrossWorkers: 'primary',
    help: 'Always 1; what is running.',
    labels: { version: "Tollgate's version", node: "Node.js's version" },
  },
} as const satisfies Record<string, MetricDefinition>;
