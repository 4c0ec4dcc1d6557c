/** Stacked bars of admitted and refused requests over time, drawn by uPlot, with a table of the same numbers. */
import { html } from 'htm/preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { time } from './components.ts';
import { compact, count, localTime, utcTime } from './format.ts';
import { table } from './table.ts';

export interface ChartPoint {
  /** ISO 8601. */
  readonly start: string;
  readonly admitted: number;
  /** The requests that took `admitted` units; undefined: `admitted` are requests. */
  readonly requests?: number | undefined;
  readonly refused: number;
}

const HEIGHT_PX = 180;
const BAR_SHARE = 0.8;
const MAX_BAR_PX = 40;
const MAX_LIMIT_RATIO = 4;

/** `limit`: of each point, drawn as a line. */
export function Chart(props: { label: string; points: readonly ChartPoint[]; limit?: number | undefined }) {
  const { label, points, limit: given } = props;
  const place = useRef<HTMLDivElement>(null);
  const highest = Math.max(...points.map(({ admitted, refused }) => admitted + refused));
  // A line far above would leave the bars no height.
  const isFar = given !== undefined && given > MAX_LIMIT_RATIO * highest;
  const limit = isFar ? undefined : given;
  const content = JSON.stringify([points, limit]);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    let plot: uPlot | undefined;
    const draw = () => {
      plot?.destroy();
      plot = new uPlot(optionsFor(element, points, limit), dataOf(points, limit), element);
    };
    draw();
    const resized = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    resized.observe(element);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', draw);
    return () => {
      resized.disconnect();
      dark.removeEventListener('change', draw);
      plot?.destroy();
    };
    // By content: the same numbers arrive again with every poll.
  }, [content]);

  const sum = (of: 'admitted' | 'refused') => points.reduce((total, point) => total + point[of], 0);
  const admitted = nameOfAdmitted(points);
  const summary = `${count(sum('admitted'))} ${admitted.toLowerCase()}, ${count(sum('refused'))} refused`;
  return html`<figure class="chart">
    ${isFar && html`<figcaption>↑ Limit: ${count(given)} per hour</figcaption>`}
    <div ref=${place} role="img" aria-label=${`${label}: ${summary}`}></div>
    <details><summary>As a table</summary>
      ${table({
        label,
        hasCsv: true,
        rows: points,
        empty: 'No data.',
        columns: [
          ['From', ({ start }) => time(start)],
          ...(points[0]?.requests === undefined
            ? []
            : [['Requests', ({ requests = 0 }: ChartPoint) => count(requests), 'number'] as const]),
          [admitted, ({ admitted }) => count(admitted), 'number'],
          ['Refused', ({ refused }) => count(refused), 'number'],
        ],
      })}
    </details>
  </figure>`;
}

function nameOfAdmitted([point]: readonly ChartPoint[]): string {
  return point?.requests === undefined ? 'Admitted' : 'Units admitted';
}

/** Refused requests are stacked on the admitted ones: the bars behind are as high as both together. */
function dataOf(points: readonly ChartPoint[], limit: number | undefined): uPlot.AlignedData {
  return [
    points.map(({ start }) => Date.parse(start) / 1000),
    points.map(({ admitted, refused }) => admitted + refused),
    points.map(({ admitted }) => admitted),
    points.map(() => limit ?? null),
  ];
}

function optionsFor(element: HTMLElement, points: readonly ChartPoint[], limit: number | undefined): uPlot.Options {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const font = `12px ${style.fontFamily}`;
  const paths = uPlot.paths.bars?.({ size: [BAR_SHARE, MAX_BAR_PX], align: 1, radius: 0.1 });
  const bars = (name: string, fill: string, numberAt: (point: ChartPoint) => number): uPlot.Series => ({
    label: name,
    fill,
    stroke: fill,
    width: 0,
    points: { show: false },
    ...(paths && { paths }),
    value: (_plot, _raw, _series, index) => {
      const point = index === null ? undefined : points[index];
      return count(point === undefined ? points.reduce((sum, each) => sum + numberAt(each), 0) : numberAt(point));
    },
  });
  const axis = {
    stroke: color('--chart-text'),
    font,
    ticks: { show: false },
    grid: { stroke: color('--chart-line'), width: 1 },
  };
  const step = stepOf(points);
  const highest = Math.max(limit ?? 0, 4, ...points.map(({ admitted, refused }) => admitted + refused));
  const limitLine: uPlot.Series = {
    label: 'Limit per hour',
    stroke: color('--chart-limit'),
    width: 1.5,
    dash: [6, 4],
    points: { show: false },
    value: () => count(limit ?? 0),
  };
  return {
    width: element.clientWidth,
    height: HEIGHT_PX,
    // The bar of the newest hour begins at its start, so the scale goes on to its end.
    scales: {
      x: { range: (_plot, min, max) => [min, max + step] },
      y: { range: [0, 1.1 * highest] },
    },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    axes: [
      { ...axis, size: 28, grid: { show: false }, values: (_plot, seconds) => axisTimes(seconds) },
      { ...axis, size: 48, incrs: INTEGER_STEPS, values: (_plot, values) => values.map(compact) },
    ],
    series: [
      {
        value: (_plot, seconds) =>
          seconds === null ? '' : `${localTime(seconds * 1000)} (${utcTime(seconds * 1000)})`,
      },
      bars('Refused', color('--chart-refused'), ({ refused }) => refused),
      bars(nameOfAdmitted(points), color('--chart-admitted'), ({ admitted }) => admitted),
      ...(limit === undefined ? [] : [limitLine]),
    ],
  };
}

const INTEGER_STEPS = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
const HOUR = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** Days where they begin, hours between. */
function axisTimes(seconds: readonly number[]): string[] {
  return seconds.map((second) => {
    const time = new Date(second * 1000);
    return (time.getHours() === 0 && time.getMinutes() === 0 ? DAY : HOUR).format(time);
  });
}

function stepOf(points: readonly ChartPoint[]): number {
  const [first, second] = points;
  return first && second ? (Date.parse(second.start) - Date.parse(first.start)) / 1000 : 3600;
}
