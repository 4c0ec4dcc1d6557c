import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { agentOfTest, PATIENCE, request, startWithWorkers } from '../../process/workers/support.ts';
import { readMetric } from '../../support/metrics.ts';
import { startCollector } from './collector.ts';

const SOURCES = new URL('../../../src/', import.meta.url);

/** Resolves to the packages of OpenTelemetry that a new process loads with a file below src/. */
async function packagesLoadedWith(file: string): Promise<string[]> {
  const script = `
    import { registerHooks } from 'node:module';
    registerHooks({
      resolve(specifier, context, next) {
        if (specifier.startsWith('@opentelemetry/')) console.log(specifier);
        return next(specifier, context);
      },
    });
    await import(${JSON.stringify(new URL(file, SOURCES).href)});`;
  const args = ['--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return stdout.split('\n').filter((line) => line !== '');
}

it("a gateway loads OpenTelemetry's packages only for traces", async () => {
  // prom-client imports that one itself.
  expect(await packagesLoadedWith('process/gateway.ts')).toEqual(['@opentelemetry/api']);
  expect(await packagesLoadedWith('observability/tracing/tracer.ts')).toContain('@opentelemetry/sdk-trace');
});

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
