import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { METRICS, type MetricDefinition } from '../../src/observability/metric-definitions.ts';
import {
  createMetrics,
  type Metrics,
  type MetricsOptions,
  type RequestSample,
} from '../../src/observability/metrics.ts';

const STORE_UP = { up: true, reached: true, wiped: false, empty: false, evicted: false, refusing: false };

function openMetrics(defaultMetrics = false, measured: Partial<MetricsOptions> = {}): Metrics {
  return createMetrics({
    version: '1.2.3',
    running: { hash: 'abc123', loadedAtMs: 1_700_000_000_500 },
    storeStatus: () => STORE_UP,
    upstreams: () => [],
    highestUsage: () => [],
    maintenance: () => undefined,
    droppedLogLines: () => 0,
    defaultMetrics,
    ...measured,
  });
}

const FORWARDED: RequestSample = {
  route: '/api/v1/conversations',
  method: 'GET',
  status: 200,
  source: 'upstream',
  plan: 'starter',
  durationMs: 30.1,
  backend: 'default',
  upstreamMs: 30,
};

/** The sample lines whose name is exactly this. */
async function samples(metrics: Metrics, name: string): Promise<string[]> {
  const lines = (await metrics.text()).split('\n');
  return lines.filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
}

describe('a forwarded request', () => {
  it('is counted by route, method, code, source and plan', async () => {
    const metrics = openMetrics();
    metrics.request(FORWARDED);
    metrics.request(FORWARDED);
    metrics.request({ ...FORWARDED, method: 'HEAD', status: 304 });
    expect(await samples(metrics, 'tollgate_http_requests_total')).toEqual([
      'tollgate_http_requests_total{route="/api/v1/conversations",method="GET",code="200",source="upstream",plan="starter"} 2',
      'tollgate_http_requests_total{route="/api/v1/conversations",method="HEAD",code="304",source="upstream",plan="starter"} 1',
    ]);
    expect(await samples(metrics, 'tollgate_refusals_total')).toEqual([]);
  });

  it('has its duration split into the part of the backend and the overhead', async () => {
    const metrics = openMetrics();
    metrics.request(FORWARDED);
    const buckets = await samples(metrics, 'tollgate_overhead_seconds_bucket');
    expect(buckets).toContain('tollgate_overhead_seconds_bucket{le="0.00005",source="upstream"} 0');
    expect(buckets).toContain('tollgate_overhead_seconds_bucket{le="0.00015",source="upstream"} 1');
    expect(await samples(metrics, 'tollgate_upstream_duration_seconds_sum')).toEqual([
      'tollgate_upstream_duration_seconds_sum{backend="default",route="/api/v1/conversations"} 0.03',
    ]);
    expect(await samples(metrics, 'tollgate_request_duration_seconds_count')).toEqual([
      'tollgate_request_duration_seconds_count{route="/api/v1/conversations",source="upstream"} 1',
    ]);
  });

  it('never has an overhead below zero', async () => {
    const metrics = openMetrics();
    metrics.request({ ...FORWARDED, upstreamMs: 1000 });
    expect(await samples(metrics, 'tollgate_overhead_seconds_sum')).toEqual([
      'tollgate_overhead_seconds_sum{source="upstream"} 0',
    ]);
  });
});

it('a method is counted by name only where the route has it, so that clients cannot make up label values', async () => {
  const metrics = openMetrics();
  const refused = { ...FORWARDED, source: 'gateway', method: 'DELETE' } as const;
  metrics.request({ ...FORWARDED, method: 'POST', status: 201 });
  metrics.request({ ...refused, method: 'POST', status: 401, problem: 'missing_key' });
  metrics.request({ ...refused, status: 405, problem: 'method_not_allowed' });
  metrics.request({ ...refused, route: 'none', status: 404, problem: 'not_found' });
  const labels = (await samples(metrics, 'tollgate_http_requests_total')).map((line) =>
    /method="(\w+)",code="\d+"/.exec(line),
  );
  expect(labels.map((found) => found?.[0])).toEqual([
    'method="POST",code="201"',
    'method="POST",code="401"',
    'method="other",code="405"',
    'method="other",code="404"',
  ]);
});

describe('a refused request', () => {
  it('is counted by problem and plan as well, and all of it is overhead', async () => {
    const metrics = openMetrics();
    metrics.request({
      route: 'none',
      method: 'BREW',
      status: 404,
      source: 'gateway',
      plan: 'none',
      problem: 'not_found',
      durationMs: 500,
    });
    expect(await samples(metrics, 'tollgate_http_requests_total')).toEqual([
      'tollgate_http_requests_total{route="none",method="other",code="404",source="gateway",plan="none"} 1',
    ]);
    expect(await samples(metrics, 'tollgate_refusals_total')).toEqual([
      'tollgate_refusals_total{problem="not_found",plan="none"} 1',
    ]);
    expect(await samples(metrics, 'tollgate_upstream_duration_seconds_count')).toEqual([]);
    expect(await samples(metrics, 'tollgate_overhead_seconds_sum')).toEqual([
      'tollgate_overhead_seconds_sum{source="gateway"} 0.5',
    ]);
  });

  it('that never became a request is counted without a duration', async () => {
    const metrics = openMetrics();
    const { durationMs: _none, ...sample } = FORWARDED;
    metrics.request({ ...sample, route: 'none', method: '', status: 400, source: 'gateway', problem: 'bad_request' });
    expect(await samples(metrics, 'tollgate_http_requests_total')).toHaveLength(1);
    expect(await samples(metrics, 'tollgate_request_duration_seconds_count')).toEqual([]);
  });
});

it('every result of authentication is there from the start, with 0', async () => {
  const metrics = openMetrics();
  metrics.auth('revoked');
  const lines = await samples(metrics, 'tollgate_auth_total');
  expect(lines).toHaveLength(10);
  expect(lines).toContain('tollgate_auth_total{result="valid"} 0');
  expect(lines).toContain('tollgate_auth_total{result="revoked"} 1');
});

it('counters are exact over any mix of observations and scrapes', async () => {
  const step = fc.oneof(
    fc.record({ plan: fc.constantFrom('a', 'b'), outcome: fc.constantFrom('allowed' as const, 'denied' as const) }),
    fc.constant('scrape' as const),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step), async (steps) => {
      const metrics = openMetrics();
      const expected = new Map<string, number>();
      for (const next of steps) {
        if (next === 'scrape') {
          await metrics.text();
          continue;
        }
        metrics.quotaDecision(next.plan, 'hourly', next.outcome, 'store');
        const labels = `{plan="${next.plan}",policy="hourly",outcome="${next.outcome}",mode="store"}`;
        expected.set(labels, (expected.get(labels) ?? 0) + 1);
      }
      const lines = [...expected].map(([labels, count]) => `tollgate_quota_decisions_total${labels} ${count}`);
      expect((await samples(metrics, 'tollgate_quota_decisions_total')).sort()).toEqual(lines.sort());
    }),
    { numRuns: 30 },
  );
});

it('requests in flight go up and down', async () => {
  const metrics = openMetrics();
  for (const change of [1, 1, -1] as const) metrics.inflight(change);
  expect(await samples(metrics, 'tollgate_inflight_requests')).toEqual(['tollgate_inflight_requests 1']);
});

describe('the store', () => {
  it('has its calls counted and timed by operation, failed ones too', async () => {
    const metrics = openMetrics();
    metrics.storeCalled('reserve', 0.25);
    metrics.storeCalled('reserve', 0.5);
    expect(await samples(metrics, 'tollgate_store_calls_total')).toEqual([
      'tollgate_store_calls_total{op="reserve"} 2',
    ]);
    expect(await samples(metrics, 'tollgate_store_command_duration_seconds_sum')).toEqual([
      'tollgate_store_command_duration_seconds_sum{op="reserve"} 0.75',
    ]);
  });

  it('is down but not missed before it was reached, and makes the gateway degraded when it is lost', async () => {
    let storeStatus = STORE_UP;
    const metrics = openMetrics(false, { storeStatus: () => storeStatus });
    const state = async () => [
      ...(await samples(metrics, 'tollgate_store_up')),
      ...(await samples(metrics, 'tollgate_degraded')),
    ];
    storeStatus = { ...STORE_UP, up: false, reached: false };
    expect(await state()).toEqual(['tollgate_store_up 0', 'tollgate_degraded 0']);
    storeStatus = STORE_UP;
    expect(await state()).toEqual(['tollgate_store_up 1', 'tollgate_degraded 0']);
    storeStatus = { ...STORE_UP, up: false };
    expect(await state()).toEqual(['tollgate_store_up 0', 'tollgate_degraded 1']);
  });

  it.each(['wiped', 'empty', 'evicted', 'refusing'])('makes the gateway degraded while it is %s', async (fact) => {
    const metrics = openMetrics(false, { storeStatus: () => ({ ...STORE_UP, [fact]: true }) });
    expect(await samples(metrics, 'tollgate_degraded')).toEqual(['tollgate_degraded 1']);
    expect(await samples(metrics, 'tollgate_store_refusing')).toEqual([
      `tollgate_store_refusing ${Number(fact === 'refusing')}`,
    ]);
  });
});

it('the customers that have used most of their limits are shown, and no longer than they are among them', async () => {
  let highest = [
    { customer: 'acme', ratio: 0.95 },
    { customer: 'small@example.org', ratio: 0.5 },
  ];
  const asked: number[] = [];
  const highestUsage = (count: number) => {
    asked.push(count);
    return highest;
  };
  const metrics = openMetrics(false, { highestUsage });
  expect(await samples(metrics, 'tollgate_customer_usage_ratio')).toEqual([
    'tollgate_customer_usage_ratio{customer="acme"} 0.95',
    'tollgate_customer_usage_ratio{customer="small@example.org"} 0.5',
  ]);
  highest = [{ customer: 'other', ratio: 1 }];
  expect(await samples(metrics, 'tollgate_customer_usage_ratio')).toEqual([
    'tollgate_customer_usage_ratio{customer="other"} 1',
  ]);
  expect(asked).toEqual([10, 10]);
});

it('lost log lines are counted, from 0', async () => {
  let dropped = 0;
  const metrics = openMetrics(false, { droppedLogLines: () => dropped });
  expect(await samples(metrics, 'tollgate_log_lines_dropped_total')).toEqual(['tollgate_log_lines_dropped_total 0']);
  dropped = 7;
  expect(await samples(metrics, 'tollgate_log_lines_dropped_total')).toEqual(['tollgate_log_lines_dropped_total 7']);
});

it('what runs, with which configuration since when, can be read', async () => {
  const metrics = openMetrics();
  expect(await samples(metrics, 'tollgate_config_info')).toEqual(['tollgate_config_info{hash="abc123"} 1']);
  expect(await samples(metrics, 'tollgate_build_info')).toEqual([
    `tollgate_build_info{version="1.2.3",node="${process.version}"} 1`,
  ]);
  expect(await samples(metrics, 'tollgate_config_last_success_timestamp_seconds')).toEqual([
    'tollgate_config_last_success_timestamp_seconds 1700000000.5',
  ]);
});

it('a reload is counted by its result, and what runs afterwards is shown in place of what ran before', async () => {
  const metrics = openMetrics();
  expect(await samples(metrics, 'tollgate_config_reloads_total')).toContain(
    'tollgate_config_reloads_total{result="invalid"} 0',
  );
  metrics.configReloaded('invalid', { hash: 'abc123', loadedAtMs: 1_700_000_000_500 });
  expect(await samples(metrics, 'tollgate_config_reload_failing')).toEqual(['tollgate_config_reload_failing 1']);
  metrics.configReloaded('applied', { hash: 'def456', loadedAtMs: 1_700_000_001_000 });
  expect(await samples(metrics, 'tollgate_config_reload_failing')).toEqual(['tollgate_config_reload_failing 0']);
  expect(await samples(metrics, 'tollgate_config_info')).toEqual(['tollgate_config_info{hash="def456"} 1']);
  expect(await samples(metrics, 'tollgate_config_last_success_timestamp_seconds')).toEqual([
    'tollgate_config_last_success_timestamp_seconds 1700000001',
  ]);
});

it('the exposition has exactly the metrics of the table, with its types and helps', async () => {
  const header = (await openMetrics().text()).split('\n').filter((line) => line.startsWith('# '));
  const table: [string, MetricDefinition][] = Object.entries(METRICS);
  const expected = table.flatMap(([name, { type, help }]) => [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`]);
  expect(header.sort()).toEqual(expected.sort());
});

it('process and event-loop metrics are there when asked for, and only then', async () => {
  expect(await openMetrics(true).text()).toContain('nodejs_eventloop_lag_p99_seconds');
  expect(await openMetrics(false).text()).not.toContain('nodejs_');
});

it('two sets of metrics share nothing', async () => {
  const [one, other] = [openMetrics(), openMetrics()];
  one.request(FORWARDED);
  expect(await samples(other, 'tollgate_http_requests_total')).toEqual([]);
});

it.runIf(process.platform === 'linux')('every metric of the process is in docs/metrics.md', async () => {
  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  const names = [...(await openMetrics(true).text()).matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(30);
  const lag = /^nodejs_eventloop_lag(_\w+_)seconds$/;
  expect(names.filter((name) => !page.includes(`\`${lag.exec(name)?.[1] ?? name}\``))).toEqual([]);
});

it.runIf(process.platform === 'linux')('open files are counted', async () => {
  const [line = ''] = await samples(openMetrics(true), 'process_open_fds');
  const count = Number(line.split(' ')[1]);
  // What counts them is one of them while it does.
  expect(Math.abs(count - readdirSync('/proc/self/fd').length)).toBeLessThan(5);
});
