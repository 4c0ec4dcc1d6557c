/** A gateway with two workers under load: no request fails but those that a killed worker had, and nothing is lost. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { callAdmin } from '../../support/admin.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { readMetric } from '../../support/metrics.ts';
import {
  agentOfTest,
  type Outcome,
  PATIENCE,
  REQUESTS,
  request,
  startWithWorkers,
  sum,
  tally,
  workersOf,
} from './support.ts';

it('a worker that is killed under load is replaced, the other one continues, and no counter decreases', async () => {
  const { gateway, key } = await startWithWorkers();
  const outcomes: Outcome[] = [];
  let stopped = false;
  onTestFinished(() => {
    stopped = true;
  });
  const caller = async () => {
    // A connection for each request, so that both workers have their part.
    const agent = agentOfTest({ keepAlive: false });
    while (!stopped) {
      outcomes.push(await request(agent, gateway.public, key));
      await sleep(10);
    }
  };
  const callers = Promise.all(Array.from({ length: 4 }, caller));
  await expect.poll(() => outcomes.length, PATIENCE).toBeGreaterThan(50);

  const scrapes = [sum(await readMetric(gateway, REQUESTS))];
  const [victim, survivor] = await workersOf(gateway);
  process.kill(victim?.pid ?? 0, 'SIGKILL');
  await expect
    .poll(async () => {
      scrapes.push(sum(await readMetric(gateway, REQUESTS)));
      return await workersOf(gateway);
    }, PATIENCE)
    .toMatchObject([{ ready: true, restarts: 1 }, survivor]);
  const served = outcomes.length;
  await expect.poll(() => outcomes.length, PATIENCE).toBeGreaterThan(served + 50);
  stopped = true;
  await callers;
  scrapes.push(sum(await readMetric(gateway, REQUESTS)));

  expect(scrapes).toEqual(scrapes.toSorted((a, b) => a - b));
  expect(await readMetric(gateway, 'tollgate_worker_restarts_total')).toEqual({ '': 1 });
  expect(gateway.output()).toContain('a worker exited unexpectedly');
  const { 200: good = 0, none = 0, ...others } = tally(outcomes);
  expect(others).toEqual({});
  expect(good).toBeGreaterThan(served);
  // Those that the killed one had in its hands.
  expect(none).toBeLessThanOrEqual(4);
});

it('SIGTERM under load fails no request, and leased units are refunded', async () => {
  const { gateway, backend, key, storeUrl } = await startWithWorkers({
    answer: (_req, res) => void setTimeout(() => res.end('{}'), 5),
    config: { shutdown: { not_ready_ms: 3000, drain_ms: 15_000 } },
  });
  const outcomes: Outcome[] = [];
  // Sends one request after the other until its connection is ended by the gateway.
  const caller = async () => {
    const agent = agentOfTest({ keepAlive: true });
    for (;;) {
      const outcome = await request(agent, gateway.public, key);
      outcomes.push(outcome);
      if (outcome.closes) return;
    }
  };
  const callers = Promise.all(Array.from({ length: 10 }, caller));
  await expect.poll(() => outcomes.length, PATIENCE).toBeGreaterThan(100);
  gateway.signal('SIGTERM');
  const { status, stderr, stdout } = await gateway.finished;
  await callers;
  expect(tally(outcomes)).toEqual({ 200: outcomes.length });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain('"msg":"tollgate stopped"');
  // Lines of several processes, none of which has another one in it.
  for (const line of stdout.trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
  expect(backend.seen.length).toBe(outcomes.length);

  const other = await startTestGateway({ storeUrl, upstreamUrl: backend.url });
  onTestFinished(() => other.close());
  expect((await callAdmin(other, '/admin/v1/customers/acme/usage')).body.used).toBe(outcomes.length);
});
