/**
 * A message to a worker that had died, before the primary learned of it, failed with EPIPE, and the primary took that for
 * a failure of the whole drain (see worker-dies-in-drain.load.test.ts).
 */
import cluster from 'node:cluster';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { WorkerProcess } from '../../src/process/workers/worker-process.ts';
import { temporaryFile } from '../cli/support.ts';
import { isZombie } from '../process/workers/support.ts';

// Needs /proc.
it.skipIf(process.platform !== 'linux')(
  'a message to a worker that has just died is reported; its exit still says how',
  async () => {
    const exec = await temporaryFile('worker.mjs', "process.send('runs'); setInterval(() => {}, 1000);");
    cluster.setupPrimary({ exec, args: [], execArgv: [] });
    const errors: Error[] = [];
    const started = once(cluster, 'message');
    const worker = new WorkerProcess(
      {},
      () => {},
      (error) => errors.push(error),
    );
    await started;

    worker.kill();
    // Without a turn of the event loop, which would tell of the death.
    while (!isZombie(worker.pid)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    worker.post('beginDrain');

    expect(await worker.exited).toBe('SIGKILL');
    expect(errors).toMatchObject([{ code: 'EPIPE' }]);
  },
);
