/**
 * `docker stop` right after `docker run` was without effect until SIGKILL: while its modules were loaded and its listeners
 * opened, the gateway had no handlers, and the kernel discards signals to process 1 that have none. Any other process
 * ended with the signal's status, without giving back what it had opened.
 */
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { runProgram } from '../support/process.ts';
import { startRedis } from '../support/redis-server.ts';

const ANY_PORT = { host: '127.0.0.1', port: 0 };

/** Runs a gateway with two workers that gets `signal` when it loads the module `path`. */
async function runUntil(path: string, signal: NodeJS.Signals) {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const folder = await mkdtempDisposable(join(tmpdir(), 'tollgate-signals-'));
  onTestFinished(() => folder.remove());
  const hooks = join(folder.path, 'hooks.mjs');
  await writeFile(
    hooks,
    `import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) {
      if (url.endsWith('${path}')) process.kill(process.pid, '${signal}');
      return next(url, context);
    } });`,
  );
  const file = join(folder.path, 'gateway.yaml');
  const sections = {
    listen: ANY_PORT,
    ops: ANY_PORT,
    workers: 2,
    store: { url: redis.url },
    upstream: { urls: ['http://127.0.0.1:9'] },
    shutdown: { not_ready_ms: 0 },
  };
  await writeFile(file, stringify(sections));
  return await runProgram({ args: ['start', '--config', file], env: { NODE_OPTIONS: `--import=${hooks}` } });
}

it.each(['SIGTERM', 'SIGINT'] as const)(
  '%s while the modules are loaded ends a gateway before it starts',
  async (signal) => {
    const { status, stdout, stderr } = await runUntil('/src/cli/command-line.ts', signal);
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  },
);

it('SIGTERM while the listeners are opened stops a gateway as soon as it has started', async () => {
  const { status, stdout } = await runUntil('/src/process/workers/primary.ts', 'SIGTERM');
  expect(stdout).toContain('"msg":"tollgate started"');
  expect(stdout).toContain('"msg":"tollgate stopped"');
  expect(status).toBe(0);
});
