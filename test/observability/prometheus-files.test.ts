/**
 * The names in the alerts, their test series and the dashboard are those of the gateway. Names are found by pattern:
 * whether an expression is PromQL, matches and groups is asked of the real Prometheus (npm run test:prometheus).
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { PROBLEMS } from '../../src/http/problems/table.ts';
import { METRICS, type MetricDefinition } from '../../src/observability/metric-definitions.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import {
  dashboardQueries,
  type Panel,
  readAlerts,
  readAlertTests,
  readDashboard,
  readTestSeries,
} from '../prometheus/files.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const DEFINITIONS: readonly [string, MetricDefinition][] = Object.entries(METRICS);
/** Labels from Prometheus, of a histogram's buckets, and from the configuration: any value is possible. */
const ANY_VALUE_LABELS = ['job', 'instance', 'le', 'upstream'];
const STATUSES = Array.from({ length: 500 }, (_, i) => String(100 + i));
const CONFIGURED_PLANS = Object.keys(parse(read('config/gateway.yaml')).plans);

/** Values of labels whose definitions do not list them. */
const OPEN_LABELS: Readonly<Record<string, readonly string[]>> = {
  code: STATUSES,
  problem: Object.keys(PROBLEMS),
  plan: [...CONFIGURED_PLANS, 'none', 'unknown'],
};

async function processMetricNames(): Promise<string[]> {
  const metrics = createMetrics({
    version: '1',
    running: { hash: 'x', loadedAtMs: 0 },
    storeStatus: () => ({ up: true, reached: true, wiped: false, empty: false, evicted: false, refusing: false }),
    highestUsage: () => [],
    upstreams: () => [],
    maintenance: () => undefined,
    droppedLogLines: () => 0,
    defaultMetrics: true,
  });
  return [...(await metrics.text()).matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
}

/** The gateway's own metrics that a query names, and the names that no metric has. */
function findMetrics(query: string, processMetrics: readonly string[]) {
  const names = new Set(query.match(/\b(?:tollgate|process|nodejs)_\w+/g));
  const found: MetricDefinition[] = [];
  const unknown: string[] = [];
  for (const name of names) {
    const base = name.replace(/_(bucket|sum|count)$/, '');
    const own = DEFINITIONS.find(([each, { type }]) => each === name || (type === 'histogram' && each === base));
    if (own) found.push(own[1]);
    else if (!processMetrics.includes(name)) unknown.push(name);
  }
  return { found, unknown };
}

function valuesOf({ labels }: MetricDefinition, label: string): readonly string[] {
  const { [label]: values = '' } = { ...labels, ...OPEN_LABELS };
  if (typeof values === 'string') return [...values.matchAll(/`([^`]+)`/g)].map(([, value = '']) => value);
  return Array.isArray(values) ? values : Object.keys(values);
}

/** Returns the metrics in a query that the gateway does not have, and the matchers that match none of its metrics. */
function findFaults(query: string, processMetrics: readonly string[]): string[] {
  const { found, unknown } = findMetrics(query, processMetrics);
  const faults = unknown.map((name) => `metric ${name}`);
  for (const [, label = '', value = ''] of query.matchAll(/(\w+)(?:=~|!~|!=|=)"([^"]*)"/g)) {
    if (ANY_VALUE_LABELS.includes(label)) continue;
    const values = found.filter(({ labels }) => label in labels).flatMap((metric) => valuesOf(metric, label));
    const impossible = value.split('|').filter((one) => !values.some((each) => new RegExp(`^(?:${one})$`).test(each)));
    faults.push(...impossible.map((one) => `${label}="${one}"`));
  }
  return faults;
}

describe('every metric, label and value exists that is named by', async () => {
  const processMetrics = await processMetricNames();

  it.each(readAlerts())('the alert $alert', ({ expr }) => {
    expect(findFaults(expr, processMetrics)).toEqual([]);
  });

  it.each(readTestSeries())('the test series %s, on which promtool proves the alerts', (series) => {
    expect(findFaults(series, processMetrics)).toEqual([]);
  });

  it.each(dashboardQueries('5m'))('the panel "$title"', ({ expr }) => {
    expect(findFaults(expr, processMetrics)).toEqual([]);
  });

  it.each([
    ['rate(tollgate_requests_total[5m])', 'metric tollgate_requests_total'],
    ['tollgate_store_up{op="reserve"}', 'op="reserve"'],
    ['tollgate_auth_total{result=~"valid|wrong"}', 'result="wrong"'],
    ['tollgate_http_requests_total{code=~"6.."}', 'code="6.."'],
  ])('a fault is found in %s', (query, fault) => {
    expect(findFaults(query, processMetrics)).toEqual([fault]);
  });
});

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

  it('says 0, or why there is none, in each panel without data', () => {
    for (const { title, fieldConfig } of charts) {
      expect(['0', 'no gateway', 'no TLS'], title).toContain(fieldConfig?.defaults?.noValue);
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
