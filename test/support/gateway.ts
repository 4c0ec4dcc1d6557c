import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';
import { type GatewayAddresses, startGateway } from '../../src/gateway.ts';
import { startRedis } from './redis-server.ts';

export const ADMIN_TOKEN = 'admin-token-of-the-tests';

export interface TestGateway extends GatewayAddresses {
  /** Every log line so far, parsed. */
  readonly logs: readonly Record<string, unknown>[];
  close(): Promise<void>;
}

type Section = Record<string, unknown>;

/** A gateway as an operator would run it, configured by a file, on free ports of 127.0.0.1. */
export async function startTestGateway(settings: {
  readonly storeUrl: string;
  readonly upstreamUrl: string;
  /** Sections of the configuration file, merged over the defaults of the tests. */
  readonly config?: Record<string, Section>;
}): Promise<TestGateway> {
  const anyPort = { host: '127.0.0.1', port: 0 };
  const { config = {} } = settings;
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-test-'));
  const file = join(folder, 'gateway.yaml');
  const sections: Record<string, Section> = {
    ...config,
    listen: { ...anyPort, ...config.listen },
    ops: anyPort,
    admin: { ...anyPort, token: ADMIN_TOKEN },
    store: { url: settings.storeUrl, ...config.store },
    upstream: { urls: [settings.upstreamUrl], ...config.upstream },
    shutdown: { not_ready_ms: 1, drain_ms: 2000, ...config.shutdown },
  };
  await writeFile(file, stringify(sections));
  const logs: Record<string, unknown>[] = [];
  const logDestination = { write: (line: string) => void logs.push(JSON.parse(line)) };
  const gateway = await startGateway(await loadConfig(file, {}), { logDestination });
  return {
    ...gateway.addresses,
    logs,
    async close() {
      await gateway.close();
      await rm(folder, { recursive: true });
    },
  };
}

export interface TestStore {
  readonly url: string;
  close(): Promise<void>;
}

/** Both stores, for suites that must pass over each. */
export const STORES: readonly { readonly name: string; start(): Promise<TestStore> }[] = [
  {
    name: 'Redis',
    async start() {
      const redis = await startRedis();
      return { url: redis.url, close: () => redis.stop() };
    },
  },
  {
    name: 'the embedded store',
    async start() {
      const folder = await mkdtemp(join(tmpdir(), 'tollgate-store-'));
      return { url: `sqlite:${join(folder, 'store.sqlite')}`, close: () => rm(folder, { recursive: true }) };
    },
  },
];
