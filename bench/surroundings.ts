/** What every gateway stands between: the backend and the Redis server, fresh for each scenario. */
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import type { Pinning } from './pinning.ts';
import { probe } from './probe.ts';
import type { Programs } from './programs.ts';
import { type RunningProcess, Workspace } from './workspace.ts';

export const LIST_PATH = '/api/v1/conversations';

/** Files that the backend serves besides its list. */
const FILE_SIZES = ['64 KiB', '5 MB'] as const;
type FileSize = (typeof FILE_SIZES)[number];
const FILE_BYTES: Readonly<Record<FileSize, number>> = { '64 KiB': 64 * 1024, '5 MB': 5_000_000 };

export function filePath(size: FileSize): string {
  return `${LIST_PATH}/${FILE_BYTES[size]}`;
}

export interface Surroundings extends AsyncDisposable {
  readonly programs: Programs;
  readonly pinning: Pinning;
  readonly workspace: Workspace;
  readonly upstream: { readonly port: number; readonly origin: string };
  readonly redis: RedisUnderLoad;
}

export interface RedisUnderLoad {
  readonly port: number;
  readonly url: string;
  readonly process: RunningProcess;
  readonly client: Redis;
}

export async function startSurroundings(programs: Programs, pinning: Pinning, path: string | undefined) {
  await using opened = new AsyncDisposableStack();
  const workspace = opened.use(new Workspace(path));
  const redis = await startRedis(workspace, programs, pinning);
  opened.defer(() => redis.client.disconnect());
  const upstream = await startUpstream(workspace, programs, pinning);
  const running = opened.move();
  const surroundings: Surroundings = {
    programs,
    pinning,
    workspace,
    upstream,
    redis,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
  return surroundings;
}

async function startRedis(workspace: Workspace, { redisServer }: Programs, pinning: Pinning): Promise<RedisUnderLoad> {
  const port = await freePort();
  const process = await workspace.start({
    name: 'redis',
    // As docs/redis.md asks for; and without persistence, which is not what is measured.
    command: command(pinning.loading, redisServer, [
      ...['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
      ...['--maxmemory-policy', 'noeviction', '--hash-max-listpack-entries', '400'],
    ]),
    isReady: () => isListening(port),
  });
  const client = new Redis(port, '127.0.0.1', { protocol: 2, disableClientInfo: true });
  // Who sends a command gets its error.
  client.on('error', () => undefined);
  return { port, url: `redis://127.0.0.1:${port}`, process, client };
}

async function startUpstream(workspace: Workspace, programs: Programs, pinning: Pinning) {
  writeFiles(workspace.folder);
  return startBackend({ workspace, programs, cpus: pinning.loading, name: 'upstream' });
}

/** Another backend like the one behind the gateways. */
export async function startBackend(settings: Omit<NginxSettings, 'port' | 'template'>) {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  await startNginx({ ...settings, template: 'upstream', port });
  const { status } = await probe(`${origin}${LIST_PATH}`, undefined);
  if (status !== 200) throw new Error(`the backend responds ${status}`);
  return { port, origin };
}

function writeFiles(folder: string): void {
  for (const size of FILE_SIZES) {
    const file = join(folder, 'files', filePath(size));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify({ data: 'x'.repeat(FILE_BYTES[size] - '{"data":""}'.length) }));
  }
}

export interface NginxSettings {
  readonly workspace: Workspace;
  readonly programs: Programs;
  readonly cpus: readonly string[];
  readonly name: string;
  /** Of the configuration in peers/; left out: the name. */
  readonly template?: string;
  readonly port: number;
  /** What else the configuration's @placeholders@ stand for. */
  readonly values?: Readonly<Record<string, string | number>>;
}

/** Starts nginx with peers/TEMPLATE.conf, filled in. */
export async function startNginx(settings: NginxSettings): Promise<RunningProcess> {
  const { workspace, programs, cpus, name, template = name, port, values = {} } = settings;
  const text = readFileSync(new URL(`peers/${template}.conf`, import.meta.url), 'utf8');
  const file = join(workspace.folder, `${name}.conf`);
  writeFileSync(file, fillIn(text, { ...values, name, port }));
  return workspace.start({
    name,
    command: command(cpus, programs.nginx, ['-p', workspace.folder, '-c', file]),
    // Its master process collects the workers.
    endSignal: 'SIGTERM',
    isReady: () => isListening(port),
  });
}

/** Replaces each @name@. @throws Error for one that has no value. */
export function fillIn(template: string, values: Readonly<Record<string, string | number>>): string {
  return template.replace(/@([a-z_]+)@/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`the template has a placeholder @${name}@ without a value`);
    return String(value);
  });
}

/** A program behind the words that pin it. */
export function command(prefix: readonly string[], program: string, args: readonly string[]): [string, ...string[]] {
  const [first = program, ...rest] = [...prefix, program, ...args];
  return [first, ...rest];
}

export async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
