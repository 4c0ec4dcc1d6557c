/** What the gateway counts and measures, one method per event. See metric-definitions.ts for what each metric means. */
import { Counter, Gauge, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';
import type { ProblemCode } from '../problems/table.ts';
import type { CustomerUsage } from '../quota/highest-usage.ts';
import type { FaultCode } from '../store/record-faults.ts';
import type { RecordDamage, StoreObserver, StoreOp } from '../store/store.ts';
import { METRIC_DEFINITIONS, type MetricDefinition } from './metric-definitions.ts';
import { collectProcessMetrics } from './process-metrics.ts';
import { createCounter, createHistogram } from './series.ts';

export type AnswerSource = 'upstream' | 'gateway';

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
export type AuthResult = (typeof AUTH_RESULTS)[number];
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
const RETRY_RESULTS = ['sent', 'over_budget'] as const;
export type RetryResult = (typeof RETRY_RESULTS)[number];
export type BrowserUseOutcome = 'allowed' | 'refused';
/** Why the gateway closed a client connection instead of serving it. */
export const CUT_REASONS = ['displaced', 'surplus', 'silent', 'slow_reader', 'pipelined', 'tls'] as const;
export type CutReason = (typeof CUT_REASONS)[number];
/** What can be wrong with a record that a request needs. */
const DAMAGES: readonly (readonly [RecordDamage['kind'], FaultCode])[] = [
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
export type QuotaPolicy = 'hourly' | 'burst' | 'shadow';
export type QuotaOutcome = 'allowed' | 'near' | 'denied' | 'shadow_denied' | 'store_error';
export type QuotaMode = 'lease' | 'store' | 'local';

/** A finished request of the public listener. */
export interface RequestSample {
  /** The configured template or `none`; never a raw path. */
  readonly route: string;
  /** As received; counted as `GET`, `HEAD` or `other`. */
  readonly method: string;
  readonly status: number;
  readonly source: AnswerSource;
  /** A configured name, `none` or `unknown`. */
  readonly plan: string;
  /** Code of the problem document, if the gateway responded with one. */
  readonly problem?: ProblemCode | undefined;
  /** Omitted for what never became a request, such as bytes that cannot be parsed. */
  readonly durationSeconds?: number | undefined;
  /** Omitted if nothing was sent to the backend. */
  readonly upstreamSeconds?: number | undefined;
}

export interface Metrics extends Required<StoreObserver> {
  request(sample: RequestSample): void;
  auth(result: AuthResult): void;
  browserUse(plan: string, outcome: BrowserUseOutcome): void;
  spoofedField(): void;
  quotaDecision(plan: string, policy: QuotaPolicy, outcome: QuotaOutcome, mode: QuotaMode): void;
  inflight(change: 1 | -1): void;
  connection(change: 1 | -1): void;
  connectionCut(reason: CutReason): void;
  /** Records the certificate in use and when it expires. */
  certificateUsed(expiresAtMs: number): void;
  certificateReload(result: 'used' | 'refused'): void;
  upstreamRetry(result: RetryResult): void;
  configReloaded(result: ReloadResult, running: RunningConfigFacts): void;
  /** `route`: a template of the admin API or `none`. Methods that the admin API does not use are counted as `other`. */
  adminRequest(route: string, method: string, status: number): void;
  /**
   * Records a worker's restart after an unexpected exit, or after it was killed because it failed to apply a config.
   */
  workerRestart(): void;
  /** Returns all metrics in Prometheus' text format, to be sent with `contentType`. */
  text(): Promise<string>;
  readonly contentType: string;
  /** Returns all values, to be combined with those of other processes. */
  snapshot(): Promise<MetricsSnapshot>;
}

/** Most customers that are shown: a series for each customer would be unbounded. */
export const CUSTOMERS_SHOWN = 10;

/** Plain data, in prom-client's form. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

export interface RunningConfigFacts {
  readonly hash: string;
  /** Wall time in ms at which the config file was last found to equal the running configuration. */
  readonly loadedAtMs: number;
}

export interface MetricsOptions {
  /** Omitted: a new registry. */
  readonly registry?: Registry;
  readonly version: string;
  readonly configHash: string;
  /** Wall time in ms at which the running configuration was loaded. */
  readonly configLoadedAtMs: number;
  /** Returns whether a record that the store does not have may exist nevertheless; called at each scrape. */
  readonly storeIsDoubtful: () => boolean;
  /** Returns the customers with the highest ratio of use to limit; called at each scrape. */
  readonly highestUsage: (count: number) => readonly CustomerUsage[];
  /** Returns the state of each upstream, by origin and base path; called at each scrape. */
  readonly upstreams: () => readonly { readonly url: string; readonly up: boolean }[];
  /** Returns the lines dropped since the start; called at each scrape. */
  readonly droppedLogLines: () => number;
  /** Whether to add metrics of the process, its event loop and its garbage collection. */
  readonly defaultMetrics: boolean;
}

/** Creates the metrics. None of the recording methods throws. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = options.registry ?? new Registry();
  const define = METRIC_DEFINITIONS;

  const httpRequests = createCounter(define.httpRequests, registry);
  const refusals = createCounter(define.refusals, registry);
  const auth = createCounter(define.auth, registry);
  const browserUse = createCounter(define.browserUse, registry);
  const spoofedFields = createCounter(define.spoofedFields, registry);
  const quotaDecisions = createCounter(define.quotaDecisions, registry);
  const storeCalls = createCounter(define.storeCalls, registry);
  const requestDuration = createHistogram(define.requestDuration, registry);
  const upstreamDuration = createHistogram(define.upstreamDuration, registry);
  const overhead = createHistogram(define.overhead, registry);
  const storeCommandDuration = createHistogram(define.storeCommandDuration, registry);

  const connectionsCut = createCounter(define.connectionsCut, registry);
  const certificateReloads = createCounter(define.certificateReloads, registry);

  let inflight = 0;
  let connections = 0;
  const certificateExpiry = new Gauge({ ...named(define.certificateExpiry), registers: [registry] });
  certificateExpiry.remove(); // without a certificate there is no value, rather than 0
  let storeUp = false;
  let storeReached = false;
  let storeRefusing = false;
  const upstreamRetries = createCounter(define.upstreamRetries, registry);
  upstreamGauge(define.upstreamUp, registry, options.upstreams);
  for (const result of RETRY_RESULTS) upstreamRetries.announce(result);
  measuredGauge(define.inflightRequests, registry, () => inflight);
  measuredGauge(define.connections, registry, () => connections);
  measuredGauge(define.storeUp, registry, () => Number(storeUp));
  measuredGauge(define.degraded, registry, () =>
    Number((storeReached && !storeUp) || storeRefusing || options.storeIsDoubtful()),
  );
  measuredGauge(define.storeRefusing, registry, () => Number(storeRefusing));
  const damagedWindows = createCounter(define.damagedWindows, registry);
  damagedWindows.announce();
  const damagedRecords = createCounter(define.damagedRecords, registry);
  for (const [kind, fault] of DAMAGES) damagedRecords.announce(kind, fault);
  const configInfo = infoGauge(define.configInfo, registry, { hash: options.configHash });
  infoGauge(define.buildInfo, registry, { version: options.version, node: process.version });
  const configReloads = createCounter(define.configReloads, registry);
  const adminRequests = createCounter(define.adminRequests, registry);
  const workerRestarts = createCounter(define.workerRestarts, registry);
  workerRestarts.announce();
  let configLoadedAtMs = options.configLoadedAtMs;
  let reloadFailing = false;
  measuredGauge(define.configLastSuccess, registry, () => configLoadedAtMs / 1000);
  measuredGauge(define.configReloadFailing, registry, () => Number(reloadFailing));

  usageGauge(define.customerUsageRatio, registry, () => options.highestUsage(CUSTOMERS_SHOWN));
  measuredCounter(define.logLinesDropped, registry, options.droppedLogLines);

  for (const result of AUTH_RESULTS) auth.announce(result);
  spoofedFields.announce();
  for (const reason of CUT_REASONS) connectionsCut.announce(reason);
  for (const result of RELOAD_RESULTS) configReloads.announce(result);
  if (options.defaultMetrics) collectProcessMetrics(registry);

  return {
    contentType: registry.contentType,

    text: () => registry.metrics(),

    snapshot: () => registry.getMetricsAsJSON(),

    request({ route, method, status, source, plan, problem, durationSeconds, upstreamSeconds }) {
      httpRequests.increment(route, boundedMethod(method), String(status), source, plan);
      if (problem !== undefined) refusals.increment(problem, plan);
      if (durationSeconds === undefined) return;
      requestDuration.observe(durationSeconds, route, source);
      if (upstreamSeconds !== undefined) upstreamDuration.observe(upstreamSeconds, route);
      overhead.observe(Math.max(0, durationSeconds - (upstreamSeconds ?? 0)), source);
    },

    auth(result) {
      auth.increment(result);
    },

    spoofedField() {
      spoofedFields.increment();
    },
    browserUse(plan, outcome) {
      browserUse.increment(plan, outcome);
    },

    quotaDecision(plan, policy, outcome, mode) {
      quotaDecisions.increment(plan, policy, outcome, mode);
    },

    inflight(change) {
      inflight += change;
    },

    connection(change) {
      connections += change;
    },

    connectionCut(reason) {
      connectionsCut.increment(reason);
    },

    certificateUsed(expiresAtMs) {
      certificateExpiry.set(expiresAtMs / 1000);
    },

    certificateReload(result) {
      certificateReloads.increment(result);
    },

    upstreamRetry(result) {
      upstreamRetries.increment(result);
    },

    configReloaded(result, running) {
      configReloads.increment(result);
      reloadFailing = result !== 'applied' && result !== 'unchanged';
      configLoadedAtMs = running.loadedAtMs;
      configInfo.reset();
      configInfo.set({ hash: running.hash }, 1);
    },

    adminRequest(route, method, status) {
      const counted = ADMIN_METHODS.has(method) ? method : 'other';
      adminRequests.increment(route, counted, String(status));
    },

    workerRestart() {
      workerRestarts.increment();
    },

    called(op: StoreOp, durationSeconds: number) {
      storeCalls.increment(op);
      storeCommandDuration.observe(durationSeconds, op);
    },

    up(up: boolean) {
      storeUp = up;
      storeReached ||= up;
    },

    refusing(reason) {
      storeRefusing = reason !== undefined;
    },

    damagedWindow() {
      damagedWindows.increment();
    },

    damagedRecord({ kind, fault }) {
      damagedRecords.increment(kind, fault.code);
    },
  };
}

function boundedMethod(method: string): string {
  return method === 'GET' || method === 'HEAD' ? method : 'other';
}

function named({ name, help, acrossWorkers = 'sum' }: MetricDefinition) {
  return { name, help, aggregator: acrossWorkers === 'primary' ? ('omit' as const) : acrossWorkers };
}

/** A gauge whose value is read when it is scraped. */
function measuredGauge(definition: MetricDefinition, registry: Registry, read: () => number): void {
  const gauge: Gauge = new Gauge({
    ...named(definition),
    registers: [registry],
    collect: () => gauge.set(read()),
  });
}

/** A counter that is kept elsewhere and read at each scrape. */
function measuredCounter({ name, help }: MetricDefinition, registry: Registry, read: () => number): void {
  const counter: Counter = new Counter({
    name,
    help,
    registers: [registry],
    collect() {
      counter.reset();
      counter.inc(read());
    },
  });
}

/** Has series only for the current upstreams. */
function upstreamGauge(definition: MetricDefinition, registry: Registry, read: MetricsOptions['upstreams']): void {
  const gauge: Gauge = new Gauge({
    ...named(definition),
    labelNames: ['upstream'],
    registers: [registry],
    collect() {
      gauge.reset();
      for (const { url, up } of read()) gauge.set({ upstream: url }, Number(up));
    },
  });
}

/** Has series only for the customers that are shown now. */
function usageGauge(definition: MetricDefinition, registry: Registry, read: () => readonly CustomerUsage[]): void {
  const gauge: Gauge = new Gauge({
    ...named(definition),
    labelNames: ['customer'],
    registers: [registry],
    collect() {
      gauge.reset();
      for (const { customer, ratio } of read()) gauge.set({ customer }, ratio);
    },
  });
}

function infoGauge(definition: MetricDefinition, registry: Registry, labels: Record<string, string>): Gauge {
  const gauge = new Gauge({ ...named(definition), labelNames: Object.keys(labels), registers: [registry] });
  gauge.set(labels, 1);
  return gauge;
}
