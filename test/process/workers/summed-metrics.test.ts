import { describe, expect, test } from 'vitest';
import { createMetrics, type Metrics } from '../../../src/observability/metrics.ts';
import { SummedMetrics } from '../../../src/process/workers/summed-metrics.ts';

interface Facts {
  readonly version?: string;
  readonly usage?: Readonly<Record<string, number>>;
  readonly upstreamUp?: boolean;
  readonly storeUp?: boolean;
}

function metricsOf({ version = '1', usage = {}, upstreamUp, storeUp = true }: Facts = {}): Metrics {
  return createMetrics({
    version,
    running: { hash: `hash-${version}`, loadedAtMs: 1000 },
    storeStatus: () => ({ up: storeUp, reached: true, wiped: false, empty: false, evicted: false, refusing: false }),
    upstreams: () => (upstreamUp === undefined ? [] : [{ backend: 'default', url: 'http://a', up: upstreamUp }]),
    highestUsage: () => Object.entries(usage).map(([customer, ratio]) => ({ customer, ratio })),
    maintenance: () => undefined,
    droppedLogLines: () => 1,
    defaultMetrics: true,
  });
}

const SAMPLE = {
  route: '/a',
  method: 'GET',
  status: 200,
  source: 'upstream',
  plan: 'p',
  durationMs: 20,
} as const;

function requests(metrics: Metrics, count: number): void {
  for (let i = 0; i < count; i++) metrics.request(SAMPLE);
}

/** The values of one metric by their labels. */
async function read(sums: SummedMetrics, own: Metrics, name: string): Promise<Record<string, number>> {
  const samples: Record<string, number> = {};
  for (const line of (await sums.text(await own.snapshot())).split('\n')) {
    const [, sampled, labels = '', value] = /^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (sampled === name) samples[labels] = Number(value);
  }
  return samples;
}

async function summed(workers: readonly Metrics[]): Promise<SummedMetrics> {
  const sums = new SummedMetrics();
  for (const worker of workers) sums.update(worker, await worker.snapshot());
  return sums;
}

const REQUESTS = 'tollgate_http_requests_total';

describe('the metrics of several workers', () => {
  test('counters and histograms are summed', async () => {
    const [own, a, b] = [metricsOf(), metricsOf(), metricsOf()];
    requests(a, 3);
    requests(b, 4);
    const sums = await summed([a, b]);
    expect(Object.values(await read(sums, own, REQUESTS))).toEqual([7]);
    expect(await read(sums, own, 'tollgate_request_duration_seconds_count')).toEqual({
      'route="/a",source="upstream"': 7,
    });
    const buckets = await read(sums, own, 'tollgate_request_duration_seconds_bucket');
    expect(buckets['le="0.025",route="/a",source="upstream"']).toBe(7);
    expect(buckets['le="0.01",route="/a",source="upstream"']).toBe(0);
    // Each of the three processes lost one.
    expect(await read(sums, own, 'tollgate_log_lines_dropped_total')).toEqual({ '': 3 });
  });

  test('what a worker counted stays when it has ended, and its successor adds to it', async () => {
    const [own, a, b, successor] = [metricsOf(), metricsOf(), metricsOf(), metricsOf()];
    for (const worker of [a, b]) {
      requests(worker, 5);
      worker.inflight(1);
    }
    const sums = await summed([a, b]);
    sums.workerExited(a);
    expect(Object.values(await read(sums, own, REQUESTS))).toEqual([10]);
    expect(await read(sums, own, 'tollgate_inflight_requests')).toEqual({ '': 1 });
    requests(successor, 2);
    sums.update(successor, await successor.snapshot());
    sums.workerExited(successor);
    sums.workerExited(b);
    expect(Object.values(await read(sums, own, REQUESTS))).toEqual([12]);
    expect(await read(sums, own, 'tollgate_inflight_requests')).toEqual({ '': 0 });
    expect(await read(sums, own, 'tollgate_request_duration_seconds_count')).toEqual({
      'route="/a",source="upstream"': 12,
    });
  });

  test('gauges are combined by what they mean', async () => {
    const own = metricsOf({ version: 'primary' });
    const a = metricsOf({ version: 'a', upstreamUp: true, usage: { x: 0.5, y: 0.2 } });
    const b = metricsOf({ version: 'b', upstreamUp: false, storeUp: false, usage: { x: 0.7 } });
    a.inflight(1);
    b.inflight(1);
    b.inflight(1);
    a.certificateUsed(5000);
    b.certificateUsed(4000);
    const sums = await summed([a, b]);
    expect(await read(sums, own, 'tollgate_inflight_requests')).toEqual({ '': 3 });
    expect(await read(sums, own, 'tollgate_store_up')).toEqual({ '': 0 });
    expect(await read(sums, own, 'tollgate_degraded')).toEqual({ '': 1 });
    expect(await read(sums, own, 'tollgate_upstream_up')).toEqual({ 'backend="default",upstream="http://a"': 0 });
    expect(await read(sums, own, 'tollgate_certificate_expiry_timestamp_seconds')).toEqual({ '': 4 });
    expect(await read(sums, own, 'tollgate_customer_usage_ratio')).toEqual({
      'customer="x"': 0.7,
      'customer="y"': 0.2,
    });
    expect(await read(sums, own, 'tollgate_config_info')).toEqual({ 'hash="hash-primary"': 1 });
    expect(Object.keys(await read(sums, own, 'process_start_time_seconds'))).toEqual(['']);
  });

  test('the ten highest customers of all workers are shown', async () => {
    const usage = (prefix: string, ratio: number) =>
      Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`${prefix}${i}`, ratio]));
    const own = metricsOf();
    const sums = await summed([metricsOf({ usage: usage('low', 0.1) }), metricsOf({ usage: usage('high', 0.9) })]);
    expect(Object.values(await read(sums, own, 'tollgate_customer_usage_ratio'))).toEqual(Array(10).fill(0.9));
  });
});
