/**
 * A worker that died while a gateway with workers was stopping made the stop fail: the next message to the dead worker
 * failed with EPIPE, the primary took that for a failure of the whole drain, exited with status 1, and the other workers
 * lost their primary and reset every request under way.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { agentOfTest, isZombie, PATIENCE, request, startWithWorkers, workersOf } from '../process/workers/support.ts';

/** Longer than it takes to stop the primary once it says so. */
const NOT_READY_MS = 2000;

// The primary stands still while the worker dies and the drain falls due. What it learns first is chance: for a message
// before the death is known, see message-to-a-dead-worker.test.ts. Needs /proc.
it.skipIf(process.platform !== 'linux')(
  'a worker that dies during a drain fails no request of the others, and the gateway exits with 0',
  async () => {
    const held: ServerResponse[] = [];
    const { gateway, key } = await startWithWorkers({
      answer: (_req, res) => void held.push(res),
      config: { shutdown: { not_ready_ms: NOT_READY_MS, drain_ms: 60_000 } },
    });
    // Connections go to the workers in turn, so each worker holds one request.
    const agent = agentOfTest({ keepAlive: false });
    const outcomes = [request(agent, gateway.public, key), request(agent, gateway.public, key)];
    await expect.poll(() => held.length, PATIENCE).toBe(2);
    const [victim] = await workersOf(gateway);

    gateway.signal('SIGTERM');
    await expect.poll(gateway.output, PATIENCE).toContain('no longer ready');
    gateway.signal('SIGSTOP');
    process.kill(victim?.pid ?? 0, 'SIGKILL');
    await expect.poll(() => isZombie(victim?.pid), PATIENCE).toBe(true);
    await setTimeout(NOT_READY_MS);
    gateway.signal('SIGCONT');

    // The victim's request ends with its connection; the other one is answered.
    await Promise.race(outcomes);
    for (const res of held) res.end('{}');
    const statuses = (await Promise.all(outcomes)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, undefined]);
    const { status, stderr, stdout } = await gateway.finished;
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('"msg":"tollgate stopped"');
  },
);
