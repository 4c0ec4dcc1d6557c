/** Real Redis servers for tests: each its own process on a free port, without persistence. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { inject } from 'vitest';
import { freePort } from '../../bench/free-port.ts';

const PORT_ATTEMPTS = 10;

/** None of them outlives the tests. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const server of running) server.kill('SIGKILL');
});

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Runs one command on a connection of the tests' own. */
  command(...args: (string | number)[]): Promise<unknown>;
  /** Closes the connections of this name, as a fault in the network would. Resolves to their number. */
  disconnect(clientName: string): Promise<number>;
  /** Stops the process where it stands: connections stay open and nothing is answered. */
  pause(): void;
  resume(): void;
  /** Ends the process at once, as a crash would. What it held is lost. */
  kill(): Promise<void>;
  /** Starts it again, empty, on the same port. */
  restart(): Promise<void>;
  /** Ends the process and removes its folder. */
  stop(): Promise<void>;
}

export interface RedisServerOptions {
  /** A port that is known to be free; else one is found. */
  readonly port?: number;
  /** More of the server's command line. */
  readonly args?: readonly string[];
  /** For the tests' own connection, where `args` set one. */
  readonly password?: string;
  /** Speaks TLS and nothing else, with the tests and with other members too. */
  readonly tls?: ServerTls;
}

/** PEM. */
export interface ServerTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** Starts a server and waits until it takes connections. Stop it in the test that started it. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const { port: wantedPort, args = [], tls } = options;
  const program = inject('redisServer');
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-redis-'));
  const launch = (port: number) => {
    const listening = portSettings(port, folder, tls).flatMap(([name, value]) => [`--${name}`, value]);
    return launchServer(program, folder, [...listening, ...args]);
  };
  const started = await launchOnFreePort(launch, wantedPort);
  const { port } = started;
  let server: ChildProcess | undefined = started.server;
  const url = `redis${tls === undefined ? '' : 's'}://127.0.0.1:${port}`;
  const connect = () => connectTo(port, options);
  let client = connect();

  const kill = async () => {
    client.disconnect();
    const ending = server;
    server = undefined;
    if (ending !== undefined) await end(ending);
  };
  return {
    url,
    port,
    command: (name, ...rest) => client.call(String(name), ...rest),
    disconnect: async (clientName) => {
      const clients = String(await client.call('CLIENT', 'LIST')).split('\n');
      const named = clients.filter((line) => line.includes(` name=${clientName} `));
      const ids = named.map((line) => /^id=(\d+)/.exec(line)?.[1] ?? '');
      for (const id of ids) await client.call('CLIENT', 'KILL', 'ID', id);
      return ids.length;
    },
    pause: () => void server?.kill('SIGSTOP'),
    resume: () => void server?.kill('SIGCONT'),
    kill,
    restart: async () => {
      await kill();
      server = await launch(port);
      if (server === undefined) throw new Error(`port ${port} was taken while the server was away`);
      client = connect();
    },
    stop: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Between finding a free port and taking it somebody else may take it: then another one is tried. */
export async function launchOnFreePort(
  launch: (port: number) => Promise<ChildProcess | undefined>,
  wantedPort: number | undefined,
): Promise<{ port: number; server: ChildProcess }> {
  for (let attempt = 0; attempt < PORT_ATTEMPTS; attempt += 1) {
    const port = wantedPort ?? (await freePort());
    const server = await launch(port);
    if (server !== undefined) return { port, server };
  }
  throw new Error('a Redis server could not be started');
}

/** The process once it takes connections; undefined when it ended instead. */
async function launchServer(
  program: string,
  folder: string,
  args: readonly string[],
): Promise<ChildProcess | undefined> {
  const settings = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
  return launchUntil('Ready to accept connections', program, [...settings, ...args]);
}

/** The process once it has printed this; undefined when it ended instead. */
export async function launchUntil(
  printed: string,
  program: string,
  args: readonly string[],
): Promise<ChildProcess | undefined> {
  const server = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  running.add(server);
  server.once('exit', () => running.delete(server));
  const lines = createInterface({ input: server.stdout });
  const isReady = await new Promise<boolean>((resolve) => {
    lines.on('line', (line) => line.includes(printed) && resolve(true));
    lines.once('close', () => resolve(false));
  });
  return isReady ? server : undefined;
}

export async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exited = once(server, 'exit');
  server.kill('SIGKILL');
  await exited;
}

/** A connection of the tests' own, to a server or sentinel. */
export function connectTo(port: number, { password, tls }: Pick<RedisServerOptions, 'password' | 'tls'>): Redis {
  const access = { ...(password !== undefined && { password }), ...(tls !== undefined && { tls: { ...tls } }) };
  return new Redis(port, '127.0.0.1', { protocol: 2, disableClientInfo: true, ...access }).on('error', () => undefined);
}

/** Of a server or sentinel: its port, with TLS where wanted, certificates in files of this folder. Clients need none. */
export function portSettings(
  port: number,
  folder: string,
  tls: ServerTls | undefined,
): [name: string, value: string][] {
  if (tls === undefined) return [['port', String(port)]];
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  return [
    ['port', '0'],
    ['tls-port', String(port)],
    ['tls-cert-file', file('cert.pem', tls.cert)],
    ['tls-key-file', file('key.pem', tls.key)],
    ['tls-ca-cert-file', file('ca.pem', tls.ca)],
    ['tls-auth-clients', 'no'],
    ['tls-replication', 'yes'],
  ];
}
