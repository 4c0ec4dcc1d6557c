/** What a soak runs on: one gateway, its Redis with the data on disk, a moody backend, and customers with keys. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { stringify } from 'yaml';
import { type Customer, createCustomer, writeCustomers } from '../../bench/customers.ts';
import { freePort } from '../../bench/free-port.ts';
import { isListening } from '../../bench/surroundings.ts';
import { type RunningProcess, Workspace } from '../../bench/workspace.ts';
import { findRedisServer } from '../../test/support/find-redis.ts';
import { MoodyUpstream } from './upstream.ts';

export interface Scene extends AsyncDisposable {
  readonly origin: string;
  readonly opsOrigin: string;
  readonly gateway: RunningProcess;
  /** Where the gateway's processes write what they tell (tell-vitals.ts). */
  readonly vitalsFolder: string;
  readonly workers: number;
  readonly redis: SoakRedis;
  readonly upstream: MoodyUpstream;
  readonly good: readonly Customer[];
  readonly spent: readonly Customer[];
  /** Writes the configuration with this hourly limit for a plan without customers; `broken`: an invalid file. */
  configure(limit: number | 'broken'): void;
}

interface SoakRedis {
  readonly client: Redis;
  signal(name: NodeJS.Signals): void;
  start(): Promise<void>;
}

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const TELL_VITALS = new URL('tell-vitals.ts', import.meta.url).href;
const GOOD_CUSTOMERS = 200;
const SPENT_CUSTOMERS = 20;
const SPENT_LIMIT = 5;

/** Of the gateway, in ms. No request may take longer than all of them together. */
export const DEADLINES = { store: 250, connect: 500, response: 1000, total: 2000 } as const;

export async function openScene(workers: number): Promise<Scene> {
  await using opened = new AsyncDisposableStack();
  const workspace = opened.use(new Workspace(process.env.PATH));
  const [port, opsPort, redisPort, upstreamPort] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const redis = await openRedis(workspace, redisPort);
  opened.defer(() => redis.client.disconnect());
  const upstream = new MoodyUpstream(upstreamPort);
  await upstream.open();
  opened.defer(() => upstream.close());

  const file = join(workspace.folder, 'gateway.yaml');
  const configure = (limit: number | 'broken') => {
    const settings = {
      listen: { host: '127.0.0.1', port },
      ops: { host: '127.0.0.1', port: opsPort },
      ...(workers > 1 && { workers }),
      store: { url: `redis://127.0.0.1:${redisPort}`, timeout_ms: DEADLINES.store },
      upstream: {
        urls: [`http://127.0.0.1:${upstreamPort}`],
        connect_timeout_ms: DEADLINES.connect,
        response_timeout_ms: DEADLINES.response,
        total_timeout_ms: DEADLINES.total,
      },
      plans: { enterprise: { requests_per_hour: 'custom' }, unused: { requests_per_hour: limit } },
      shutdown: { not_ready_ms: 0, drain_ms: 5000 },
    };
    writeFileSync(file, limit === 'broken' ? 'plans: [' : stringify(settings));
  };
  configure(1000);
  const opsOrigin = `http://127.0.0.1:${opsPort}`;
  const vitalsFolder = join(workspace.folder, 'vitals');
  mkdirSync(vitalsFolder);
  const gateway = await workspace.start({
    name: 'tollgate',
    command: [process.execPath, '--expose-gc', '--import', TELL_VITALS, MAIN, 'start', '--config', file],
    env: { NODE_ENV: 'production', SOAK_VITALS_FOLDER: vitalsFolder },
    isReady: async () => (await isListening(opsPort)) && (await fetch(`${opsOrigin}/readyz`)).ok,
  });
  // Only now: the gateway is to find an empty store, and to remember it as its own.
  const good = Array.from({ length: GOOD_CUSTOMERS }, (_, i) => createCustomer(`good-${i}`));
  const spent = Array.from({ length: SPENT_CUSTOMERS }, (_, i) => createCustomer(`spent-${i}`, SPENT_LIMIT));
  await writeCustomers(redis.client, [...good, ...spent]);
  const running = opened.move();
  return {
    origin: `http://127.0.0.1:${port}`,
    opsOrigin,
    gateway,
    vitalsFolder,
    workers,
    redis,
    upstream,
    good,
    spent,
    configure,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

async function openRedis(workspace: Workspace, port: number): Promise<SoakRedis> {
  const program = findRedisServer(process.env);
  let server: RunningProcess | undefined;
  const start = async () => {
    server = await workspace.start({
      name: 'redis',
      command: [
        program,
        ...['--port', String(port), '--bind', '127.0.0.1', '--dir', workspace.folder],
        ...['--save', '', '--appendonly', 'yes', '--appendfsync', 'always'],
        ...['--maxmemory-policy', 'noeviction', '--hash-max-listpack-entries', '400'],
      ],
      isReady: () => isListening(port),
    });
  };
  await start();
  const client = new Redis(port, '127.0.0.1', { protocol: 2, disableClientInfo: true, maxRetriesPerRequest: null });
  // Who sends a command gets its error.
  client.on('error', () => undefined);
  return {
    client,
    start,
    signal: (name) => void (server && process.kill(server.pid, name)),
  };
}
