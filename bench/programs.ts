/**
 * The programs that the benchmark runs besides Node.js: nginx (also as the backend), wrk and a Redis server. As root on
 * Debian, what is missing is installed, without starting the services that come with the packages.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface Programs {
  readonly nginx: string;
  readonly wrk: string;
  readonly redisServer: string;
  /** The folder of nginx's Lua module; undefined when it is not installed. */
  readonly luaModules: string | undefined;
  /** Pins processes to CPUs; undefined when it is not installed. */
  readonly taskset: string | undefined;
}

const PACKAGES = ['nginx-light', 'libnginx-mod-http-lua', 'wrk', 'redis-server'];
const SERVICES = ['nginx.service', 'redis-server.service'];
const LUA_MODULES = ['ndk_http_module.so', 'ngx_http_lua_module.so'];
/** Where servers are installed, which is not on everybody's PATH. */
const SERVER_FOLDERS = ['/usr/local/sbin', '/usr/sbin'];

/** @throws Error that says what to install. */
export function findPrograms(env: NodeJS.ProcessEnv): Programs {
  let found = lookUp(env);
  if (!isComplete(found) && canInstall()) {
    install(env);
    found = lookUp(env);
  }
  const { nginx, wrk, redisServer } = found;
  if (nginx === undefined || wrk === undefined || redisServer === undefined) {
    const missing = Object.entries({ nginx, wrk, 'redis-server (or valkey-server)': redisServer })
      .filter(([, path]) => path === undefined)
      .map(([name]) => name);
    throw new Error(`The benchmark needs ${missing.join(', ')}: install it (on Debian: ${PACKAGES.join(' ')}).`);
  }
  return { ...found, nginx, wrk, redisServer };
}

function lookUp(env: NodeJS.ProcessEnv) {
  const folders = [...(env.PATH ?? '').split(delimiter).filter((folder) => folder !== ''), ...SERVER_FOLDERS];
  const find = (...names: readonly string[]) =>
    names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
  const nginx = find('nginx');
  return {
    nginx,
    wrk: find('wrk'),
    redisServer: find('redis-server', 'valkey-server'),
    luaModules: nginx && findLuaModules(nginx),
    taskset: find('taskset'),
  };
}

function isComplete({ nginx, wrk, redisServer, luaModules }: ReturnType<typeof lookUp>): boolean {
  return [nginx, wrk, redisServer, luaModules].every((path) => path !== undefined);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function findLuaModules(nginx: string): string | undefined {
  const { stderr } = spawnSync(nginx, ['-V'], { encoding: 'utf8' });
  const [, folder] = /--modules-path=(\S+)/.exec(stderr) ?? [];
  return folder !== undefined && LUA_MODULES.every((name) => existsSync(join(folder, name))) ? folder : undefined;
}

function canInstall(): boolean {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version');
}

function install(env: NodeJS.ProcessEnv): void {
  const run = (command: string, ...args: string[]) =>
    spawnSync(command, args, {
      // Standard output is the report's.
      stdio: ['ignore', process.stderr, process.stderr],
      env: { ...env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
    });
  // RUNLEVEL=1 keeps a start script from starting them, the mask (gone with the next boot) a service manager.
  if (existsSync('/run/systemd/system')) run('systemctl', 'mask', '--runtime', ...SERVICES);
  run('apt-get', 'update');
  run('apt-get', 'install', '-y', '--no-install-recommends', ...PACKAGES);
}
