import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { METRIC_DEFINITIONS, type MetricDefinition } from '../../src/observability/metric-definitions.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { PROBLEMS } from '../../src/problems/table.ts';
import { dashboardQueries, type Panel, readAlerts, readAlertTests, readDashboard } from '../prometheus/files.ts';
import { readPromql, type Selector } from '../prometheus/promql.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const DEFINITIONS: readonly MetricDefinition[] = Object.values(METRIC_DEFINITIONS);
/** Given by Prometheus to everything that it scrapes. */
const TARGET_LABELS = ['job', 'instance'];
const STATUSES = Array.from({ length: 500 }, (_, i) => String(100 + i));
const CONFIGURED_PLANS = Object.keys(parse(read('config/gateway.yaml')).plans);

/** Possible values of labels whose definitions do not list them. */
const OPEN_LABELS: Readonly<Record<string, readonly string[]>> = {
  code: STATUSES,
  problem: Object.keys(PROBLEMS),
  plan: [...CONFIGURED_PLANS, 'none', 'unknown'],
};

async function processMetricNames(): Promise<string[]> {
  const metrics = createMetrics({
    version: '1',
    configHash: 'x',
    configLoadedAtMs: 0,
    storeIsDoubtful: () => false,
    highestUsage: () => [],
    upstreams: () => [],
    droppedLogLines: () => 0,
    defaultMetrics: true,
  });
  return [...(await metrics.text()).matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
}

function definitionOf(metric: string): MetricDefinition | undefined {
  const base = metric.replace(/_(bucket|sum|count)$/, '');
  return DEFINITIONS.find(({ name, type }) => name === metric || (type === 'histogram' && name === base));
}

function labelsOf(metric: string): string[] {
  const own = Object.keys(definitionOf(metric)?.labels ?? {});
  return [...own, ...TARGET_LABELS, ...(metric.endsWith('_bucket') ? ['le'] : [])];
}

function valuesOf(metric: string, label: string): readonly string[] {
  const text = definitionOf(metric)?.labels[label] ?? '';
  return OPEN_LABELS[label] ?? [...text.matchAll(/`([^`]+)`/g)].map(([, value = '']) => value);
}

/** What a selector names that the gateway does not have. */
function faultsOf({ metric, matchers }: Selector, processMetrics: readonly string[]): string[] {
  if (metric === 'up') return [];
  if (definitionOf(metric) === undefined && !processMetrics.includes(metric)) return [`metric ${metric}`];
  return matchers.flatMap(({ label, operator, value }) => {
    if (TARGET_LABELS.includes(label)) return [];
    if (!labelsOf(metric).includes(label)) return [`label ${label} of ${metric}`];
    const wanted = operator.endsWith('~') ? value.split('|') : [value];
    const possible = valuesOf(metric, label);
    const missing = wanted.filter((each) => !possible.some((one) => new RegExp(`^(?:${each})$`).test(one)));
    return missing.map((each) => `value ${each} of ${metric}'s ${label}`);
  });
}

function faultsOfQuery(expr: string, shown: string, processMetrics: readonly string[]): string[] {
  const { selectors, groupings } = readPromql(expr);
  const faults = selectors.flatMap((selector) => faultsOf(selector, processMetrics));
  for (const grouping of groupings) {
    for (const { metric } of grouping.selectors) {
      const unknown = grouping.labels.filter((label) => !labelsOf(metric).includes(label));
      faults.push(...unknown.map((label) => `label ${label} of ${metric}, grouped by`));
    }
  }
  const known = selectors.flatMap(({ metric }) => labelsOf(metric));
  const shownLabels = [...shown.matchAll(/(?:\$labels\.|\{\{)(\w+)/g)].map(([, label = '']) => label);
  return [...faults, ...shownLabels.filter((label) => !known.includes(label)).map((label) => `label ${label}, shown`)];
}

describe('every query of', async () => {
  const processMetrics = await processMetricNames();

  it.each(readAlerts())('the alert $alert names metrics, labels and values of the gateway only', (rule) => {
    expect(faultsOfQuery(rule.expr, rule.annotations.summary ?? '', processMetrics)).toEqual([]);
  });

  it.each(dashboardQueries('5m'))(
    'the panel "$title" names metrics, labels and values of the gateway only',
    (query) => {
      expect(faultsOfQuery(query.expr, query.legend, processMetrics)).toEqual([]);
    },
  );

  it.each([
    ['a metric', 'rate(tollgate_requests_total[5m])', 'metric tollgate_requests_total'],
    ['a label', 'tollgate_store_up{op="reserve"}', 'label op of tollgate_store_up'],
    ['a value', 'tollgate_auth_total{result=~"valid|wrong"}', "value wrong of tollgate_auth_total's result"],
    ['a status', 'tollgate_http_requests_total{code=~"6.."}', "value 6.. of tollgate_http_requests_total's code"],
    [
      'a label that is grouped by',
      'sum by (plan) (rate(tollgate_auth_total[5m]))',
      'label plan of tollgate_auth_total, grouped by',
    ],
  ])('such files would be found out by %s that there is not', (_what, expr, fault) => {
    expect(faultsOfQuery(expr, '', processMetrics)).toEqual([fault]);
  });
});

it.each([
  'foo bar(',
  'sum by (1) (up)',
  'up{job}',
  'up{job="a"',
  'up[$interval]',
  'frobnicate(up)',
  '{job="a"}',
  'up)',
])('what is not PromQL is an error: %s', (expr) => expect(() => readPromql(expr)).toThrow());

describe('alerts', () => {
  it.each(readAlerts())('$alert say how bad it is, what it is, and where to read what to do', (rule) => {
    expect(['critical', 'warning']).toContain(rule.labels.severity);
    expect(rule.annotations.summary).toBeTruthy();
    expect(rule.annotations.runbook_url).toBe(`docs/operations.md#${rule.alert.toLowerCase()}`);
  });

  it.each(readAlerts())('$alert is tested for firing and for silence', ({ alert }) => {
    const cases = readAlertTests().filter(({ alertname }) => alertname === alert);
    expect(cases.some(({ exp_alerts = [] }) => exp_alerts.length > 0)).toBe(true);
    expect(cases.some(({ exp_alerts = [] }) => exp_alerts.length === 0)).toBe(true);
  });
});

describe('the dashboard', () => {
  const { panels, templating, schemaVersion } = readDashboard();
  const charts = panels.filter(({ type }) => type !== 'row');

  it('asks whichever Prometheus is chosen at its top', () => {
    expect(schemaVersion).toBeGreaterThanOrEqual(41);
    expect(templating.list[0]).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' });
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is Grafana's placeholder
    const chosen = { type: 'prometheus', uid: '${datasource}' };
    for (const { datasource, targets = [] } of charts) {
      expect(datasource).toEqual(chosen);
      for (const target of targets) expect(target.datasource).toEqual(chosen);
    }
  });

  it('has panels that can be told apart and do not lie on each other', () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(charts.map(({ title }) => title)).size).toBe(charts.length);
    for (const { title, targets = [], gridPos } of charts) {
      expect(targets.length, title).toBeGreaterThan(0);
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
    }
    const overlap = ({ gridPos: a }: Panel, { gridPos: b }: Panel) =>
      a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
    const pairs = panels.flatMap((one, i) => panels.slice(i + 1).filter((other) => overlap(one, other)));
    expect(pairs).toEqual([]);
  });
});
