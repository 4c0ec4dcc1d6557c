/**
 * Metrics of prom-client's registry, recorded without prom-client's cost per observation: it builds and hashes a string
 * of all labels each time. Here, nested maps lead from label values to plain numbers, which the registry reads at each
 * scrape. Memory grows with the number of label combinations, so every label must be bounded.
 */
import type { Metric, MetricValueWithName, Registry } from 'prom-client';
import { METRICS, type MetricDefinition, type MetricName } from './metric-definitions.ts';

type Labels = Readonly<Record<string, string>>;
type Samples = readonly Pick<MetricValueWithName<string>, 'labels' | 'value'>[];

/**
 * Adds a metric that is read at each scrape. `read` returns one value without labels, the current series, or undefined
 * while there is no value.
 */
export function addMeasured(name: MetricName, registry: Registry, read: () => number | Samples | undefined): void {
  const { help, type, acrossWorkers } = METRICS[name];
  const aggregator = acrossWorkers === 'primary' ? 'omit' : acrossWorkers;
  // A registry needs only a metric's name and, at a scrape, its values.
  const metric = {
    name,
    async get() {
      const measured = read() ?? [];
      const values = typeof measured === 'number' ? [{ labels: {}, value: measured }] : measured;
      return { name, help, type, aggregator, values };
    },
  };
  registry.registerMetric(metric as unknown as Metric);
}

/**
 * Adds a counter, and returns the function that increments it. Label values are in the order of the definition's
 * `labels`. Series in `announced` exist from the start with value 0, so that their first increment is visible: a series
 * that begins at 1 has no rate. By default, these are all series of a counter whose labels list their values.
 */
export function addCounter<LabelValues extends readonly string[] = []>(
  name: MetricName<'counter'>,
  registry: Registry,
  announced: readonly (readonly string[])[] = listedSeries(METRICS[name]),
): (...labelValues: LabelValues) => void {
  const counts = new SeriesByLabels(METRICS[name], (labels) => ({ labels, value: 0 }));
  for (const labelValues of announced) counts.get(labelValues);
  addMeasured(name, registry, () => counts.all.map(({ labels, value }) => ({ labels, value })));
  return (...labelValues) => {
    counts.get(labelValues).value++;
  };
}

/** Returns each combination of label values; none if a label does not list its values. */
function listedSeries({ labels }: MetricDefinition): string[][] {
  return Object.values(labels).reduce<string[][]>(
    (series, values) =>
      typeof values === 'string' ? [] : series.flatMap((each) => Object.keys(values).map((value) => [...each, value])),
    [[]],
  );
}

/** Adds a histogram, and returns the function that records an observation. Label values as for {@link addCounter}. */
export function addHistogram<LabelValues extends readonly string[]>(
  name: MetricName<'histogram'>,
  registry: Registry,
): (seconds: number, ...labelValues: LabelValues) => void {
  const definition = METRICS[name];
  const distributions = new SeriesByLabels(definition, (labels) => new Distribution(labels, definition.buckets));
  addMeasured(name, registry, () => distributions.all.flatMap((distribution) => distribution.samples(name)));
  return (seconds, ...labelValues) => distributions.get(labelValues).observe(seconds);
}

/** Observations of one series, counted by bucket. */
class Distribution {
  readonly #labels: Labels;
  /** Upper bounds, ascending. */
  readonly #bounds: readonly number[];
  /** Per bucket, not cumulative; the last one is above all bounds. */
  readonly #counts: number[];
  #sum = 0;

  constructor(labels: Labels, bounds: readonly number[]) {
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
  samples(name: string) {
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

interface Branch<Series> {
  readonly branches: Map<string, Branch<Series>>;
  series?: Series;
}

/** The series of one metric. Each is created when its label values first occur. */
class SeriesByLabels<Series extends object> {
  readonly all: Series[] = [];
  readonly #root: Branch<Series> = { branches: new Map() };
  readonly #labelNames: readonly string[];
  readonly #create: (labels: Labels) => Series;

  constructor({ labels }: MetricDefinition, create: (labels: Labels) => Series) {
    this.#labelNames = Object.keys(labels);
    this.#create = create;
  }

  get(labelValues: readonly string[]): Series {
    let branch = this.#root;
    for (const value of labelValues) {
      let next = branch.branches.get(value);
      if (next === undefined) {
        next = { branches: new Map() };
        branch.branches.set(value, next);
      }
      branch = next;
    }
    branch.series ??= this.#add(labelValues);
    return branch.series;
  }

  #add(labelValues: readonly string[]): Series {
    const labels = Object.fromEntries(this.#labelNames.map((name, i) => [name, labelValues[i] ?? '']));
    const series = this.#create(labels);
    this.all.push(series);
    return series;
  }
}
