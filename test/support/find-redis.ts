/**
 * Finds the Redis (or Valkey) server that the tests run against, once for the whole run: a quota that was tried against
 * an imitation has not been tried.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TestProject } from 'vitest/node';

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
  const found = onPath(env) ?? (canInstall() ? install(env) : undefined);
  if (found === undefined) {
    throw new Error(
      'The tests need a Redis server: install redis-server or valkey-server (6.2 or newer), or set REDIS_SERVER to its path.',
    );
  }
  return found;
}

function onPath(env: NodeJS.ProcessEnv): string | undefined {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return PROGRAMS.flatMap((program) => folders.map((folder) => join(folder, program))).find(isProgram);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function canInstall(): boolean {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version');
}

/** Installs the program without starting the server that comes with the package: the default port is not ours. */
function install(env: NodeJS.ProcessEnv): string | undefined {
  const options = { stdio: 'inherit', env: { ...env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' } } as const;
  // RUNLEVEL=1 keeps a start script from starting it, the mask (gone with the next boot) a service manager.
  if (existsSync('/run/systemd/system')) spawnSync('systemctl', ['mask', '--runtime', 'redis-server.service'], options);
  spawnSync('apt-get', ['update'], options);
  spawnSync('apt-get', ['install', '-y', '--no-install-recommends', 'redis-server'], options);
  return onPath(env);
}
