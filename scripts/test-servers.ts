/**
 * `npm run test:servers`: runs the contract of the stores against the servers of Debian releases: Redis 7.0 (12), Redis 8.0
 * and Valkey (13). Packages are unpacked into a folder of their own, not installed. As root on Debian, with mmdebstrap and a
 * connection to a Debian mirror. Prints which versions passed; fails if one did not, or could not be had.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const SERVERS = [
  { suite: 'bookworm', name: 'redis-server' },
  { suite: 'trixie', name: 'redis-server' },
  { suite: 'trixie', name: 'valkey-server' },
];
/** Of each vitest config, files of test/store. */
const TESTS = {
  'vitest.config.ts': ['redis-contract', 'redis-cluster-contract', 'differential', 'usage-history-exact'],
  'vitest.faults.config.ts': ['redis-topologies-contract.load'],
};

for (const { suite, name } of SERVERS) {
  const folder = mkdtempSync(join(tmpdir(), `tollgate-${name}-`));
  try {
    const program = unpack(suite, name, folder);
    const [, version] = /v=(\S+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' })) ?? [];
    const env = { ...process.env, REDIS_SERVER: program };
    const hasPassed = Object.entries(TESTS).every(([config, tests]) => {
      const files = tests.map((test) => `test/store/${test}.test.ts`);
      const args = ['vitest', 'run', '--config', config, ...files];
      return spawnSync('npx', args, { cwd: ROOT, env, stdio: ['ignore', process.stderr, process.stderr] }).status === 0;
    });
    console.log(`${hasPassed ? 'passed' : 'FAILED'}: Debian ${suite}, ${name} ${version}`);
    if (!hasPassed) process.exitCode = 1;
  } catch (error) {
    console.log(`NOT TRIED: Debian ${suite}, ${name}: ${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns a program that runs the server with the libraries of its own release. */
function unpack(suite: string, name: string, folder: string): string {
  const root = join(folder, 'root');
  execFileSync('mmdebstrap', ['--quiet', '--variant=extract', `--include=${name}`, suite, root], { stdio: 'inherit' });
  const [loader] = globSync('{usr/,}lib/*-linux-gnu/ld-linux-*.so.*', { cwd: root });
  if (loader === undefined) throw new Error('the release has no dynamic loader');
  const libraries = globSync('{usr/,}lib/*-linux-gnu', { cwd: root }).map((each) => join(root, each));
  const program = join(folder, name);
  const run = `exec ${join(root, loader)} --library-path ${libraries.join(':')} ${join(root, 'usr/bin', name)}`;
  writeFileSync(program, `#!/bin/sh\n${run} "$@"\n`);
  chmodSync(program, 0o755);
  return program;
}
