/** What the results were measured with and on. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { fileURLToPath } from 'node:url';
import { readVersion } from '../src/process/version.ts';
import type { Programs } from './programs.ts';

/** One sentence each on versions and machine. */
export function describeEnvironment({ nginx, wrk, redisServer }: Programs): string {
  const peers = JSON.parse(readFileSync(new URL('peers/package.json', import.meta.url), 'utf8')).dependencies;
  const packages = ['fastify', 'express', 'http-proxy-middleware'].map((name) => `${name} ${peers[name]}`);
  const versions = [
    `Tollgate ${readVersion()}${describeCommit()}`,
    `Node.js ${process.versions.node}`,
    `nginx ${firstMatch(/nginx\/([\d.]+)/, nginx, '-v')}`,
    `Redis ${firstMatch(/v=([\d.]+)/, redisServer, '--version')}`,
    `wrk ${firstMatch(/([\d.]+)/, wrk, '-v')}`,
    ...packages,
  ];
  const processors = cpus();
  const machine = `${processors.length} × ${processors[0]?.model.trim() ?? 'unknown CPU'}, Linux ${release()}`;
  return `${new Date().toISOString().slice(0, 10)}: ${versions.join(', ')}; ${machine}.`;
}

function describeCommit(): string {
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const git = (...args: string[]) =>
    spawnSync('git', ['--no-optional-locks', ...args], { cwd, encoding: 'utf8' }).stdout?.trim() ?? '';
  const commit = git('rev-parse', '--short', 'HEAD');
  if (commit === '') return '';
  return git('status', '--porcelain', '--', 'src') === '' ? ` (${commit})` : ` (${commit} with changes)`;
}

function firstMatch(pattern: RegExp, program: string, flag: string): string {
  const { stdout, stderr } = spawnSync(program, [flag], { encoding: 'utf8' });
  return pattern.exec(`${stdout}${stderr}`)?.[1] ?? 'of unknown version';
}
