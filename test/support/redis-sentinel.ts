/** A real master with a replica, watched by three sentinels, for tests. */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { inject } from 'vitest';
import { eventually } from './eventually.ts';
import {
  connectTo,
  end,
  launchOnFreePort,
  launchUntil,
  portSettings,
  type RedisServer,
  type ServerTls,
  startRedis,
} from './redis-server.ts';

const SENTINELS = 3;
const QUORUM = 2;
const MASTER_NAME = 'the-master';

export interface SentinelSystem {
  readonly url: string;
  /** The first is the master at the beginning. */
  readonly servers: readonly [RedisServer, RedisServer];
  readonly sentinelPorts: readonly number[];
  /** Who is the master, as the sentinels have it. */
  master(): Promise<RedisServer>;
  /** Asks the sentinels for a failover. */
  failover(): Promise<void>;
  stop(): Promise<void>;
}

export interface SentinelSettings {
  /** More of the servers' command line. */
  readonly args?: readonly string[];
  /** Of Redis, where `args` set one. */
  readonly password?: string;
  readonly sentinelPassword?: string;
  /** More lines of the sentinels' configuration. */
  readonly sentinelLines?: readonly string[];
  /** All of them speak TLS and nothing else. */
  readonly tls?: ServerTls;
  /** After so long a silent master counts as lost. */
  readonly downAfterMs?: number;
}

export async function startSentinelSystem(settings: SentinelSettings = {}): Promise<SentinelSystem> {
  const { args = [], password, sentinelPassword, sentinelLines = [], tls, downAfterMs = 1000 } = settings;
  await using started = new AsyncDisposableStack();
  const startServer = async (more: readonly string[] = []) => {
    const server = await startRedis({
      args: ['--repl-diskless-sync-delay', '0', ...args, ...more],
      ...(password !== undefined && { password }),
      ...(tls !== undefined && { tls }),
    });
    started.defer(() => server.stop());
    return server;
  };
  const first = await startServer();
  const second = await startServer(['--replicaof', '127.0.0.1', String(first.port)]);
  await eventually('the replica is in step', async () => {
    return String(await second.command('INFO', 'replication')).includes('master_link_status:up');
  });

  const folder = mkdtempSync(join(tmpdir(), 'tollgate-sentinel-'));
  started.defer(() => rmSync(folder, { recursive: true, force: true }));
  const sentinelPorts: number[] = [];
  for (let number = 0; number < SENTINELS; number += 1) {
    const { port, server } = await launchSentinel(folder, tls, [
      `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${first.port} ${QUORUM}`,
      `sentinel down-after-milliseconds ${MASTER_NAME} ${downAfterMs}`,
      `sentinel failover-timeout ${MASTER_NAME} 2000`,
      ...(password === undefined ? [] : [`sentinel auth-pass ${MASTER_NAME} ${password}`]),
      ...(sentinelPassword === undefined ? [] : [`requirepass ${sentinelPassword}`]),
      ...sentinelLines,
    ]);
    started.defer(() => end(server));
    sentinelPorts.push(port);
  }
  const [sentinelPort = 0] = sentinelPorts;
  const sentinel = connectTo(sentinelPort, {
    ...(sentinelPassword !== undefined && { password: sentinelPassword }),
    ...(tls !== undefined && { tls }),
  });
  started.defer(() => sentinel.disconnect());
  const servers = [first, second] as const;
  const running = started.move();
  const system: SentinelSystem = {
    url: `redis${tls === undefined ? '' : 's'}+sentinel://${sentinelPorts.map((port) => `127.0.0.1:${port}`).join(',')}/${MASTER_NAME}`,
    servers,
    sentinelPorts,
    async master() {
      const [, port] = (await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME)) as [string, string];
      const found = servers.find((server) => server.port === Number(port));
      if (found === undefined) throw new Error('the sentinels know no master');
      return found;
    },
    async failover() {
      const before = await system.master();
      await eventually('another one is the master', async () => {
        if ((await system.master()) !== before) return true;
        // Refused for a while after the last failover, and abandoned where Sentinel holds the replica for unfit.
        await sentinel.call('SENTINEL', 'FAILOVER', MASTER_NAME).catch(() => undefined);
        return false;
      });
    },
    stop: () => running.disposeAsync(),
  };
  try {
    await eventually('the sentinels know each other', () => isWatched(sentinel));
  } catch (error) {
    await system.stop();
    throw error;
  }
  return system;
}

/** The replica and the other sentinels are known, and enough of them. */
async function isWatched(sentinel: Redis): Promise<boolean> {
  const flat = (await sentinel.call('SENTINEL', 'MASTER', MASTER_NAME)) as string[];
  const field = (name: string) => flat[flat.indexOf(name) + 1];
  return field('num-slaves') === '1' && field('num-other-sentinels') === String(SENTINELS - 1);
}

function launchSentinel(
  folder: string,
  tls: ServerTls | undefined,
  lines: readonly string[],
): Promise<{ port: number; server: ChildProcess }> {
  const program = inject('redisServer');
  return launchOnFreePort((port) => {
    const file = join(folder, `sentinel-${port}.conf`);
    const listening = portSettings(port, folder, tls).map((setting) => setting.join(' '));
    writeFileSync(file, ['bind 127.0.0.1', ...listening, `dir ${folder}`, ...lines, ''].join('\n'));
    return launchUntil('+monitor master', program, [file, '--sentinel']);
  }, undefined);
}
