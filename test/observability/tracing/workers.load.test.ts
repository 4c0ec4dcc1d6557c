/** Spans of a gateway with two workers. */
import { expect, it } from 'vitest';
import { agentOfTest, PATIENCE, request, startWithWorkers } from '../../process/workers/support.ts';
import { readMetric } from '../../support/metrics.ts';
import { startCollector } from './collector.ts';

it('each worker exports its own spans, and exports the last ones before it ends', async () => {
  const collector = await startCollector();
  const { gateway, key } = await startWithWorkers({
    config: { tracing: { endpoint: collector.endpoint, sample_ratio: 1, customer: true } },
  });
  // A connection for each request, so that both workers have their part.
  const agent = agentOfTest({ keepAlive: false });
  for (let i = 0; i < 20; i++) expect((await request(agent, gateway.public, key)).status).toBe(200);
  await expect.poll(() => readMetric(gateway, 'tollgate_trace_spans_dropped_total'), PATIENCE).toEqual({ '': 0 });
  gateway.signal('SIGTERM');
  await gateway.finished;
  expect(collector.spans).toHaveLength(40);
  expect(new Set(collector.spans.map(({ resource }) => resource['service.instance.id'])).size).toBe(2);
});
