/** What a deployment does: behind a load balancer that watches /readyz, one gateway after the other is replaced. */
import { setTimeout } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { callAdmin } from '../../support/admin.ts';
import { startBalancer } from '../../support/balancer.ts';
import { startProgram } from '../../support/process.ts';
import { agentOfTest, type Outcome, PATIENCE, request, startWithWorkers, tally } from './support.ts';

it('a rolling restart of two gateways under load fails no request, and leaves no unit behind', async () => {
  // Ten times as long as the balancer takes to notice: the machine may be busy.
  const config = { shutdown: { not_ready_ms: 4000, drain_ms: 15_000 } };
  const { gateway: first, backend, key, file } = await startWithWorkers({ config });
  const start = () => startProgram({ args: ['--config', file] });
  const second = await start();
  const balancer = await startBalancer();
  onTestFinished(() => balancer.close());
  for (const gateway of [first, second]) balancer.add(gateway);
  const isUsed = (gateway: typeof first) => expect.poll(() => balancer.uses(gateway), PATIENCE).toBe(true);
  await isUsed(first);
  await isUsed(second);

  const outcomes: Outcome[] = [];
  let stopped = false;
  onTestFinished(() => {
    stopped = true;
  });
  // Keeps its connection until it is told to close it, as clients do.
  const caller = async () => {
    const agent = agentOfTest({ keepAlive: true, maxSockets: 1 });
    while (!stopped) {
      outcomes.push(await request(agent, balancer.url, key));
      await setTimeout(10);
    }
  };
  const callers = Promise.all(Array.from({ length: 6 }, caller));
  await expect.poll(() => outcomes.length, PATIENCE).toBeGreaterThan(50);

  let last = second;
  for (const old of [first, second]) {
    old.signal('SIGTERM');
    expect((await old.finished).status).toBe(0);
    balancer.remove(old);
    last = await start();
    balancer.add(last);
    await isUsed(last);
  }
  const served = outcomes.length;
  await expect.poll(() => outcomes.length, PATIENCE).toBeGreaterThan(served + 50);
  stopped = true;
  await callers;
  expect(tally(outcomes)).toEqual({ 200: outcomes.length });
  expect(backend.seen.length).toBe(outcomes.length);
  const used = async () => (await callAdmin(last, '/admin/v1/customers/acme/usage')).body.used;
  await expect.poll(used, PATIENCE).toBe(outcomes.length);
});
