/** Finds the programs that neither npm nor the other tests bring, once for the whole run. */
import { spawnSync } from 'node:child_process';
import type { TestProject } from 'vitest/node';
import { canInstall, install, onPath } from '../support/programs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A path, like the next four; empty if it is missing. */
    caddy: string;
    haproxy: string;
    nginx: string;
    prometheus: string;
    /** A Python that has FastAPI, httpx and uvicorn. */
    pythonWithFastApi: string;
    /** Those of deploy/compose.yaml that are missing: tests that need them are skipped. */
    missingForCompose: readonly string[];
  }
}

/** Debian's Python has the packages of Debian, which another one on PATH has not. */
function findPython(): string {
  const has = (program: string) => spawnSync(program, ['-c', 'import fastapi, httpx, uvicorn']).status === 0;
  return ['/usr/bin/python3', 'python3'].find(has) ?? '';
}

const FOR_COMPOSE = { haproxy: 'haproxy', prometheus: 'prometheus', 'redis-cli': 'redis-tools' };

// biome-ignore lint/style/noDefaultExport: vitest calls the default export of a globalSetup file
export default function setup({ provide }: TestProject): void {
  const { env } = process;
  const find = (program: string) => onPath([program], env) ?? '';
  for (const [program, name] of Object.entries({ ...FOR_COMPOSE, caddy: 'caddy', nginx: 'nginx-light' }))
    if (find(program) === '' && canInstall()) install({ name, service: `${name}.service` }, env);
  if (findPython() === '' && canInstall()) {
    for (const name of ['python3-fastapi', 'python3-httpx', 'python3-uvicorn']) install({ name }, env);
  }
  provide('pythonWithFastApi', findPython());
  provide('caddy', find('caddy'));
  provide('haproxy', find('haproxy'));
  provide('nginx', find('nginx'));
  provide('prometheus', find('prometheus'));
  const missing = Object.keys(FOR_COMPOSE).filter((program) => find(program) === '');
  provide('missingForCompose', missing);
  if (missing.length > 0)
    process.stderr.write(
      `deploy/compose.yaml is not run: ${missing.join(' and ')} not found, and cannot be installed\n`,
    );
  if (find('caddy') === '')
    process.stderr.write(
      'docs/recipes/caddy.md is not run, nor that of docs/check.md: caddy not found, and cannot be installed\n',
    );
}
