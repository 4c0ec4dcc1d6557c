/**
 * prom-client's metrics without its cost per observation: it builds and hashes a string of all labels each time. Here,
 * nested maps lead from label values to plain numbers, which prom-client reads at each scrape. Memory grows with the
 * number of label combinations, so every label must be bounded.
 */
import { Counter, type Metric, type Registry } from 'prom-client';
import type { MetricDefinition } from './metric-definitions.ts';

/** Label values are in the order of the definition's `labels`. */
export interface CounterSeries {
  increment(...labelValues: string[]): void;
  /** Creates the series with value 0, so that its first increment is visible: a series that begins at 1 has no rate. */
  announce(...labelValues: string[]): void;
}

export interface HistogramSeries {
  observe(seconds: number, ...labelValues: string[]): void;
}

interface Tally {
  count: number;
  exported: number;
}

type CounterDefinition = MetricDefinition & { readonly type: 'counter' };
type HistogramDefinition = MetricDefinition & { readonly type: 'histogram'; readonly buckets: readonly number[] };

export function createCounter(definition: CounterDefinition, registry: Registry): CounterSeries {
  const labelNames = Object.keys(definition.labels);
  const tallies: { readonly labels: Record<string, string>; readonly tally: Tally }[] = [];
  const lookup = createLookup((labelValues) => {
    const tally = { count: 0, exported: 0 };
    tallies.push({ labels: labelled(labelNames, labelValues), tally });
    return tally;
  });
  const counter = new Counter({
    name: definition.name,
    help: definition.help,
    labelNames,
    registers: [registry],
    collect() {
      for (const { labels, tally } of tallies) {
        counter.inc(labels, tally.count - tally.exported);
        tally.exported = tally.count;
      }
    },
  });
  return {
    increment(...labelValues) {
      lookup(labelValues).count++;
    },
    announce(...labelValues) {
      lookup(labelValues);
    },
  };
}

export function createHistogram(definition: HistogramDefinition, registry: Registry): HistogramSeries {
  const labelNames = Object.keys(definition.labels);
  const distributions: Distribution[] = [];
  const lookup = createLookup((labelValues) => {
    const distribution = new Distribution(labelled(labelNames, labelValues), definition.buckets);
    distributions.push(distribution);
    return distribution;
  });
  const { name, help } = definition;
  // prom-client's histogram cannot import counts. Its registry needs only a metric's name and, at a scrape, its values.
  const exported = {
    name,
    get: async () => ({
      name,
      help,
      type: 'histogram',
      aggregator: 'sum',
      values: distributions.flatMap((distribution) => distribution.values(name)),
    }),
  };
  registry.registerMetric(exported as unknown as Metric);
  return {
    observe(seconds, ...labelValues) {
      lookup(labelValues).observe(seconds);
    },
  };
}

/** Observations of one series, counted by bucket. */
class Distribution {
  readonly #labels: Record<string, string>;
  /** Upper bounds, ascending. */
  readonly #bounds: readonly number[];
  /** Per bucket, not cumulative; the last one is above all bounds. */
  readonly #counts: number[];
  #sum = 0;

  constructor(labels: Record<string, string>, bounds: readonly number[]) {
    this.#labels = labels;
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? 0)) at++;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
  }

  /** Returns the values in prom-client's form: cumulative buckets, sum and count. */
  values(name: string) {
    let total = 0;
    const buckets = this.#counts.map((count, at) => {
      total += count;
      const le = this.#bounds[at] ?? '+Inf';
      return { metricName: `${name}_bucket`, labels: { le, ...this.#labels }, value: total };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels: this.#labels, value: this.#sum },
      { metricName: `${name}_count`, labels: this.#labels, value: total },
    ];
  }
}

function labelled(names: readonly string[], values: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name, i) => [name, values[i] ?? '']));
}

interface Branch<Leaf> {
  readonly branches: Map<string, Branch<Leaf>>;
  leaf?: Leaf;
}

function createLookup<Leaf extends object>(
  create: (labelValues: readonly string[]) => Leaf,
): (labelValues: readonly string[]) => Leaf {
  const root: Branch<Leaf> = { branches: new Map() };
  return (labelValues) => {
    let branch = root;
    for (const value of labelValues) {
      let next = branch.branches.get(value);
      if (next === undefined) {
        next = { branches: new Map() };
        branch.branches.set(value, next);
      }
      branch = next;
    }
    branch.leaf ??= create(labelValues);
    return branch.leaf;
  };
}
