/** What happens to Redis, or between it and the gateways, while callers never stop. */
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { type RedisServer, type RedisServerOptions, startRedis } from '../support/redis-server.ts';
import { LIMIT, PATIENT_MS, startLoadedGateways, TIMEOUT_MS } from './loaded-gateways.ts';

/** So many answers of known keys while something is wrong. */
const ANSWERS = 400;
/** Every write is on disk before it is answered, so that a crash loses nothing. */
const DURABLE: RedisServerOptions = { args: ['--appendonly', 'yes', '--appendfsync', 'always'] };
const USER = 'gateway';

interface Store {
  readonly redis: RedisServer;
  readonly proxy: FaultProxy;
}

async function startStore(options?: RedisServerOptions): Promise<Store & { url: string }> {
  const redis = await startRedis(options);
  onTestFinished(() => redis.stop());
  await redis.command('ACL', 'SETUSER', USER, 'on', '>right', '~*', '&*', '+@all');
  const proxy = await startFaultProxy(redis);
  return { redis, proxy, url: `redis://${USER}:right@127.0.0.1:${proxy.port}` };
}

interface Fault {
  readonly name: string;
  readonly options?: RedisServerOptions;
  /** Resolves to what ends it. */
  begin(store: Store): Promise<() => unknown>;
}

/** Does this again and again until it is ended. */
function repeatedly(everyMs: number, act: () => unknown): () => Promise<void> {
  let over = false;
  const done = (async () => {
    while (!over) {
      await act();
      await setTimeout(everyMs);
    }
  })();
  return async () => {
    over = true;
    await done;
  };
}

const OUTAGES: readonly Fault[] = [
  {
    name: 'is killed and started again with its data',
    options: DURABLE,
    async begin({ redis }) {
      await redis.kill();
      return async () => {
        await redis.restart();
        await redis.command('ACL', 'SETUSER', USER, 'on', '>right', '~*', '&*', '+@all');
      };
    },
  },
  {
    name: 'is stopped and goes on',
    async begin({ redis }) {
      redis.pause();
      onTestFinished(() => redis.resume());
      return () => redis.resume();
    },
  },
  {
    name: 'cannot be reached though connections stand',
    async begin({ proxy }) {
      proxy.stall();
      return () => proxy.resume();
    },
  },
  {
    name: 'answers later than anybody waits',
    async begin({ proxy }) {
      proxy.delay(2 * TIMEOUT_MS);
      return () => proxy.delay(0);
    },
  },
  {
    name: 'loses its connections again and again',
    begin: async ({ proxy }) => repeatedly(150, () => proxy.cut()),
  },
  {
    name: 'does what it is asked, and its replies are lost',
    async begin({ proxy }) {
      // More than there will be.
      void proxy.loseReplies('evalsha', 1_000_000);
      return () => proxy.loseReplies('evalsha', 1);
    },
  },
  {
    name: 'has no memory left',
    async begin({ redis }) {
      await redis.command('CONFIG', 'SET', 'maxmemory', 1);
      return () => redis.command('CONFIG', 'SET', 'maxmemory', 0);
    },
  },
  {
    name: 'becomes a replica that takes no writes, and the master again',
    options: { args: ['--repl-diskless-sync-delay', '0'] },
    async begin({ redis }) {
      const other = await startRedis({ args: ['--replicaof', '127.0.0.1', String(redis.port)] });
      onTestFinished(() => other.stop());
      await expect
        .poll(async () => String(await redis.command('INFO', 'replication')), { timeout: 30_000 })
        .toContain('state=online');
      // After two REPLICAOF, the replica would lack what was written between them.
      await redis.command('FAILOVER', 'TO', '127.0.0.1', other.port);
      await expect.poll(async () => String(await redis.command('INFO', 'replication'))).toContain('role:slave');
      return () => redis.command('REPLICAOF', 'NO', 'ONE');
    },
  },
  {
    name: 'refuses the password',
    async begin({ redis }) {
      await redis.command('ACL', 'SETUSER', USER, 'resetpass', '>another');
      await redis.command('CLIENT', 'KILL', 'USER', USER);
      return () => redis.command('ACL', 'SETUSER', USER, 'resetpass', '>right');
    },
  },
];

test.each(OUTAGES)(
  'Redis $name: known keys are served in time, no valid key gets 401, excess requests are bounded, and the gateway recovers',
  async ({ options, begin }) => {
    const { url, ...store } = await startStore(options);
    const system = await startLoadedGateways({
      storeUrl: url,
      records: store.redis,
      timeoutMs: TIMEOUT_MS,
      onError: 'local',
    });
    await system.more(20);
    const end = await begin(store);
    await system.decidedWithoutStore();
    await system.more(ANSWERS);
    await end();
    await system.healed();
    await system.more(20);
    const { known, others } = await system.sound();
    expect([...known].filter((told) => told !== '200 ' && told !== '429 quota_exceeded')).toEqual([]);
    expect([...others].filter((told) => told !== '200 ' && told !== '503 store_unavailable')).toEqual([]);
    expect(system.seen()).toBeGreaterThan(LIMIT / 4);
    expect(system.seen()).toBeLessThanOrEqual(LIMIT + system.shares);
    await system.exactForSomebodyNew();
  },
);

const NUISANCES: readonly Fault[] = [
  {
    name: 'is slow, but not too slow',
    async begin({ proxy }) {
      proxy.delay(100);
      return () => proxy.delay(0);
    },
  },
  {
    name: 'forgets its scripts again and again',
    begin: async ({ redis }) => repeatedly(2, () => redis.command('SCRIPT', 'FLUSH')),
  },
  {
    name: 'forgets which records it should tell of',
    begin: async ({ redis }) => repeatedly(20, () => redis.command('CONFIG', 'SET', 'tracking-table-max-keys', 1)),
  },
];

test.each(NUISANCES)('Redis $name: no request fails, and the limit is exact', async ({ options, begin }) => {
  const { url, ...store } = await startStore(options);
  const system = await startLoadedGateways({
    storeUrl: url,
    records: store.redis,
    timeoutMs: PATIENT_MS,
    onError: 'deny',
  });
  const end = await begin(store);
  await system.more(ANSWERS);
  await end();
  await system.healed();
  const { known, others } = await system.sound();
  expect(known).toEqual(new Set(['200 ', '429 quota_exceeded']));
  expect(others).toEqual(new Set(['200 ']));
  expect(system.seen()).toBeLessThanOrEqual(LIMIT);
  await system.exactForSomebodyNew();
});
