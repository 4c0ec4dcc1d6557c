/**
 * Combines the metrics of several processes into one exposition. Counters and histograms are summed. The sums keep the
 * counts of workers that exited, so they never decrease. Gauges are combined by their meaning.
 */
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';
import { METRIC_DEFINITIONS } from '../../observability/metric-definitions.ts';
import { MAX_CUSTOMERS, type MetricsSnapshot } from '../../observability/metrics.ts';

type Metric = MetricObjectWithValues<MetricValue<string>>;

/** prom-client would take the mean, which hides a single blocked process. */
const COMBINED_BY_MAX = /^nodejs_eventloop_lag_(?:p\d+_)?seconds$/;

export class SummedMetrics {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  /** The last snapshot of each running worker. */
  readonly #latest = new Map<object, MetricsSnapshot>();
  /** Sums over the workers that exited. */
  #exited: MetricsSnapshot = [];

  /** `worker`: an object that identifies the process. */
  update(worker: object, snapshot: MetricsSnapshot): void {
    this.#latest.set(worker, snapshot);
  }

  workerExited(worker: object): void {
    const counted = this.#latest.get(worker)?.filter(isCounted);
    this.#latest.delete(worker);
    if (counted !== undefined) this.#exited = summed([this.#exited, counted]);
  }

  /** Returns the exposition in Prometheus' text format. `own`: the metrics of the primary. */
  text(own: MetricsSnapshot): Promise<string> {
    const workers = [...this.#latest.values()].map((snapshot) => snapshot.filter(isFromWorkers).map(combinable));
    const all = summed([own.map(combinable), this.#exited, ...workers]);
    const registry = new Registry();
    for (const metric of all) registry.registerMetric(exported(highestOnly(metric)));
    return registry.metrics();
  }
}

function summed(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const result: Metric[] = [];
  const registry = AggregatorRegistry.aggregate([...snapshots]);
  // An aggregated registry's metrics return their values synchronously, other registries' a promise.
  for (const metric of registry.getMetricsAsArray()) result.push(metric as unknown as Metric);
  return result;
}

function isCounted({ type }: Metric): boolean {
  const kind = String(type);
  return kind === 'counter' || kind === 'histogram';
}

/** `omit` marks metrics that the primary reports for all processes. */
function isFromWorkers({ aggregator }: Metric): boolean {
  return aggregator !== 'omit';
}

function combinable(metric: Metric): Metric {
  if (metric.aggregator === 'omit') return { ...metric, aggregator: 'first' };
  return COMBINED_BY_MAX.test(metric.name) ? { ...metric, aggregator: 'max' } : metric;
}

/** Each worker reports MAX_CUSTOMERS customers; the exposition keeps the highest of all. */
function highestOnly(metric: Metric): Metric {
  if (metric.name !== METRIC_DEFINITIONS.customerUsageRatio.name) return metric;
  return { ...metric, values: metric.values.toSorted((a, b) => b.value - a.value).slice(0, MAX_CUSTOMERS) };
}

/** A registry needs only a metric's name and, at a scrape, its values. */
function exported(metric: Metric): Parameters<Registry['registerMetric']>[0] {
  return { name: metric.name, get: async () => metric } as unknown as Parameters<Registry['registerMetric']>[0];
}
