/** What config/ brings for Prometheus and Grafana. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const PROMETHEUS_FOLDER = fileURLToPath(new URL('../../config/prometheus', import.meta.url));
const GRAFANA_FILE = new URL('../../config/grafana/tollgate.json', import.meta.url);

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface AlertTest {
  readonly alertname: string;
  readonly exp_alerts?: readonly object[];
}

interface Query {
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat: string;
  readonly datasource: unknown;
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly fieldConfig?: { readonly defaults?: { readonly noValue?: string } };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource?: unknown;
  readonly targets?: readonly Query[];
}

export interface Dashboard {
  readonly uid: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string; readonly query: unknown }[];
  };
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr?: string }[] };
}

function readYaml(name: string) {
  return parse(readFileSync(`${PROMETHEUS_FOLDER}/${name}`, 'utf8'));
}

export function readAlerts(): Alert[] {
  return (readYaml('alerts.yaml').groups as { rules: Alert[] }[]).flatMap(({ rules }) => rules);
}

interface TestCase {
  readonly alert_rule_test: readonly AlertTest[];
  readonly input_series: readonly { readonly series: string }[];
}

function readTestCases(): TestCase[] {
  return readYaml('alerts.test.yaml').tests;
}

/** Of all test cases of the alerts. */
export function readAlertTests(): AlertTest[] {
  return readTestCases().flatMap(({ alert_rule_test }) => alert_rule_test);
}

/** Returns each series, such as `up{job="tollgate"}`, that a test case of the alerts is given. */
export function readTestSeries(): string[] {
  const series = readTestCases().flatMap(({ input_series }) => input_series.map((each) => each.series));
  return [...new Set(series)];
}

export function readDashboard(): Dashboard {
  return JSON.parse(readFileSync(GRAFANA_FILE, 'utf8'));
}

/** Every query of the dashboard, the annotations' too, as Grafana would send it for all instances. */
export function dashboardQueries(rateInterval: string): { title: string; expr: string; legend: string }[] {
  const { panels, annotations } = readDashboard();
  const fill = (expr: string) =>
    expr.replaceAll('$__rate_interval', rateInterval).replaceAll('$job', '.*').replaceAll('$instance', '.*');
  const queries = panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({ title, expr: fill(expr), legend: legendFormat })),
  );
  const marks = annotations.list.flatMap(({ name, expr }) =>
    expr ? [{ title: name, expr: fill(expr), legend: '' }] : [],
  );
  return [...queries, ...marks];
}
