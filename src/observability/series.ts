/**
 * Metrics of prom-client's registry, recorded without prom-client's cost per observation: it builds and hashes a string
 * of all labels each time. Here, nested maps lead from label values to plain numbers, which the registry reads at each
 * scrape. Memory grows with the number of label combinations, so every label must be bounded.
 */
import type { Metric, MetricValueWithName, Registry } from 'prom-client';
import { METRICS, type MetricDefinition, type MetricName } from './metric-definitions.ts';

type Labels = Readonly<Record<string, string>>;
type Samples = readonly Pick<MetricValueWithName<string>, 'labels' | 'value'>[];

/** Returns functions that add metrics to `registry`. */
export function createSeries(registry: Registry) {
  /**
   * Adds a metric that is read at each scrape. `read` returns one value without labels, the current series, or undefined
   * while there is no value.
   */
  function measured(name: MetricName, read: () => number | Samples | undefined): void {
    const { help, type, acrossWorkers } = METRICS[name];
    const aggregator = acrossWorkers === 'primary' ? 'omit' : acrossWorkers;
    // A registry needs only a metric's name and, at a scrape, its values.
    const metric = {
      name,
      async get() {
        const current = read() ?? [];
        const values = typeof current === 'number' ? [{ labels: {}, value: current }] : current;
        return { name, help, type, aggregator, values };
      },
    };
    registry.registerMetric(metric as unknown as Metric);
  }

  /** Adds a metric without labels that starts at 0, and returns the function that adds to it. */
  function total(name: MetricName): (change: number) => void {
    let value = 0;
    measured(name, () => value);
    return (change) => {
      value += change;
    };
  }

  /** Adds a metric that has no value at first, and returns the function that sets it; undefined removes it. */
  function latest(name: MetricName): (latest: number | Samples | undefined) => void {
    let value: number | Samples | undefined;
    measured(name, () => value);
    return (latest) => {
      value = latest;
    };
  }

  /**
   * Adds a counter, and returns the function that increments it. Label values are in the order of the definition's
   * `labels`. Series in `announced` exist from the start with value 0, so that their first increment is visible: a series
   * that begins at 1 has no rate. By default, these are all series of a counter whose labels list their values.
   */
  function counter<LabelValues extends readonly string[] = []>(
    name: MetricName<'counter'>,
    announced: readonly (readonly string[])[] = listedSeries(METRICS[name]),
  ): (...labelValues: LabelValues) => void {
    const { all, of } = seriesByLabels(METRICS[name], (labels) => ({ labels, value: 0 }));
    for (const labelValues of announced) of(labelValues);
    measured(name, () => all.map(({ labels, value }) => ({ labels, value })));
    return (...labelValues) => {
      of(labelValues).value++;
    };
  }

  /** Adds a histogram, and returns the function that records an observation. Label values as for {@link counter}. */
  function histogram<LabelValues extends readonly string[]>(
    name: MetricName<'histogram'>,
  ): (seconds: number, ...labelValues: LabelValues) => void {
    const { buckets: bounds } = METRICS[name];
    const counts = () => new Array<number>(bounds.length + 1).fill(0);
    const { all, of } = seriesByLabels(METRICS[name], (labels) => ({ labels, counts: counts(), sum: 0 }));
    measured(name, () => all.flatMap((distribution) => samplesOf(distribution, name, bounds)));
    return (seconds, ...labelValues) => {
      const distribution = of(labelValues);
      let at = 0;
      while (at < bounds.length && seconds > (bounds[at] ?? 0)) at++;
      distribution.counts[at] = (distribution.counts[at] ?? 0) + 1;
      distribution.sum += seconds;
    };
  }

  return { measured, total, latest, counter, histogram };
}

/** Returns each combination of label values; none if a label does not list its values. */
function listedSeries({ labels }: MetricDefinition): string[][] {
  return Object.values(labels).reduce<string[][]>(
    (series, values) =>
      typeof values === 'string' ? [] : series.flatMap((each) => Object.keys(values).map((value) => [...each, value])),
    [[]],
  );
}

/** Observations of one series. */
interface Distribution {
  readonly labels: Labels;
  /** Per bucket, not cumulative; the last one is above all bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
}

/** Returns the values in prom-client's form: cumulative buckets, sum and count. `bounds`: ascending. */
function samplesOf({ labels, counts, sum }: Distribution, name: string, bounds: readonly number[]) {
  let total = 0;
  const buckets = counts.map((count, at) => {
    total += count;
    return { metricName: `${name}_bucket`, labels: { le: bounds[at] ?? '+Inf', ...labels }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ];
}

interface SeriesBranch<Series> {
  readonly branches: Map<string, SeriesBranch<Series>>;
  series?: Series;
}

/** Returns the series of one metric, so far none. `of` creates each when its label values first occur. */
function seriesByLabels<Series>({ labels }: MetricDefinition, create: (labels: Labels) => Series) {
  const all: Series[] = [];
  const root: SeriesBranch<Series> = { branches: new Map() };
  const names = Object.keys(labels);

  function of(labelValues: readonly string[]): Series {
    let branch = root;
    for (const value of labelValues) {
      let next = branch.branches.get(value);
      if (next === undefined) {
        next = { branches: new Map() };
        branch.branches.set(value, next);
      }
      branch = next;
    }
    if (branch.series === undefined) {
      branch.series = create(Object.fromEntries(names.map((name, i) => [name, labelValues[i] ?? ''])));
      all.push(branch.series);
    }
    return branch.series;
  }

  return { all, of };
}
