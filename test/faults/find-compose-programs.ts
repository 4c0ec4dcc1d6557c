/** Finds the programs of deploy/compose.yaml that neither npm nor the other tests bring, once for the whole run. */
import type { TestProject } from 'vitest/node';
import { canInstall, install, onPath } from '../support/programs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    haproxy: string;
    /** Those that are missing: tests that need them are skipped. */
    missingForCompose: readonly string[];
  }
}

const PACKAGES = { haproxy: 'haproxy', prometheus: 'prometheus', 'redis-cli': 'redis-tools' };

// biome-ignore lint/style/noDefaultExport: vitest calls the default export of a globalSetup file
export default function setup({ provide }: TestProject): void {
  const { env } = process;
  const find = (program: string) => onPath([program], env) ?? '';
  for (const [program, name] of Object.entries(PACKAGES))
    if (find(program) === '' && canInstall()) install({ name, service: `${name}.service` }, env);
  provide('haproxy', find('haproxy'));
  provide('prometheus', find('prometheus'));
  const missing = Object.keys(PACKAGES).filter((program) => find(program) === '');
  provide('missingForCompose', missing);
  if (missing.length > 0)
    process.stderr.write(
      `deploy/compose.yaml is not run: ${missing.join(' and ')} not found, and cannot be installed\n`,
    );
}
