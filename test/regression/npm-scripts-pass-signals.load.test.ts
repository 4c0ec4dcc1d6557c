/**
 * SIGTERM to `npm start` or `npm run tollgate -- start` ended npm and its shell, and left the gateway behind: it kept the
 * port, and the next start failed. Once the shell is replaced by the gateway, Ctrl-C reaches it twice, from the terminal
 * and from npm; the second one must not count as a second Ctrl-C, which ends the process without a drain.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { temporaryFile } from '../cli/support.ts';
import { REPOSITORY } from '../deploy/support/dockerfile.ts';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';

const PATIENCE = { timeout: 30_000, interval: 20 };
const ANY_PORTS = { PORT: '0', OPS_PORT: '0', ADMIN_PORT: '0' };

/** A checkout whose quick start has a store of its own. */
async function checkout(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-checkout-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const name of ['package.json', '.npmrc', 'config', 'bin', 'demo']) {
    await cp(join(REPOSITORY, name), join(folder, name), { recursive: true });
  }
  for (const name of ['src', 'node_modules']) await symlink(join(REPOSITORY, name), join(folder, name));
  return folder;
}

/** Runs npm as the leader of a process group, as a terminal or a service manager does, until the gateway has started. */
async function startByNpm(args: readonly string[]) {
  const npm = spawn('npm', args, {
    cwd: await checkout(),
    env: { ...CHILD_ENVIRONMENT, HOME: process.env.HOME, ...ANY_PORTS },
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const pid = npm.pid ?? 0;
  onTestFinished(() => endGroup(pid));
  let output = '';
  npm.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  // Its output ends with the last process that writes to it.
  const finished = once(npm, 'close').then(([status]: (number | null)[]) => status);
  await expect.poll(() => output, PATIENCE).toContain('"msg":"tollgate started"');
  return { pid, output: () => output, finished };
}

function endGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // Nobody is left.
  }
}

const onPosix = it.skipIf(process.platform === 'win32');

onPosix('SIGTERM to npm start stops the gateway in good order', async () => {
  const { pid, output, finished } = await startByNpm(['start']);
  process.kill(pid, 'SIGTERM');
  expect(await finished).toBe(0);
  expect(output()).toContain('"msg":"tollgate stopped"');
});

onPosix('Ctrl-C in npm run tollgate -- start is one signal: the gateway drains', async () => {
  const loopback = { host: '127.0.0.1', port: 0 };
  const config = {
    listen: loopback,
    ops: loopback,
    store: { url: 'sqlite:store.sqlite' },
    upstream: { urls: ['http://127.0.0.1:9'] },
    // The copies of the signal come meanwhile.
    shutdown: { not_ready_ms: 1000, drain_ms: 1000 },
  };
  const file = await temporaryFile('gateway.yaml', stringify(config));
  const { pid, output, finished } = await startByNpm(['run', '-s', 'tollgate', '--', 'start', '--config', file]);
  process.kill(-pid, 'SIGINT');
  // npm's copy may merge with a signal that is still pending; of several, one arrives behind it.
  for (let copies = 0; copies < 5; copies++) {
    // Not by a timer: those of a busy process are late, and the gateway may have ended.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    process.kill(pid, 'SIGINT');
  }
  expect(await finished).toBe(0);
  expect(output()).toContain('"msg":"tollgate stopped"');
});
