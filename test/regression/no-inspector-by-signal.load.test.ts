/** SIGUSR1 made every process of a gateway open the inspector of Node.js, where any local program could run code in it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { REPOSITORY, readCommand } from '../deploy/support/dockerfile.ts';
import { startWithWorkers, workersOf } from '../process/workers/support.ts';

it('SIGUSR1 opens no inspector, neither in the primary nor in a worker', async () => {
  const { gateway } = await startWithWorkers();
  const workers = await workersOf(gateway);
  expect(workers).toHaveLength(2);
  for (const pid of [gateway.pid, ...workers.map(({ pid }) => Number(pid))]) {
    process.kill(pid, 'SIGUSR1');
    expect((await workersOf(gateway)).map((each) => each.pid)).toEqual(workers.map((each) => each.pid));
  }
  // An inspector reports on standard error that it listens, or that it cannot.
  gateway.signal('SIGTERM');
  expect(await gateway.finished).toMatchObject({ status: 0, stderr: '' });
});

it('in the image and the unit, it opens none even before the first module is loaded', () => {
  expect(readCommand('ENTRYPOINT')).toContain('--disable-sigusr1');
  const unit = readFileSync(join(REPOSITORY, 'deploy/systemd/tollgate.service'), 'utf8');
  expect(unit).toMatch(/^ExecStart=\/usr\/bin\/node --disable-sigusr1 /m);
});
