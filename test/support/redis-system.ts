import { createHash } from 'node:crypto';
import type { RequestListener } from 'node:http';
import type { Clock } from '../../src/base/clock.ts';
import { type Backend, startBackend } from './backend.ts';
import { closeAtEnd } from './cleanup.ts';
import { startTestGateway, type TestGateway } from './gateway.ts';
import { type RedisServer, startRedis } from './redis-server.ts';

const PREFIX = 'tollgate';
const CUSTOMER = 'acme';
const KEY = 'key-of-acme';

export interface RedisSystem {
  readonly redis: RedisServer;
  readonly backend: Backend;
  /** The first of `gateways`. */
  readonly gateway: TestGateway;
  readonly gateways: readonly TestGateway[];
  readonly customer: string;
  /** Of that customer. */
  readonly key: string;
}

export interface RedisSystemSettings {
  readonly gateways?: number;
  /** Sections of every gateway's configuration file. */
  readonly config?: Record<string, Record<string, unknown>>;
  /** Fields of the customer's record. */
  readonly customer?: Record<string, string | number>;
  readonly answer?: RequestListener;
  /** Done to the empty Redis; may name another URL for the gateways. */
  readonly prepare?: (redis: RedisServer) => Promise<string | undefined>;
  readonly clock?: Clock;
}

/**
 * Gateways of this process that share a Redis and a backend, with one customer that another program wrote. All is closed
 * by {@link closeAtEnd}.
 */
export async function startRedisSystem(settings: RedisSystemSettings = {}): Promise<RedisSystem> {
  const { gateways: count = 1, config = {}, customer = { plan: 'starter' }, answer, prepare, clock } = settings;
  const redis = await startRedis();
  closeAtEnd(() => redis.stop());
  const storeUrl = (await prepare?.(redis)) ?? redis.url;
  const backend = await startBackend(answer);
  closeAtEnd(() => backend.close());
  const gateways: TestGateway[] = [];
  for (let i = 0; i < count; i++) {
    const gateway = await startTestGateway({ storeUrl, upstreamUrl: backend.url, config, ...(clock && { clock }) });
    closeAtEnd(() => gateway.close());
    gateways.push(gateway);
  }
  const [gateway] = gateways;
  if (gateway === undefined) throw new Error('a system needs a gateway');
  await writeCustomer(redis, CUSTOMER, customer);
  await writeKey(redis, KEY, CUSTOMER);
  return { redis, backend, gateway, gateways, customer: CUSTOMER, key: KEY };
}

export const customerName = (customer: string): string => `${PREFIX}:customer:{${customer}}`;
export const keyName = (key: string): string => `${PREFIX}:key:${createHash('sha256').update(key).digest('hex')}`;
export const windowName = (customer: string): string => `${PREFIX}:window:{${customer}}`;
export const INSTALLED_NAME = `${PREFIX}:installed`;
export const INSTANCES_NAME = `${PREFIX}:instances`;

/** A server, or the members of a cluster. */
interface CommandsByName {
  command(command: string, name: string, ...args: string[]): Promise<unknown>;
}

/** Says of a store without records what `store init` says: nothing is missing. Unknown keys are invalid from the start. */
export async function acceptAsEmpty(redis: CommandsByName, prefix = PREFIX): Promise<void> {
  await redis.command('SET', `${prefix}:installed`, 'init-test');
}

/** Writes fields of a customer's record, as a dashboard would. */
export async function writeCustomer(
  redis: Pick<RedisServer, 'command'>,
  customer: string,
  fields: Record<string, string | number>,
): Promise<void> {
  await redis.command('HSET', customerName(customer), ...Object.entries(fields).flat());
}

export async function writeKey(redis: Pick<RedisServer, 'command'>, key: string, customer: string): Promise<void> {
  await redis.command('HSET', keyName(key), 'id', `id-of-${key}`, 'customer', customer);
}

/** Lets the store know of instances that run elsewhere. */
export async function announceOthers(redis: RedisServer, count: number): Promise<void> {
  const members = Array.from({ length: count }, (_, i) => [Date.now(), `other-${i}`]);
  await redis.command('ZADD', INSTANCES_NAME, ...members.flat());
}

export interface StoredWindow {
  /** Units counted. */
  readonly used: number;
  /** Store time in ms at which the last open hold ends. */
  readonly holdEndMs: number;
}

/** The head of a customer's window, as it is stored. */
export async function readWindow(redis: RedisServer, customer: string): Promise<StoredWindow> {
  const head = await redis.command('HGET', windowName(customer), 'head');
  if (typeof head !== 'string') return { used: 0, holdEndMs: 0 };
  const [, used, , , holdEndMs] = head.split(' ');
  return { used: Number(used), holdEndMs: Number(holdEndMs) };
}

export async function storeTimeMs(redis: RedisServer): Promise<number> {
  const [seconds, microseconds] = (await redis.command('TIME')) as [string, string];
  return Number(seconds) * 1000 + Number(microseconds) / 1000;
}

export interface CommandStats {
  readonly calls: number;
}

/** What Redis did since its start or the last CONFIG RESETSTAT, by command in lower case. */
export async function readCommandStats(redis: RedisServer): Promise<Map<string, CommandStats>> {
  const info = String(await redis.command('INFO', 'commandstats'));
  const lines = info.matchAll(/^cmdstat_(\S+?):calls=(\d+),/gm);
  return new Map([...lines].map(([, name = '', calls]) => [name, { calls: Number(calls) }]));
}

/** Calls of scripts: every reservation, refund and report is one. */
export async function readScriptCalls(redis: RedisServer): Promise<number> {
  const stats = await readCommandStats(redis);
  return (stats.get('evalsha')?.calls ?? 0) + (stats.get('eval')?.calls ?? 0);
}
