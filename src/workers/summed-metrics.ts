/**
 * The metrics of several processes as one exposition. Counters and histograms are summed, and what a worker counted stays
 * in the sums when it has ended; so they never go down. Gauges are combined by what they mean.
 */
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, Registry } from 'prom-client';
import { METRIC_DEFINITIONS } from '../observability/metric-definitions.ts';
import { CUSTOMERS_SHOWN, type MetricsSnapshot } from '../observability/metrics.ts';

type Metric = MetricObjectWithValues<MetricValue<string>>;

/** prom-client takes the mean, which hides the one process that is stuck. */
const WORST_OF_ALL = /^nodejs_eventloop_lag_(?:p\d+_)?seconds$/;

export class SummedMetrics {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  /** Of each worker that runs, as it said last. */
  readonly #latest = new Map<object, MetricsSnapshot>();
  /** What those counted that have ended. */
  #ended: MetricsSnapshot = [];

  /** `worker`: whatever stands for one process. */
  note(worker: object, snapshot: MetricsSnapshot): void {
    this.#latest.set(worker, snapshot);
  }

  end(worker: object): void {
    const counted = this.#latest.get(worker)?.filter(isCounted);
    this.#latest.delete(worker);
    if (counted !== undefined) this.#ended = summed([this.#ended, counted]);
  }

  /** In Prometheus' text format. `own`: of the process that keeps the workers. */
  text(own: MetricsSnapshot): Promise<string> {
    const workers = [...this.#latest.values()].map((snapshot) => snapshot.filter(isTheWorkers).map(combinable));
    const all = summed([own.map(combinable), this.#ended, ...workers]);
    const registry = new Registry();
    for (const metric of all) registry.registerMetric(exported(highestOnly(metric)));
    return registry.metrics();
  }
}

function summed(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const result: Metric[] = [];
  const registry = AggregatorRegistry.aggregate([...snapshots]);
  // Its metrics give their values at once, although those of other registries give a promise.
  for (const metric of registry.getMetricsAsArray()) result.push(metric as unknown as Metric);
  return result;
}

function isCounted({ type }: Metric): boolean {
  const kind = String(type);
  return kind === 'counter' || kind === 'histogram';
}

/** `omit`: what the process that keeps the workers says for all. */
function isTheWorkers({ aggregator }: Metric): boolean {
  return aggregator !== 'omit';
}

function combinable(metric: Metric): Metric {
  if (metric.aggregator === 'omit') return { ...metric, aggregator: 'first' };
  return WORST_OF_ALL.test(metric.name) ? { ...metric, aggregator: 'max' } : metric;
}

/** Each worker names as many customers as are shown. */
function highestOnly(metric: Metric): Metric {
  if (metric.name !== METRIC_DEFINITIONS.customerUsageRatio.name) return metric;
  return { ...metric, values: metric.values.toSorted((a, b) => b.value - a.value).slice(0, CUSTOMERS_SHOWN) };
}

/** All that a registry asks of a metric is its name and, at a scrape, its values. */
function exported(metric: Metric): Parameters<Registry['registerMetric']>[0] {
  return { name: metric.name, get: async () => metric } as unknown as Parameters<Registry['registerMetric']>[0];
}
