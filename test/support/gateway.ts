import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Clock } from '../../src/base/clock.ts';
import type { Environment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load.ts';
import { startGateway } from '../../src/process/gateway.ts';
import type { Gateway, GatewayAddresses } from '../../src/process/lifecycle.ts';
import { startRedis } from './redis-server.ts';
import { createStoreFile } from './store-file.ts';

export const ADMIN_TOKEN = 'admin-token-of-the-tests';

export interface TestGateway extends GatewayAddresses {
  /** Empty without a backend. */
  readonly public: string;
  /** Empty without a section `check`. */
  readonly check: string;
  /** Every log line so far, parsed. */
  readonly logs: readonly Record<string, unknown>[];
  /** Its configuration file. */
  readonly file: string;
  /** As they stand in that file at the start. */
  readonly sections: Readonly<Record<string, Section>>;
  /** Reads its configuration file again. */
  readonly reload: Gateway['reload'];
  /** Closes it once, however often it is called. */
  close(): Promise<void>;
}

type Section = Record<string, unknown>;

/** A gateway as an operator would run it, configured by a file, on free ports of 127.0.0.1. */
export async function startTestGateway(settings: {
  readonly storeUrl: string;
  /** Undefined: no backend, and no public listener. */
  readonly upstreamUrl: string | undefined;
  /** Sections of the configuration file, merged over the defaults of the tests. */
  readonly config?: Record<string, Section>;
  readonly clock?: Clock;
  /** Of the process; empty by default. */
  readonly environment?: Environment;
}): Promise<TestGateway> {
  const anyPort = { host: '127.0.0.1', port: 0 };
  const { config = {}, clock, environment = {} } = settings;
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-test-'));
  const file = join(folder, 'gateway.yaml');
  const sections: Record<string, Section> = {
    ...config,
    listen: { ...anyPort, ...config.listen },
    ops: anyPort,
    admin: { ...anyPort, token: ADMIN_TOKEN, ...config.admin },
    // Twenty times the default: on a busy machine, Redis may stand still for longer than that.
    store: { url: settings.storeUrl, timeout_ms: 2000, ...config.store },
    ...(settings.upstreamUrl && { upstream: { urls: [settings.upstreamUrl], ...config.upstream } }),
    shutdown: { not_ready_ms: 1, drain_ms: 2000, ...config.shutdown },
  };
  await writeFile(file, stringify(sections));
  const logs: Record<string, unknown>[] = [];
  const logDestination = { write: (line: string) => void logs.push(JSON.parse(line)) };
  const removeFolder = () => rm(folder, { recursive: true });
  try {
    const gateway = await startGateway(await loadConfig(file, environment), {
      logDestination,
      environment,
      ...(clock && { clock }),
    });
    let closed: Promise<void> | undefined;
    return {
      ...gateway.addresses,
      public: gateway.addresses.public ?? '',
      check: gateway.addresses.check ?? '',
      logs,
      file,
      sections,
      reload: gateway.reload,
      close() {
        closed ??= gateway.close().then(removeFolder);
        return closed;
      },
    };
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

export interface TestStore {
  readonly url: string;
  close(): Promise<void>;
}

export interface StoreKind {
  readonly name: string;
  start(): Promise<TestStore>;
}

export const REDIS_STORE: StoreKind = {
  name: 'Redis',
  async start() {
    const redis = await startRedis();
    return { url: redis.url, close: () => redis.stop() };
  },
};

/** For suites to which it is all the same where records are kept: it needs no server. */
export const EMBEDDED_STORE: StoreKind = {
  name: 'the embedded store',
  async start() {
    const folder = await mkdtemp(join(tmpdir(), 'tollgate-store-'));
    return { url: createStoreFile(folder), close: () => rm(folder, { recursive: true }) };
  },
};

/** Both stores, for suites that must pass over each. */
export const STORES: readonly StoreKind[] = [REDIS_STORE, EMBEDDED_STORE];
