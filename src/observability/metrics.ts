/** What the gateway counts and measures, one method per event. See metric-definitions.ts for what each metric means. */
import { type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';
import { NOTICE_TYPES, type NoticeType } from '../notices/notice.ts';
import type { QuotaMode } from '../quota/hourly-quota.ts';
import type { NoticeState } from '../store/notices.ts';
import type { RetryResult } from '../upstream/upstreams.ts';
import { METRIC_DEFINITIONS } from './metric-definitions.ts';
import { addProcessMetrics } from './process-metrics.ts';
import { addCounter, addHistogram, addMeasured } from './series.ts';

export type ResponseSource = 'upstream' | 'gateway';

const AUTH_RESULTS = [
  'valid',
  'missing',
  'in_query',
  'malformed',
  'checksum',
  'unknown',
  'unusable',
  'revoked',
  'expired',
  'store_error',
] as const;
type AuthResult = (typeof AUTH_RESULTS)[number];
/** Result of an attempt to reload the config file; `applied` and `unchanged` are successes. */
const RELOAD_RESULTS = [
  'applied',
  'unchanged',
  'invalid',
  'restart_required',
  'plan_in_use',
  'unverified',
  'failed',
] as const;
export type ReloadResult = (typeof RELOAD_RESULTS)[number];
const ADMIN_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE']);
const RETRY_RESULTS: readonly RetryResult[] = ['sent', 'over_budget'];
export type BrowserUseOutcome = 'allowed' | 'refused';
/** Why the gateway closed a client connection instead of serving it. */
export const CLOSE_REASONS = ['displaced', 'surplus', 'silent', 'slow_reader', 'pipelined', 'tls'] as const;
export type CloseReason = (typeof CLOSE_REASONS)[number];
/** What can be wrong with a record that a request needs. */
const DAMAGES: readonly (readonly [record: string, fault: string])[] = [
  ['key', 'wrong_type'],
  ['key', 'no_id'],
  ['key', 'bad_id'],
  ['key', 'no_customer'],
  ['key', 'bad_customer_id'],
  ['key', 'unreadable_time'],
  ['customer', 'wrong_type'],
  ['customer', 'no_plan'],
  ['customer', 'unbraced_name'],
];
const NOTICE_RESULTS = ['delivered', 'failed', 'dead', 'gone'] as const;
type NoticeResult = (typeof NOTICE_RESULTS)[number];
type QuotaPolicy = 'hourly' | 'burst' | 'concurrent' | 'shadow';
type QuotaOutcome = 'allowed' | 'near' | 'denied' | 'shadow_denied' | 'store_error';

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
  readonly durationSeconds?: number | undefined;
  /** Omitted if nothing was sent to the backend. */
  readonly upstreamSeconds?: number | undefined;
  /** Body bytes received from the client; omitted if the request has no body. */
  readonly bytesIn?: number | undefined;
}

export interface Metrics {
  request(sample: RequestSample): void;
  auth(result: AuthResult): void;
  browserUse(plan: string, outcome: BrowserUseOutcome): void;
  spoofedHeader(): void;
  quotaDecision(plan: string, policy: QuotaPolicy, outcome: QuotaOutcome, mode: QuotaMode): void;
  upstreamRetry(result: RetryResult): void;
  inflight(change: 1 | -1): void;

  connection(change: 1 | -1): void;
  connectionClosed(reason: CloseReason): void;
  /** Records the certificate in use and when it expires. */
  certificateUsed(expiresAtMs: number): void;
  certificateReload(result: 'used' | 'refused'): void;

  storeCalled(op: string, durationSeconds: number): void;
  storeUp(up: boolean): void;
  /** Records whether the store refuses quota writes. */
  storeRefusing(isRefusing: boolean): void;
  damagedWindow(): void;
  damagedRecord(record: 'key' | 'customer', faultCode: string): void;

  noticeCreated(type: NoticeType): void;
  noticeAttempt(endpoint: 'operator' | 'customer', result: NoticeResult): void;
  /** Records the undelivered notices of all gateways, by state. Undefined: unknown, or there are no notices. */
  noticesCounted(counts: Readonly<Record<NoticeState, number>> | undefined): void;
  customersWithoutPlanCounted(customers: number): void;

  configReloaded(result: ReloadResult, running: RunningConfigFacts): void;
  /** `route`: a template of the admin API or `none`. Methods that the admin API does not use are counted as `other`. */
  adminRequest(route: string, method: string, status: number): void;
  /** Records a restart after an unexpected exit, or after the worker was killed because it failed to apply a config. */
  workerRestart(): void;

  /** Returns all metrics in Prometheus' text format, to be sent with `contentType`. */
  text(): Promise<string>;
  readonly contentType: string;
  /** Returns all values, to be combined with those of other processes. */
  snapshot(): Promise<MetricsSnapshot>;
}

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
  readonly configHash: string;
  /** Wall time in ms at which the running configuration was loaded. */
  readonly configLoadedAtMs: number;
  /** Returns whether a record that the store does not have may exist nevertheless; called at each scrape. */
  readonly storeIsDoubtful: () => boolean;
  /** Returns the customers with the highest ratio of use to limit; called at each scrape. */
  readonly highestUsage: (count: number) => readonly { readonly customer: string; readonly ratio: number }[];
  /** Returns the state of each upstream, by origin and base path; called at each scrape. */
  readonly upstreams: () => readonly { readonly url: string; readonly up: boolean }[];
  /** Returns the lines dropped since the start; called at each scrape. */
  readonly droppedLogLines: () => number;
  /** Whether to add metrics of the process, its event loop and its garbage collection. */
  readonly defaultMetrics: boolean;
}

/** Creates the metrics. None of the recording methods throws. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  const define = METRIC_DEFINITIONS;

  const httpRequests = addCounter(define.httpRequests, registry);
  const refusals = addCounter(define.refusals, registry);
  const requestDuration = addHistogram(define.requestDuration, registry);
  const upstreamDuration = addHistogram(define.upstreamDuration, registry);
  const overhead = addHistogram(define.overhead, registry);
  let requestBodyBytes = 0;
  addMeasured(define.requestBodyBytes, registry, () => requestBodyBytes);
  let inflight = 0;
  addMeasured(define.inflightRequests, registry, () => inflight);

  let connections = 0;
  addMeasured(define.connections, registry, () => connections);
  let certificateExpiresAtMs: number | undefined;
  addMeasured(define.certificateExpiry, registry, () =>
    certificateExpiresAtMs === undefined ? [] : [{ labels: {}, value: certificateExpiresAtMs / 1000 }],
  );

  const storeCalls = addCounter(define.storeCalls, registry);
  const storeCommandDuration = addHistogram(define.storeCommandDuration, registry);
  let storeUp = false;
  let storeReached = false;
  let storeRefusing = false;
  addMeasured(define.storeUp, registry, () => Number(storeUp));
  addMeasured(define.storeRefusing, registry, () => Number(storeRefusing));
  addMeasured(define.degraded, registry, () =>
    Number((storeReached && !storeUp) || storeRefusing || options.storeIsDoubtful()),
  );

  let noticeCounts: Readonly<Record<NoticeState, number>> | undefined;
  addMeasured(define.noticesUndelivered, registry, () =>
    Object.entries(noticeCounts ?? {}).map(([state, value]) => ({ labels: { state }, value })),
  );

  let customersWithoutPlan: number | undefined;
  addMeasured(define.customersWithoutPlan, registry, () =>
    customersWithoutPlan === undefined ? [] : [{ labels: {}, value: customersWithoutPlan }],
  );

  const configReloads = addCounter(define.configReloads, registry, oneLabel(RELOAD_RESULTS));
  let running = { hash: options.configHash, loadedAtMs: options.configLoadedAtMs };
  let reloadFailing = false;
  addMeasured(define.configInfo, registry, () => [{ labels: { hash: running.hash }, value: 1 }]);
  addMeasured(define.configLastSuccess, registry, () => running.loadedAtMs / 1000);
  addMeasured(define.configReloadFailing, registry, () => Number(reloadFailing));

  const { version } = options;
  addMeasured(define.buildInfo, registry, () => [{ labels: { version, node: process.version }, value: 1 }]);
  addMeasured(define.logLinesDropped, registry, options.droppedLogLines);
  addMeasured(define.upstreamUp, registry, () =>
    options.upstreams().map(({ url, up }) => ({ labels: { upstream: url }, value: Number(up) })),
  );
  addMeasured(define.customerUsageRatio, registry, () =>
    options.highestUsage(MAX_CUSTOMERS).map(({ customer, ratio }) => ({ labels: { customer }, value: ratio })),
  );
  const adminRequests = addCounter(define.adminRequests, registry);
  if (options.defaultMetrics) addProcessMetrics(registry);

  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    snapshot: () => registry.getMetricsAsJSON(),

    request({ route, method, status, source, plan, problem, durationSeconds, upstreamSeconds, bytesIn }) {
      // A client can send any method: only those that the route has get a label.
      const isRouted = route !== 'none' && problem !== 'method_not_allowed';
      const countedMethod = method === 'GET' || method === 'HEAD' || isRouted ? method : 'other';
      httpRequests(route, countedMethod, String(status), source, plan);
      if (problem !== undefined) refusals(problem, plan);
      if (bytesIn !== undefined) requestBodyBytes += bytesIn;
      if (durationSeconds === undefined) return;
      requestDuration(durationSeconds, route, source);
      if (upstreamSeconds !== undefined) upstreamDuration(upstreamSeconds, route);
      overhead(Math.max(0, durationSeconds - (upstreamSeconds ?? 0)), source);
    },
    auth: addCounter(define.auth, registry, oneLabel(AUTH_RESULTS)),
    browserUse: addCounter(define.browserUse, registry),
    spoofedHeader: addCounter(define.spoofedHeaders, registry),
    quotaDecision: addCounter(define.quotaDecisions, registry),
    upstreamRetry: addCounter(define.upstreamRetries, registry, oneLabel(RETRY_RESULTS)),
    inflight(change) {
      inflight += change;
    },

    connection(change) {
      connections += change;
    },
    connectionClosed: addCounter(define.closedConnections, registry, oneLabel(CLOSE_REASONS)),
    certificateUsed(expiresAtMs) {
      certificateExpiresAtMs = expiresAtMs;
    },
    certificateReload: addCounter(define.certificateReloads, registry),

    storeCalled(op, durationSeconds) {
      storeCalls(op);
      storeCommandDuration(durationSeconds, op);
    },
    storeUp(up) {
      storeUp = up;
      storeReached ||= up;
    },
    storeRefusing(isRefusing) {
      storeRefusing = isRefusing;
    },
    damagedWindow: addCounter(define.damagedWindows, registry),
    damagedRecord: addCounter(define.damagedRecords, registry, DAMAGES),

    noticeCreated: addCounter(define.noticesCreated, registry, oneLabel(NOTICE_TYPES)),
    noticeAttempt: addCounter(
      define.noticeAttempts,
      registry,
      ['operator', 'customer'].flatMap((endpoint) => NOTICE_RESULTS.map((result) => [endpoint, result])),
    ),
    noticesCounted(counts) {
      noticeCounts = counts;
    },
    customersWithoutPlanCounted(customers) {
      customersWithoutPlan = customers;
    },

    configReloaded(result, now) {
      configReloads(result);
      reloadFailing = result !== 'applied' && result !== 'unchanged';
      running = now;
    },
    adminRequest(route, method, status) {
      adminRequests(route, ADMIN_METHODS.has(method) ? method : 'other', String(status));
    },
    workerRestart: addCounter(define.workerRestarts, registry),
  };
}

function oneLabel(values: readonly string[]): string[][] {
  return values.map((value) => [value]);
}
