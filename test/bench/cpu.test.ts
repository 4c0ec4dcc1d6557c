import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { parseStat, treeCpuMicros } from '../../bench/cpu.ts';

const AFTER_NAME = 'S 17 42 42 0 -1 4194560 1000 0 2 0 250 31 7 9 20 0 11 0 8815 73400320 1024';

it.each(['node', 'a program', 'odd) R 1 (name'])(
  'the CPU time of "%s" is user and system time, without children',
  (name) => {
    expect(parseStat(`42 (${name}) ${AFTER_NAME}`)).toEqual({ parentPid: 17, cpuTicks: 281 });
  },
);

it('what is not a line of /proc/PID/stat is an error', () => {
  expect(() => parseStat('')).toThrow('/proc/PID/stat');
});

it.runIf(process.platform === 'linux')('the CPU time of a process includes that of its descendants', async () => {
  const child = "while (process.cpuUsage().user < 200_000); console.log('spun'); setInterval(() => {}, 1e6)";
  const args = JSON.stringify(['-e', child]);
  const program = `require('node:child_process').spawn(process.execPath, ${args}, { stdio: 'inherit' })`;
  const parent = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  const { pid } = parent;
  if (pid === undefined) throw new Error('no process');
  onTestFinished(() => void process.kill(-pid, 'SIGKILL'));
  await once(parent.stdout, 'data');
  const own = parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  expect(treeCpuMicros(pid) - own.cpuTicks * 10_000).toBeGreaterThan(100_000);
});
