/**
 * Finds the Redis (or Valkey) server that the tests run against, once for the whole run: a quota that was tried against
 * an imitation has not been tried.
 */
import type { TestProject } from 'vitest/node';
import { canInstall, install, isProgram, onPath } from './programs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    redisServer: string;
  }
}

const PROGRAMS = ['redis-server', 'valkey-server'];

// biome-ignore lint/style/noDefaultExport: vitest calls the default export of a globalSetup file
export default function setup({ provide }: TestProject): void {
  provide('redisServer', findRedisServer(process.env));
}

/** The path of a server program. @throws Error that says what to install. */
export function findRedisServer(env: NodeJS.ProcessEnv): string {
  const chosen = env.REDIS_SERVER;
  if (chosen) {
    if (!isProgram(chosen)) throw new Error(`REDIS_SERVER is ${chosen}, which is not a program`);
    return chosen;
  }
  let found = onPath(PROGRAMS, env);
  if (found === undefined && canInstall()) {
    install({ name: 'redis-server', service: 'redis-server.service' }, env);
    found = onPath(PROGRAMS, env);
  }
  if (found === undefined) {
    throw new Error(
      'The tests need a Redis server: install redis-server or valkey-server (6.2 or newer), or set REDIS_SERVER to its path.',
    );
  }
  return found;
}
