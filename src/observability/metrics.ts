/** What the gateway counts and measures, one method per event. See metric-definitions.ts for what each metric means. */
import { type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';
import type { NoticeType } from '../customers/notices/notice.ts';
import type { QuotaMode } from '../customers/quota/hourly-quota.ts';
import type { CloseReason } from '../http/listener/connections.ts';
import type { Maintenance } from '../store/maintenance.ts';
import type { NoticeState } from '../store/notices.ts';
import type { StoreStatus } from '../store/store.ts';
import type { RetryResult } from '../upstream/backend.ts';
import { DAMAGES, type METRICS } from './metric-definitions.ts';
import { addProcessMetrics } from './process-metrics.ts';
import { createSeries } from './series.ts';

export type ResponseSource = 'upstream' | 'gateway' | 'check';

type Definitions = typeof METRICS;
type AuthResult = keyof Definitions['tollgate_auth_total']['labels']['result'];
/** Result of an attempt to reload the config file; `applied` and `unchanged` are successes. */
export type ReloadResult = keyof Definitions['tollgate_config_reloads_total']['labels']['result'];
type NoticeAttempt = Definitions['tollgate_notices_attempts_total']['labels'];
export type BrowserUseOutcome = 'allowed' | 'refused';
type QuotaPolicy = 'hourly' | 'key' | 'daily' | 'monthly' | 'burst' | 'concurrent' | 'shadow';
type QuotaOutcome = 'allowed' | 'near' | 'overage' | 'denied' | 'shadow_denied' | 'store_error';

const ADMIN_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);
const DAMAGE_SERIES = Object.entries(DAMAGES).flatMap(([kind, faults]) =>
  faults.split(' ').map((fault) => [kind, fault]),
);

/** A finished request of the public listener. */
export interface RequestSample {
  /** The configured template or `none`; never a raw path. */
  readonly route: string;
  /** As received; counted as it is if it is GET, HEAD or a method of the route, otherwise as `other`. */
  readonly method: string;
  readonly status: number;
  readonly source: ResponseSource;
  /** A configured name, `none` or `unknown`. */
  readonly plan: string;
  /** Code of the problem document, if the gateway responded with one. */
  readonly problem?: string | undefined;
  /** Omitted for what never became a request, such as bytes that cannot be parsed. */
  readonly durationMs?: number | undefined;
  /** Name of the backend of the route. */
  readonly backend?: string | undefined;
  /** Part of `durationMs` spent with the upstream; omitted if nothing was sent there. */
  readonly upstreamMs?: number | undefined;
  /** The part of `durationMs` in which the client sent the part of its body that was buffered. */
  readonly bufferingMs?: number | undefined;
  /** Body bytes received from the client; omitted if the request has no body. */
  readonly bytesIn?: number | undefined;
}

/** Returns the part of the duration that was spent neither with the upstream nor with the client's body. */
export function overheadMs({ durationMs, upstreamMs = 0, bufferingMs = 0 }: RequestSample): number | undefined {
  return durationMs === undefined ? undefined : Math.max(0, durationMs - upstreamMs - bufferingMs);
}

export type Metrics = ReturnType<typeof createMetrics>;

/** Customers with a series of their own: a series for each customer would be unbounded. */
export const MAX_CUSTOMERS = 10;

/** Plain data, in prom-client's form. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

interface RunningConfigFacts {
  readonly hash: string;
  /** Wall time in ms at which the config file was last found to equal the running configuration. */
  readonly loadedAtMs: number;
}

export interface MetricsOptions {
  readonly version: string;
  readonly running: RunningConfigFacts;
  /** Called at each scrape, as the functions below. */
  readonly storeStatus: () => Pick<StoreStatus, 'up' | 'reached' | 'wiped' | 'empty' | 'evicted' | 'refusing'>;
  /** Returns the customers with the highest ratio of use to limit. */
  readonly highestUsage: (count: number) => readonly { readonly customer: string; readonly ratio: number }[];
  /** Returns the state of each upstream, by backend, and by origin and base path. */
  readonly upstreams: () => readonly { readonly backend: string; readonly url: string; readonly up: boolean }[];
  /** Returns the maintenance in force. */
  readonly maintenance: () => Maintenance | undefined;
  /** Returns the lines dropped since the start. */
  readonly droppedLogLines: () => number;
  /** Whether to add metrics of the process, its event loop and its garbage collection. */
  readonly defaultMetrics: boolean;
}

/** Creates the metrics. None of the recording methods throws. */
export function createMetrics(options: MetricsOptions) {
  const { version, storeStatus } = options;
  const registry = new Registry();
  const { measured, total, latest, counter, histogram } = createSeries(registry);

  const httpRequests =
    counter<[route: string, method: string, code: string, source: ResponseSource, plan: string]>(
      'tollgate_http_requests_total',
    );
  const refusals = counter<[problem: string, plan: string]>('tollgate_refusals_total');
  const requestDuration = histogram<[route: string, source: ResponseSource]>('tollgate_request_duration_seconds');
  const upstreamDuration = histogram<[backend: string, route: string]>('tollgate_upstream_duration_seconds');
  const overhead = histogram<[source: ResponseSource]>('tollgate_overhead_seconds');
  const storeCalls = counter<[op: string]>('tollgate_store_calls_total');
  const storeCommandDuration = histogram<[op: string]>('tollgate_store_command_duration_seconds');
  const configReloads = counter<[result: ReloadResult]>('tollgate_config_reloads_total');
  const adminRequests = counter<[route: string, method: string, code: string]>('tollgate_admin_requests_total');

  const requestBodyBytes = total('tollgate_request_body_bytes_total');
  const certificateExpiry = latest('tollgate_certificate_expiry_timestamp_seconds');
  const undelivered = latest('tollgate_notices_undelivered');

  let { running } = options;
  let reloadFailing = false;
  measured('tollgate_config_info', () => [{ labels: { hash: running.hash }, value: 1 }]);
  measured('tollgate_config_last_success_timestamp_seconds', () => running.loadedAtMs / 1000);
  measured('tollgate_config_reload_failing', () => Number(reloadFailing));
  measured('tollgate_store_up', () => Number(storeStatus().up));
  measured('tollgate_store_refusing', () => Number(storeStatus().refusing));
  measured('tollgate_degraded', () => {
    const { up, reached, wiped, empty, evicted, refusing } = storeStatus();
    return Number((reached !== false && !up) || wiped || empty || evicted || refusing);
  });
  measured('tollgate_maintenance_since_timestamp_seconds', () => {
    const { mode, sinceMs = 0 } = options.maintenance() ?? {};
    return ['read_only', 'down'].map((each) => ({ labels: { mode: each }, value: each === mode ? sinceMs / 1000 : 0 }));
  });
  measured('tollgate_build_info', () => [{ labels: { version, node: process.version }, value: 1 }]);
  measured('tollgate_log_lines_dropped_total', options.droppedLogLines);
  measured('tollgate_upstream_up', () =>
    options.upstreams().map(({ backend, url, up }) => ({ labels: { backend, upstream: url }, value: Number(up) })),
  );
  measured('tollgate_customer_usage_ratio', () =>
    options.highestUsage(MAX_CUSTOMERS).map(({ customer, ratio }) => ({ labels: { customer }, value: ratio })),
  );
  if (options.defaultMetrics) addProcessMetrics(registry);

  return {
    /** Returns all metrics in Prometheus' text format. */
    text: () => registry.metrics(),
    /** Returns all values, to be combined with those of other processes. */
    snapshot: (): Promise<MetricsSnapshot> => registry.getMetricsAsJSON(),

    request(sample: RequestSample): void {
      const { route, method, status, source, plan, problem, durationMs, backend, upstreamMs, bytesIn } = sample;
      // Clients can send any method. Only the route's methods get labels of their own: that bounds the number of series.
      const isRouted = route !== 'none' && problem !== 'method_not_allowed';
      const countedMethod = method === 'GET' || method === 'HEAD' || isRouted ? method : 'other';
      httpRequests(route, countedMethod, String(status), source, plan);
      if (problem !== undefined) refusals(problem, plan);
      if (bytesIn !== undefined) requestBodyBytes(bytesIn);
      if (durationMs === undefined) return;
      requestDuration(durationMs / 1000, route, source);
      if (upstreamMs !== undefined) upstreamDuration(upstreamMs / 1000, backend ?? '', route);
      overhead((overheadMs(sample) ?? 0) / 1000, source);
    },
    auth: counter<[result: AuthResult]>('tollgate_auth_total'),
    keyHeader: counter<[header: string]>('tollgate_key_header_total'),
    browserUse: counter<[plan: string, outcome: BrowserUseOutcome]>('tollgate_browser_use_total'),
    spoofedHeader: counter('tollgate_spoofed_fields_total'),
    quotaDecision: counter<[plan: string, policy: QuotaPolicy, outcome: QuotaOutcome, mode: QuotaMode]>(
      'tollgate_quota_decisions_total',
    ),
    upstreamRetry: counter<[backend: string, result: RetryResult]>('tollgate_upstream_retries_total'),
    inflight: total('tollgate_inflight_requests'),
    failedRequestsDropped: total('tollgate_failed_requests_dropped_total'),
    traceSpansDropped: total('tollgate_trace_spans_dropped_total'),
    connection: total('tollgate_connections'),
    connectionClosed: counter<[reason: CloseReason]>('tollgate_connections_cut_total'),
    /** Records the certificate in use and when it expires. */
    certificateUsed(expiresAtMs: number): void {
      certificateExpiry(expiresAtMs / 1000);
    },
    certificateReload: counter<[result: 'used' | 'refused']>('tollgate_certificate_reloads_total'),

    storeCalled(op: string, durationSeconds: number): void {
      storeCalls(op);
      storeCommandDuration(durationSeconds, op);
    },
    damagedWindow: counter('tollgate_damaged_windows_total'),
    damagedRecord: counter<[record: 'key' | 'customer', faultCode: string]>(
      'tollgate_damaged_records_total',
      DAMAGE_SERIES,
    ),

    noticeCreated: counter<[type: NoticeType]>('tollgate_notices_created_total'),
    noticeAttempt: counter<[endpoint: keyof NoticeAttempt['endpoint'], result: keyof NoticeAttempt['result']]>(
      'tollgate_notices_attempts_total',
    ),
    /** Records the undelivered notices of all gateways, by state. Undefined: unknown, or there are no notices. */
    noticesCounted(counts: Readonly<Record<NoticeState, number>> | undefined): void {
      undelivered(Object.entries(counts ?? {}).map(([state, value]) => ({ labels: { state }, value })));
    },
    customersWithoutPlanCounted: latest('tollgate_customers_without_plan'),

    configReloaded(result: ReloadResult, now: RunningConfigFacts): void {
      configReloads(result);
      reloadFailing = result !== 'applied' && result !== 'unchanged';
      running = now;
    },
    /** `route`: a template of the admin API or `none`. Methods that the admin API does not use are counted as `other`. */
    adminRequest(route: string, method: string, status: number): void {
      adminRequests(route, ADMIN_METHODS.has(method) ? method : 'other', String(status));
    },
    /** Records a restart after an unexpected exit, or after the worker was killed because it failed to apply a config. */
    workerRestart: counter('tollgate_worker_restarts_total'),
  };
}
