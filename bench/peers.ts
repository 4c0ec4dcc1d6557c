/** The gateways that are compared, and how each is started. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { freePort } from './free-port.ts';
import { command, isListening, type Surroundings, startNginx } from './surroundings.ts';
import type { RunningProcess } from './workspace.ts';

/**
 * `tollgate-again` is the null control: another process of tollgate. Its ratio to the first one is 1 but for the noise, so
 * it shows which differences between others mean something.
 */
export const PEER_NAMES = ['tollgate', 'tollgate-again', 'nginx-plain', 'nginx-lua', 'fastify', 'express-hpm'] as const;
export type PeerName = (typeof PEER_NAMES)[number];

export interface Peer {
  readonly name: PeerName;
  readonly origin: string;
  readonly process: RunningProcess;
}

export interface Tollgate extends Peer {
  readonly opsOrigin: string;
  readonly adminOrigin: string;
}

export interface TollgateOptions {
  /** Node.js options besides those that a production start has. */
  readonly nodeOptions?: readonly string[];
  readonly workers?: number;
  /** Left out: config/gateway.yaml. */
  readonly config?: string;
  /** Left out: Redis. */
  readonly storeUrl?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Where a peer's backend and Redis are. */
export type PeerSurroundings = Pick<Surroundings, 'workspace' | 'programs' | 'pinning'> & {
  readonly upstream: Pick<Surroundings['upstream'], 'port' | 'origin'>;
  readonly redis: Pick<Surroundings['redis'], 'port' | 'url'>;
  /** Requests in an hour of any customer, for the peers that have one limit for all. Left out: no limit that matters. */
  readonly limit?: number;
  /** To the backend, of the peers that have to be told. Left out: as many as a busy client has. */
  readonly connections?: number;
};

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PEERS_FOLDER = fileURLToPath(new URL('peers', import.meta.url));

/** Why a peer cannot take part, or undefined. */
type Hindrance = (surroundings: PeerSurroundings) => string | undefined;

interface PeerKind {
  readonly start: (surroundings: PeerSurroundings, tollgate?: TollgateOptions) => Promise<Peer>;
  readonly hindrance: Hindrance;
}

const none: Hindrance = () => undefined;

const PEER_KINDS: Readonly<Record<PeerName, PeerKind>> = {
  tollgate: { start: startTollgate, hindrance: none },
  'tollgate-again': {
    start: async (...args) => ({ ...(await startTollgate(...args)), name: 'tollgate-again' }),
    hindrance: none,
  },
  'nginx-plain': { start: startPlainNginx, hindrance: none },
  'nginx-lua': {
    start: (surroundings) => startLuaNginx(surroundings),
    hindrance: ({ programs }) =>
      programs.luaModules === undefined ? "nginx's Lua module is missing (Debian: libnginx-mod-http-lua)" : undefined,
  },
  fastify: { start: (surroundings) => startNodePeer('fastify', surroundings), hindrance: none },
  'express-hpm': { start: (surroundings) => startNodePeer('express-hpm', surroundings), hindrance: none },
};

export interface StartedPeers {
  readonly peers: readonly Peer[];
  /** Peers that cannot take part on this machine, with the reason. */
  readonly leftOut: readonly string[];
  /** Peers that should have started and did not, with the end of what they wrote. */
  readonly problems: readonly string[];
}

/** `tollgate`: what is special about ours. */
export async function startPeers(
  names: readonly PeerName[],
  surroundings: PeerSurroundings,
  tollgate?: TollgateOptions,
): Promise<StartedPeers> {
  const peers: Peer[] = [];
  const leftOut: string[] = [];
  const problems: string[] = [];
  for (const name of names) {
    const { start, hindrance } = PEER_KINDS[name];
    const reason = hindrance(surroundings);
    if (reason !== undefined) {
      leftOut.push(`${name} is left out: ${reason}`);
      continue;
    }
    try {
      peers.push(await start(surroundings, tollgate));
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
  }
  return { peers, leftOut, problems };
}

/** Starts it as its operators do: the production configuration, the access log into a file. */
export async function startTollgate(
  { workspace, pinning, upstream, redis }: PeerSurroundings,
  {
    nodeOptions = [],
    workers = 1,
    config = 'config/gateway.yaml',
    storeUrl = redis.url,
    env = {},
  }: TollgateOptions = {},
): Promise<Tollgate> {
  const [port, opsPort, adminPort] = [await freePort(), await freePort(), await freePort()];
  const opsOrigin = `http://127.0.0.1:${opsPort}`;
  const process = await workspace.start({
    name: 'tollgate',
    command: nodeCommand(pinning.measured, [...nodeOptions, ...['src/main.ts', 'start', '--config', config]]),
    cwd: ROOT,
    env: {
      NODE_ENV: 'production',
      UPSTREAM_URL: upstream.origin,
      REDIS_URL: storeUrl,
      LISTEN_HOST: '127.0.0.1',
      PORT: String(port),
      OPS_HOST: '127.0.0.1',
      OPS_PORT: String(opsPort),
      ADMIN_PORT: String(adminPort),
      WORKERS: String(workers),
      ...env,
    },
    isReady: async () => (await isListening(opsPort)) && (await fetch(`${opsOrigin}/readyz`)).ok,
  });
  return {
    name: 'tollgate',
    origin: `http://127.0.0.1:${port}`,
    process,
    opsOrigin,
    adminOrigin: `http://127.0.0.1:${adminPort}`,
  };
}

async function startPlainNginx({ workspace, programs, pinning, upstream }: PeerSurroundings): Promise<Peer> {
  const name = 'nginx-plain';
  const port = await freePort();
  const values = { upstream_port: upstream.port };
  const process = await startNginx({ workspace, programs, cpus: pinning.measured, name, port, values });
  return { name, origin: `http://127.0.0.1:${port}`, process };
}

/** `content`: directives of nginx for what is admitted. */
export async function startLuaNginx(
  { workspace, programs, pinning, upstream, redis }: PeerSurroundings,
  content = 'proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://backend;',
): Promise<Peer> {
  const name = 'nginx-lua';
  const port = await freePort();
  const values = {
    upstream_port: upstream.port,
    redis_port: redis.port,
    modules: programs.luaModules ?? '',
    content,
    window_lua: fileURLToPath(new URL('peers/window.lua', import.meta.url)),
  };
  const process = await startNginx({ workspace, programs, cpus: pinning.measured, name, port, values });
  return { name, origin: `http://127.0.0.1:${port}`, process };
}

/** A peer that is a module of peers/: its arguments are its own port, the backend's and Redis's, and the limit. */
async function startNodePeer(name: PeerName, surroundings: PeerSurroundings): Promise<Peer> {
  const { workspace, pinning, upstream, redis, limit = 1_000_000_000, connections = 64 } = surroundings;
  installPeers();
  const port = await freePort();
  const args = [`${PEERS_FOLDER}/${name}.mjs`, ...[port, upstream.port, redis.port, limit, connections].map(String)];
  const process = await workspace.start({
    name,
    command: nodeCommand(pinning.measured, args),
    env: { NODE_ENV: 'production' },
    isReady: () => isListening(port),
  });
  return { name, origin: `http://127.0.0.1:${port}`, process };
}

function nodeCommand(cpus: readonly string[], args: readonly string[]): [string, ...string[]] {
  return command(cpus, process.execPath, args);
}

/** @throws Error when npm fails. */
function installPeers(): void {
  if (existsSync(`${PEERS_FOLDER}/node_modules`)) return;
  const { status } = spawnSync('npm', ['ci'], {
    cwd: PEERS_FOLDER,
    // Standard output carries the report.
    stdio: ['ignore', process.stderr, process.stderr],
  });
  if (status !== 0) throw new Error(`npm ci failed in ${PEERS_FOLDER}; the peers that need its packages are left out`);
}
