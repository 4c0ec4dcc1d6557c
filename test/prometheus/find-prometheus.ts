/** Finds the Prometheus that alerts and dashboards are tried on, once for the whole run. */
import type { TestProject } from 'vitest/node';
import { canInstall, install, onPath } from '../support/programs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    prometheus: string;
    promtool: string;
  }
}

// biome-ignore lint/style/noDefaultExport: vitest calls the default export of a globalSetup file
export default function setup({ provide }: TestProject): void {
  const { env } = process;
  if (!isComplete(env) && canInstall()) install({ name: 'prometheus', service: 'prometheus.service' }, env);
  provide('prometheus', find('prometheus', env));
  provide('promtool', find('promtool', env));
}

function isComplete(env: NodeJS.ProcessEnv): boolean {
  return ['prometheus', 'promtool'].every((name) => onPath([name], env) !== undefined);
}

function find(name: string, env: NodeJS.ProcessEnv): string {
  const found = onPath([name], env);
  if (found !== undefined) return found;
  throw new Error(
    `These tests need ${name} on PATH: install Prometheus 2.42 or newer (Debian's package "prometheus").`,
  );
}
