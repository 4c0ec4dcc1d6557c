/** Finds the programs that neither npm nor the other tests bring, once for the whole run. */
import type { TestProject } from 'vitest/node';
import { canInstall, install, onPath } from '../support/programs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A path, like the next three; empty if it is missing. */
    caddy: string;
    haproxy: string;
    nginx: string;
    prometheus: string;
    /** Those of deploy/compose.yaml that are missing: tests that need them are skipped. */
    missingForCompose: readonly string[];
  }
}

const FOR_COMPOSE = { haproxy: 'haproxy', prometheus: 'prometheus', 'redis-cli': 'redis-tools' };

// biome-ignore lint/style/noDefaultExport: vitest calls the default export of a globalSetup file
export default function setup({ provide }: TestProject): void {
  const { env } = process;
  const find = (program: string) => onPath([program], env) ?? '';
  for (const [program, name] of Object.entries({ ...FOR_COMPOSE, caddy: 'caddy', nginx: 'nginx-light' }))
    if (find(program) === '' && canInstall()) install({ name, service: `${name}.service` }, env);
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
