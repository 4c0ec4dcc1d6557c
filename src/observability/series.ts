/**
 * prom-client's metrics without its cost per observation: it builds and hashes a text of all labels each time. Here
 * what belongs to a tuple of label values is found through nested maps, and counters and histograms are plain numbers that
 * prom-client learns of when it is scraped. All of it grows with the distinct tuples, so every label must be bounded.
 */
import { Counter, type Metric, type Registry } from 'prom-client';
import type { MetricDefinition } from './metric-definitions.ts';

/** Label values are given in the order of the definition's `labels`. */
export interface CounterSeries {
  increment(...labelValues: string[]): void;
  /** Makes the series appear with 0, so that its first increment is seen as one (a series that begins at 1 has no rate). */
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
  // prom-client's own histogram cannot take over what was counted elsewhere. All that its registry asks of a metric is
  // its name and, at a scrape, its values.
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
  /** By bucket, the one beyond all bounds last; not cumulative. */
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

  /** In prom-client's form: cumulative buckets, sum and count. */
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
