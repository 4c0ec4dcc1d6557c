/**
 * Combines the metrics of several processes into one exposition. Counters and histograms are summed. The sums keep the
 * counts of workers that exited, so they never decrease. Gauges are combined by their meaning.
 */
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';
import type { MetricName } from '../../observability/metric-definitions.ts';
import { MAX_CUSTOMERS, type MetricsSnapshot } from '../../observability/metrics.ts';

type Metric = MetricObjectWithValues<MetricValue<string>>;

/** prom-client would take the mean, which hides a single blocked process. */
const COMBINED_BY_MAX = /^nodejs_eventloop_lag_(?:p\d+_)?seconds$/;

export class SummedMetrics {
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
    if (counted !== undefined) this.#exited = aggregated(AggregatorRegistry.aggregate([this.#exited, counted]));
  }

  /** Returns the exposition in Prometheus' text format. `own`: the metrics of the primary. */
  text(own: MetricsSnapshot): Promise<string> {
    const workers = [...this.#latest.values()].map((snapshot) => snapshot.filter(isFromWorkers));
    // The first snapshot decides how a metric is combined.
    const registry = AggregatorRegistry.aggregate([own.map(combinable), this.#exited, ...workers]);
    // Each worker reports MAX_CUSTOMERS customers.
    const usage = aggregated(registry).find(
      ({ name }) => name === ('tollgate_customer_usage_ratio' satisfies MetricName),
    );
    usage?.values.sort((a, b) => b.value - a.value).splice(MAX_CUSTOMERS);
    return registry.metrics();
  }
}

/** The metrics of an aggregated registry have their values; those of other registries only promise them. */
function aggregated(registry: Pick<Registry, 'getMetricsAsArray'>): Metric[] {
  return registry.getMetricsAsArray() as unknown as Metric[];
}

function isCounted({ type }: Metric): boolean {
  return ['counter', 'histogram'].includes(String(type));
}

/** `omit` marks metrics that the primary reports for all processes. */
function isFromWorkers({ aggregator }: Metric): boolean {
  return aggregator !== 'omit';
}

function combinable(metric: Metric): Metric {
  if (metric.aggregator === 'omit') return { ...metric, aggregator: 'first' };
  return COMBINED_BY_MAX.test(metric.name) ? { ...metric, aggregator: 'max' } : metric;
}
