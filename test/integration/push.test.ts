/** What another program changes in Redis holds in every gateway at once, and without the push when the cache ends. */
import { expect, test } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import { awakeMs } from '../support/awake-clock.ts';
import { startShared } from '../support/cleanup.ts';
import type { TestGateway } from '../support/gateway.ts';
import type { RedisServer } from '../support/redis-server.ts';
import {
  customerName,
  keyName,
  type RedisSystem,
  readCommandStats,
  startRedisSystem,
  writeCustomer,
  writeKey,
} from '../support/redis-system.ts';

const GATEWAYS = 3;
/** A tenth of it is what it takes; the rest is for a busy machine. */
const AT_ONCE_MS = 5000;
const CACHE_SECONDS = 1;

function read({ public: url }: TestGateway, key: string, path = '/v1/conversations'): Promise<Response> {
  return fetch(url + path, { headers: bearer(key) });
}

/** Asks every gateway again and again until its answer is as wanted. Resolves to the time that the last one took. */
async function untilEverywhere(
  { gateways, key }: RedisSystem,
  isWanted: (answer: Response) => boolean,
  timeoutMs = 10_000,
): Promise<number> {
  const startedMs = awakeMs();
  await Promise.all(
    gateways.map(async (gateway) => {
      for (;;) {
        const answer = await read(gateway, key);
        await answer.arrayBuffer();
        if (isWanted(answer)) return;
        if (awakeMs() - startedMs > timeoutMs) throw new Error(`still ${answer.status}`);
      }
    }),
  );
  return awakeMs() - startedMs;
}

async function startWarm(settings: Parameters<typeof startRedisSystem>[0] = {}): Promise<RedisSystem> {
  const system = await startRedisSystem({ gateways: GATEWAYS, customer: { plan: 'business' }, ...settings });
  await untilEverywhere(system, ({ status }) => status === 200);
  return system;
}

let customers = 0;

/** Adds a customer with a key, and lets every gateway read both. Returns the system with that customer and key. */
async function withNewCustomer(system: RedisSystem): Promise<RedisSystem> {
  customers += 1;
  const customer = `customer-${customers}`;
  const key = `key-of-${customer}`;
  await writeCustomer(system.redis, customer, { plan: 'business' });
  await writeKey(system.redis, key, customer);
  const ofCustomer = { ...system, customer, key };
  await untilEverywhere(ofCustomer, ({ status }) => status === 200);
  return ofCustomer;
}

const shared = startShared(() => startWarm());
const sharedWithoutPush = startShared(() =>
  startWarm({
    config: { auth: { cache_seconds: CACHE_SECONDS } },
    prepare: async (redis: RedisServer) => {
      await redis.command('ACL', 'SETUSER', 'gateway', 'on', '>secret', '~*', '&*', '+@all', '-client|tracking');
      return redis.url.replace('//', '//gateway:secret@');
    },
  }),
);

const CHANGES = [
  {
    name: 'a key that is revoked',
    make: ({ redis, key }: RedisSystem) => redis.command('HSET', keyName(key), 'revoked_at', '2026-01-01T00:00:00Z'),
    isEffective: ({ status }: Response) => status === 401,
  },
  {
    name: 'a key that is deleted',
    make: ({ redis, key }: RedisSystem) => redis.command('DEL', keyName(key)),
    isEffective: ({ status }: Response) => status === 401,
  },
  {
    name: 'a customer that is suspended',
    make: ({ redis, customer }: RedisSystem) => writeCustomer(redis, customer, { suspended: 1 }),
    isEffective: ({ status }: Response) => status === 403,
  },
  {
    name: 'a plan that is changed',
    make: ({ redis, customer }: RedisSystem) => writeCustomer(redis, customer, { plan: 'professional' }),
    isEffective: ({ headers }: Response) => headers.get('x-ratelimit-limit') === '5000',
  },
];

test.each(CHANGES)('$name by another program holds in every gateway at once', async ({ make, isEffective }) => {
  const system = await withNewCustomer(shared());
  await make(system);
  expect(await untilEverywhere(system, isEffective)).toBeLessThan(AT_ONCE_MS);
});

test('a customer that is suspended in the middle of long leases is refused in every gateway at once', async () => {
  let passedMs = 0;
  const clock = { nowMs: () => Date.now() + passedMs, monotonicMs: () => performance.now() + passedMs };
  const system = await startWarm({ clock });
  const { redis, gateways, customer, key } = system;
  const leasesOf = async (gateway: TestGateway): Promise<{ units: number; ends_in_seconds: number }[]> =>
    (await callAdmin(gateway, `/admin/v1/customers/${customer}/explain`)).body.instance.leases;
  // Rates are counted in slots of this length: at the end of one, what the slot before it had counts little.
  const slotMs = 10_000;
  const toNextSlot = () => {
    passedMs += slotMs - (clock.monotonicMs() % slotMs);
  };
  // A few requests, and then another in a while.
  toNextSlot();
  for (let request = 0; request < 5; request++) await untilEverywhere(system, ({ status }) => status === 200);
  toNextSlot();
  await untilEverywhere(system, ({ status }) => status === 200);
  await untilEverywhere(system, ({ status }) => status === 200);
  const startedMs = awakeMs();
  await writeCustomer(redis, customer, { suspended: 1 });
  for (const gateway of gateways) {
    expect((await read(gateway, key)).status).toBe(403);
    const [lease] = await leasesOf(gateway);
    expect(lease?.units).toBeGreaterThan(0);
    expect(lease?.ends_in_seconds).toBeGreaterThan(1);
  }
  expect(awakeMs() - startedMs).toBeLessThan(AT_ONCE_MS);
});

test.each(CHANGES)('$name while nothing is pushed holds when auth.cache_seconds are over', async (change) => {
  const system = await withNewCustomer(sharedWithoutPush());
  for (const gateway of system.gateways) {
    expect((await callAdmin(gateway, '/status')).body.invalidation).toEqual({ connected: false });
  }
  await change.make(system);
  expect(await untilEverywhere(system, change.isEffective)).toBeLessThan(1000 * CACHE_SECONDS + AT_ONCE_MS);
});

test('a change made while the push was interrupted applies once the push is back', async () => {
  const system = await startWarm();
  const { redis, key } = system;
  expect(await redis.disconnect('tollgate-push')).toBe(GATEWAYS);
  // Nobody connects again within the next 50 ms.
  await redis.command('HSET', keyName(key), 'revoked_at', '2026-01-01T00:00:00Z');
  expect(await untilEverywhere(system, ({ status }) => status === 401)).toBeLessThan(2 * AT_ONCE_MS);
});

test('a key that was refused as unknown is served as soon as another program creates it', async () => {
  const system = shared();
  const { redis, gateways, customer } = system;
  const created = 'key-that-comes-later';
  for (const gateway of gateways) expect((await read(gateway, created)).status).toBe(401);
  await writeKey(redis, created, customer);
  const tookMs = await untilEverywhere({ ...system, key: created }, ({ status }) => status === 200);
  expect(tookMs).toBeLessThan(AT_ONCE_MS);
});

test('requests and the windows they write cause no push: no record is read again', async () => {
  const { redis, gateways, key } = await startWarm();
  await redis.command('CONFIG', 'RESETSTAT');
  for (let round = 0; round < 20; round++) {
    await Promise.all(gateways.map(async (gateway) => expect((await read(gateway, key)).status).toBe(200)));
  }
  const stats = await readCommandStats(redis);
  expect(stats.get('evalsha')?.calls).toBeGreaterThan(0);
  expect(stats.get('hmget')).toBeUndefined();
});

/** A limit of 2 that is used up, and a refusal that each gateway remembers. */
async function startUsedUp(): Promise<RedisSystem> {
  const system = await startRedisSystem({
    gateways: GATEWAYS,
    customer: { plan: 'enterprise', requests_per_hour: 2 },
  });
  await untilEverywhere(system, ({ status }) => status === 429);
  return system;
}

test('a limit that another program raises ends every remembered refusal at once', async () => {
  const system = await startUsedUp();
  const { redis, customer, backend } = system;
  await writeCustomer(redis, customer, { requests_per_hour: 2 + GATEWAYS });
  expect(await untilEverywhere(system, ({ status }) => status === 200)).toBeLessThan(AT_ONCE_MS);
  expect(backend.seen).toHaveLength(2 + GATEWAYS);
});

test('a usage reset ends every remembered refusal at once, and the whole limit can be used again', async () => {
  const system = await startUsedUp();
  const { backend, customer, gateway } = system;
  const reset = await callAdmin(gateway, `/admin/v1/customers/${customer}/usage`, { method: 'DELETE' });
  expect(reset.status).toBeLessThan(300);
  const allowed = () => backend.seen.length - 2;
  await expect.poll(async () => (await read(gateway, system.key)).status, { interval: 5 }).toBe(200);
  await untilEverywhere(system, ({ status }) => status === 429);
  expect(allowed()).toBe(2);
});

test('a suspended customer that is reinstated is served at once in every gateway', async () => {
  const system = await withNewCustomer(shared());
  const { redis, customer } = system;
  await writeCustomer(redis, customer, { suspended: 1 });
  await untilEverywhere(system, ({ status }) => status === 403);
  await redis.command('HDEL', customerName(customer), 'suspended');
  expect(await untilEverywhere(system, ({ status }) => status === 200)).toBeLessThan(AT_ONCE_MS);
});
