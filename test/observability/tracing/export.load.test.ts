import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { freePort } from '../../../bench/free-port.ts';
import { Tracing } from '../../../src/observability/tracing/tracing.ts';
import { bearer } from '../../support/admin.ts';
import { awakeMs } from '../../support/awake-clock.ts';
import type { TestGateway } from '../../support/gateway.ts';
import { readMetric } from '../../support/metrics.ts';
import { startSystem } from '../../support/system.ts';
import { startCollector } from './collector.ts';

async function droppedSpans(gateway: TestGateway): Promise<number | undefined> {
  return (await readMetric(gateway, 'tollgate_trace_spans_dropped_total'))[''];
}

const send = async (gateway: TestGateway, key: string) =>
  (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status;

const warnings = ({ logs }: TestGateway) => logs.filter(({ msg }) => /spans are lost/.test(String(msg)));

async function reload(gateway: TestGateway): Promise<void> {
  // Unchanged: the watch of the file was faster.
  expect((await gateway.reload('signal')).result).toMatch(/^(applied|unchanged)$/);
}

describe('spans', () => {
  it('are exported within seconds, several requests in one export', async () => {
    const collector = await startCollector();
    const config = { tracing: { endpoint: collector.endpoint, sample_ratio: 1 } };
    const { gateway, key } = await startSystem({ config });
    await Promise.all(Array.from({ length: 20 }, () => send(gateway, key)));
    await expect.poll(() => collector.spans.length, { timeout: 30_000 }).toBe(40);
    expect(collector.exports).toBeLessThan(10);
    expect(await droppedSpans(gateway)).toBe(0);
  });

  it('are exported with the headers of headers_file, which no log line shows', async () => {
    const collector = await startCollector();
    const { gateway, key } = await startSystem();
    await writeFile(
      join(dirname(gateway.file), 'collector'),
      'Authorization: Bearer of-the-collector\n\nX-Scope: a b \n',
    );
    const tracing = { endpoint: collector.endpoint, sample_ratio: 1, headers_file: 'collector' };
    await writeFile(gateway.file, stringify({ ...gateway.sections, tracing }));
    await reload(gateway);
    await send(gateway, key);
    await gateway.close();
    expect(collector.headers[0]).toMatchObject({ authorization: 'Bearer of-the-collector', 'x-scope': 'a b' });
    expect(JSON.stringify(gateway.logs)).not.toContain('of-the-collector');
  });

  it('of requests in progress at a shutdown are exported before its end', async () => {
    const collector = await startCollector();
    const config = { tracing: { endpoint: collector.endpoint, sample_ratio: 1 } };
    const held = Promise.withResolvers<() => void>();
    const answer: RequestListener = (_req, res) => held.resolve(() => res.end('{}'));
    const { gateway, key } = await startSystem({ config, answer });
    const status = send(gateway, key);
    const release = await held.promise;
    const closed = gateway.close();
    release();
    expect(await status).toBe(200);
    await closed;
    expect(collector.spans).toHaveLength(2);
    expect(warnings(gateway)).toEqual([]);
  });
});

describe('a collector', () => {
  const connections: Socket[] = [];
  it.each<[string, () => Promise<string>]>([
    ['that is away', async () => `http://127.0.0.1:${await freePort()}/v1/traces`],
    [
      'that never responds',
      async () => {
        const server = createServer((socket) => void connections.push(socket.on('error', () => {})));
        server.listen(0, '127.0.0.1');
        await once(server, 'listening');
        onTestFinished(() => {
          for (const socket of connections) socket.destroy();
          server.close();
        });
        return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
      },
    ],
    ['that refuses with 403', async () => (await startCollector((_req, res) => res.writeHead(403).end())).endpoint],
    ['that fails with 503', async () => (await startCollector((_req, res) => res.writeHead(503).end())).endpoint],
  ])('%s affects no request and delays a shutdown little; its spans are counted and logged', async (_case, open) => {
    const config = { tracing: { endpoint: await open(), sample_ratio: 1 }, shutdown: { drain_ms: 500 } };
    const { gateway, key } = await startSystem({ config });
    const statuses = await Promise.all(Array.from({ length: 10 }, () => send(gateway, key)));
    expect(statuses).toEqual(Array(10).fill(200));
    const startedAtMs = awakeMs();
    await gateway.close();
    expect(awakeMs() - startedAtMs).toBeLessThan(5000);
    expect(warnings(gateway)).toMatchObject([{ level: 'warn', spans: 20, reason: expect.any(String) }]);
  });

  it('that refuses spans is warned of once a minute, with the number of spans since', async () => {
    const collector = await startCollector((_req, res) => res.writeHead(400).end());
    const clock = { at: 0, nowMs: () => Date.now(), monotonicMs: () => clock.at };
    const lines: { spans: number }[] = [];
    let dropped = 0;
    const tracing = new Tracing({
      version: '1.2.3',
      instanceId: 'i',
      spansDropped: (spans) => {
        dropped += spans;
      },
      logger: { warn: (line: { spans: number }) => void lines.push(line) } as never,
      clock,
      random: Math.random,
    });
    const endpoint = collector.endpoint;
    await tracing.apply({ endpoint, exportHeaders: {}, sampleRatio: 1, trustParent: false, customer: false });
    const trace = () => {
      const req = { headers: {}, method: 'GET', httpVersion: '1.1', rawHeaders: [], socket: {} } as never;
      const traced = tracing.sample(
        { req, method: 'GET', client: { proto: 'http' }, route: 'none' },
        { has: () => false },
      );
      const names = { requestId: 'r', method: 'GET', route: 'none', plan: 'none', source: 'gateway' } as const;
      traced?.end({ ...names, status: 200, clientAddress: '', traceId: '' }, undefined);
    };
    for (const [atMs, total] of [
      [0, 1],
      [59_999, 2],
      [60_000, 3],
    ] as const) {
      clock.at = atMs;
      trace();
      await expect.poll(() => dropped, { timeout: 30_000 }).toBe(total);
    }
    expect(lines.map(({ spans }) => spans)).toEqual([1, 2]);
    // More than may wait: the rest is dropped at once.
    for (let i = 0; i < 5000; i++) trace();
    expect(dropped).toBeGreaterThanOrEqual(3 + 5000 - 4096);
    await tracing.close(10_000);
    expect(dropped).toBe(3 + 5000);
  });
});

describe('a reload', () => {
  it('turns traces on, changes their ratio and their collector, and turns them off', async () => {
    const [first, second] = [await startCollector(), await startCollector()];
    const { gateway, key } = await startSystem();
    const apply = async (tracing?: object) => {
      await writeFile(gateway.file, stringify({ ...gateway.sections, ...(tracing && { tracing }) }));
      await reload(gateway);
    };
    const counts = () => [first.spans.length, second.spans.length];
    await send(gateway, key);
    await apply({ endpoint: first.endpoint, sample_ratio: 1 });
    await send(gateway, key);
    await apply({ endpoint: first.endpoint, sample_ratio: 0 });
    await send(gateway, key);
    await apply({ endpoint: first.endpoint, sample_ratio: 1 });
    await send(gateway, key);
    await apply({ endpoint: second.endpoint, sample_ratio: 1 });
    await send(gateway, key);
    await expect.poll(counts, { timeout: 30_000 }).toEqual([4, 2]);
    await apply();
    await send(gateway, key);
    expect(await droppedSpans(gateway)).toBe(0);
    await gateway.close();
    expect(counts()).toEqual([4, 2]);
  });
});
