/** Checks for an operator whether a gateway could use a Redis, without writing anything to it. */
import type { Clock } from '../../base/clock.ts';
import type { RedisAddress } from '../../formats/store-address.ts';
import type { StoreFinding } from '../store.ts';
import type { ClientOptions, RedisClient } from './connection/client.ts';
import { RedisConnection } from './connection/connection.ts';
import { checkServer } from './connection/server-check.ts';
import { memberOptions, type RedisSecurity, serverOptions } from './connection/server-options.ts';
import { checkPermissions } from './permission-check.ts';
import { addressOf, slotMapFrom } from './protocol/hash-slots.ts';
import { redisKeyNames } from './protocol/key-names.ts';
import { describe, UnexpectedReplyError } from './protocol/redis-errors.ts';

const REPLY_TIMEOUT_MS = 2000;
/** Above the difference that NTP leaves, and below what an operator would notice in expiry times. */
const CLOCK_DIFFERENCE_MS = 1000;
const FIRST_MAJOR_WITH_READ_ONLY_SCRIPTS = 7;

interface TryRedisOptions extends RedisSecurity {
  readonly keyPrefix: string;
  readonly clock: Clock;
}

/** Tries one server, the master that the sentinels name, or each master of a cluster. Never rejects. */
export async function tryRedis(address: RedisAddress, options: TryRedisOptions): Promise<readonly StoreFinding[]> {
  try {
    if (address.kind !== 'cluster') return await tryServer(serverOptions(address, options), options);
    const { masters, isWhole } = await mastersOf(address, options);
    const attempts = masters.map(async (master) => {
      const findings = await tryServer(memberOptions(master, address, options), options).catch(failed);
      return findings.map(({ outcome, text }) => ({ outcome, text: `master ${addressOf(master)}: ${text}` }));
    });
    const findings = (await Promise.all(attempts)).flat();
    return isWhole ? findings : [...findings, { outcome: 'error', text: 'the cluster has slots without a master' }];
  } catch (error) {
    return failed(error);
  }
}

function failed(error: unknown): StoreFinding[] {
  return [{ outcome: 'error', text: describe(error) }];
}

/** Resolves to the masters, as reported by the first seed that responds. */
async function mastersOf(address: RedisAddress & { kind: 'cluster' }, options: TryRedisOptions) {
  const faults: unknown[] = [];
  for (const seed of address.seeds) {
    const server = { ...memberOptions(seed, address, options), anyRole: true };
    try {
      const { masters, nodes } = slotMapFrom(
        await withRedis(server, options, (redis) => redis.cluster('SLOTS')),
        seed.host,
      );
      const owners = new Set(masters);
      const found = [...nodes].flatMap(([name, node]) => (owners.has(name) ? [node] : []));
      return { masters: found, isWhole: !owners.has(undefined) };
    } catch (error) {
      faults.push(error);
    }
  }
  throw new AggregateError(faults);
}

function tryServer(server: ClientOptions, options: TryRedisOptions): Promise<StoreFinding[]> {
  return withRedis(server, options, async (redis) => {
    const { version, maxmemoryPolicy, warnings } = await checkServer(redis);
    const aheadMs = await clockDifferenceMs(redis, options.clock);
    const canCheck = Number.parseInt(version ?? '', 10) >= FIRST_MAJOR_WITH_READ_ONLY_SCRIPTS;
    const refused = canCheck ? await checkPermissions(redis, redisKeyNames(options.keyPrefix), { readOnly: true }) : [];
    const rights = canCheck ? 'all commands permitted' : 'permissions not checked (Redis 7 or newer, and INFO, needed)';
    const facts = [
      `Redis ${version ?? 'of unknown version'}`,
      `maxmemory-policy ${maxmemoryPolicy ?? 'unknown'}`,
      `clock ${inWords(aheadMs)}`,
      ...(refused.length === 0 ? [rights] : []),
    ];
    if (Math.abs(aheadMs) > CLOCK_DIFFERENCE_MS) {
      warnings.push(
        `compared with this machine, its clock is ${inWords(aheadMs)}: quotas use the clock of Redis, expiry times of keys that of the gateway`,
      );
    }
    return [
      { outcome: 'ok' as const, text: facts.join(', ') },
      ...warnings.map((text) => ({ outcome: 'warning' as const, text })),
      ...refused.map((text) => ({ outcome: 'error' as const, text })),
    ];
  });
}

function inWords(aheadMs: number): string {
  return `${Math.abs(aheadMs)} ms ${aheadMs < 0 ? 'behind' : 'ahead'}`;
}

/** Returns how far Redis' clock is ahead of this machine's, in ms. The round-trip time limits the accuracy. */
async function clockDifferenceMs(redis: RedisClient, clock: Clock): Promise<number> {
  const sentMs = clock.nowMs();
  const [seconds, microseconds] = (await redis.time()).map(Number);
  const receivedMs = clock.nowMs();
  if (seconds === undefined || microseconds === undefined) throw new UnexpectedReplyError('TIME');
  return Math.round(seconds * 1000 + microseconds / 1000 - (sentMs + receivedMs) / 2);
}

async function withRedis<T>(
  { anyRole = false, ...server }: ClientOptions & { readonly anyRole?: boolean },
  { clock }: TryRedisOptions,
  work: (redis: RedisClient) => Promise<T>,
): Promise<T> {
  let reason = 'no connection';
  const connection = new RedisConnection({
    server,
    name: 'tollgate-check',
    commandTimeoutMs: REPLY_TIMEOUT_MS,
    socketTimeoutMs: REPLY_TIMEOUT_MS,
    clock,
    observer: { called() {}, up() {} },
    anyRole,
    onChange(failure) {
      reason = failure ?? reason;
    },
  });
  try {
    await connection.open();
    if (!connection.connected) throw new Error(reason);
    return await connection.attempt(work);
  } finally {
    await connection.close();
  }
}
