import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage, type RequestListener } from 'node:http';
import { get as getOverTls } from 'node:https';
import { text } from 'node:stream/consumers';
import { expect, vi } from 'vitest';
import { stringify } from 'yaml';
import { temporaryFile } from '../../cli/support.ts';
import { bearer, callAdmin, createCustomerWithKey, type NewCustomer } from '../../support/admin.ts';
import { type Backend, startBackend } from '../../support/backend.ts';
import { closeAtEnd } from '../../support/cleanup.ts';
import { ADMIN_TOKEN } from '../../support/gateway.ts';
import { type RunningGateway, startProgram } from '../../support/process.ts';
import { startRedis } from '../../support/redis-server.ts';

export const PATIENCE = { timeout: 30_000, interval: 50 };

/** The counter of requests, by listener and status. */
export const REQUESTS = 'tollgate_http_requests_total';

export interface WorkersSystem {
  readonly gateway: RunningGateway;
  readonly backend: Backend;
  readonly key: string;
  readonly storeUrl: string;
  readonly file: string;
  readonly sections: Readonly<Record<string, unknown>>;
}

export interface WorkersSettings {
  readonly answer?: RequestListener;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly customer?: NewCustomer;
  /** Of the process, as in {@link startProgram}. */
  readonly env?: Readonly<Record<string, string>>;
}

/** More than the fastest machine can ask for in a test. */
const UNLIMITED = { id: 'acme', plan: 'enterprise', requests_per_hour: 100_000_000 };

/** A gateway process with two workers over a Redis of its own, ready, and a customer; ended by {@link closeAtEnd}. */
export async function startWithWorkers(settings: WorkersSettings = {}): Promise<WorkersSystem> {
  const { answer, config = {}, customer = UNLIMITED, env = {} } = settings;
  const redis = await startRedis();
  closeAtEnd(() => redis.stop());
  const backend = await startBackend(answer);
  closeAtEnd(() => backend.close());
  const anyPort = { host: '127.0.0.1', port: 0 };
  const sections = {
    listen: anyPort,
    ops: anyPort,
    admin: { ...anyPort, token: ADMIN_TOKEN },
    workers: 2,
    // A machine that is busy is no store that is away.
    store: { url: redis.url, timeout_ms: 5000 },
    upstream: { urls: [backend.url], connect_timeout_ms: 10_000 },
    shutdown: { not_ready_ms: 1, drain_ms: 15_000 },
    ...config,
  };
  const file = await temporaryFile('gateway.yaml', stringify(sections));
  const gateway = await startProgram({ args: ['--config', file], env });
  await isReady(gateway);
  return { gateway, backend, key: await createCustomerWithKey(gateway, customer), storeUrl: redis.url, file, sections };
}

async function isReady({ ops }: Pick<RunningGateway, 'ops'>): Promise<void> {
  // Not `expect.poll`, which only a test may call: this also runs before the tests that share a gateway.
  await vi.waitFor(async () => expect((await fetch(`${ops}/readyz`)).status).toBe(200), PATIENCE);
}

export interface WorkerDocument {
  readonly id: number;
  readonly pid: number | null;
  readonly ready: boolean;
  readonly config_hash: string | null;
  readonly restarts: number;
}

export async function workersOf(gateway: RunningGateway): Promise<WorkerDocument[]> {
  return (await callAdmin(gateway, '/status')).body.workers;
}

export interface Outcome {
  /** Undefined: no complete answer. */
  readonly status: number | undefined;
  /** The gateway ends the connection behind it. */
  readonly closes: boolean;
}

/** One request over the agent's connections. */
export async function request(agent: Agent, url: string, key: string): Promise<Outcome> {
  try {
    const send = url.startsWith('https:') ? getOverTls : get;
    const req = send(`${url}/v1/conversations`, { agent, headers: bearer(key) });
    const [res] = (await once(req, 'response')) as [IncomingMessage];
    await text(res);
    return { status: res.statusCode, closes: res.headers.connection === 'close' };
  } catch {
    return { status: undefined, closes: true };
  }
}

export function agentOfTest(options: { keepAlive: boolean; maxSockets?: number }): Agent {
  const agent = new Agent(options);
  closeAtEnd(() => agent.destroy());
  return agent;
}

/** By status; requests without an answer under `none`. */
export function tally(outcomes: readonly Outcome[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status = 'none' } of outcomes) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** Returns the sum over all series of a metric. */
export function sum(samples: Readonly<Record<string, number>>): number {
  return Object.values(samples).reduce((so, each) => so + each, 0);
}

/** Whether the process has exited and is not reaped yet. Needs /proc. Its sockets are open until its last thread has exited. */
export function isZombie(pid: number | null | undefined): boolean {
  const hasOneThread = readdirSync(`/proc/${pid}/task`).length === 1;
  return hasOneThread && /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}
