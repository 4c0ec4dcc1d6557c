/**
 * A Redis that could be reached and refused reservations was invisible: with `maxmemory` reached under `noeviction`, or EVAL
 * taken away by ACL, quotas were decided locally while `tollgate_store_up` was 1, `tollgate_degraded` 0, `/readyz` clean and
 * the log silent. So was a single customer's window that another program had damaged, for ever. A report of requests that
 * were served meanwhile, which Redis refused too, was dropped: they counted nowhere.
 */
import { expect, onTestFinished, test } from 'vitest';
import { bearer, callAdmin } from '../support/admin.ts';
import type { TestGateway } from '../support/gateway.ts';
import { startTestGateway } from '../support/gateway.ts';
import { readMetric } from '../support/metrics.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { INSTANCES_NAME, type RedisSystem, readWindow, startRedisSystem, windowName } from '../support/redis-system.ts';

const PASSWORD = 'password-of-the-gateway';
const REFUSES = 'the store refuses reservations: quotas follow store.on_error';
const TAKES = 'the store accepts reservations again';
const DAMAGED = /^the quota window of this customer is damaged/;

async function startSystem(): Promise<RedisSystem & { passMs(ms: number): void }> {
  let passedMs = 0;
  const system = await startRedisSystem({
    // With so low a limit leases are short, so that Redis soon counts just what the backend saw.
    customer: { plan: 'enterprise', requests_per_hour: 100 },
    prepare: async (redis) => {
      await redis.command('ACL', 'SETUSER', 'gateway', 'on', `>${PASSWORD}`, 'allkeys', 'allchannels', '+@all');
      return `redis://gateway:${PASSWORD}@127.0.0.1:${redis.port}`;
    },
    clock: {
      nowMs: () => Date.now() + passedMs,
      monotonicMs: () => performance.now() + passedMs,
    },
  });
  return {
    ...system,
    passMs(ms) {
      passedMs += ms;
    },
  };
}

async function send({ gateway, key }: Pick<RedisSystem, 'gateway' | 'key'>): Promise<number> {
  return (await fetch(`${gateway.public}/v1/conversations`, { headers: bearer(key) })).status;
}

async function readiness({ ops }: TestGateway) {
  return (await (await fetch(`${ops}/readyz`)).json()) as { status: string; reasons: string[] };
}

async function gauges(gateway: TestGateway) {
  const value = async (name: string) => (await readMetric(gateway, name))[''];
  return {
    up: await value('tollgate_store_up'),
    refusing: await value('tollgate_store_refusing'),
    degraded: await value('tollgate_degraded'),
  };
}

function lines({ logs }: TestGateway, message: string | RegExp) {
  return logs.filter(({ msg }) => (typeof message === 'string' ? msg === message : message.test(String(msg))));
}

test.each([
  {
    name: 'is full',
    begin: (redis: RedisServer) => redis.command('CONFIG', 'SET', 'maxmemory', 1),
    end: (redis: RedisServer) => redis.command('CONFIG', 'SET', 'maxmemory', 0),
    reason: /^OOM /,
  },
  {
    name: 'forbids scripts',
    begin: (redis: RedisServer) => redis.command('ACL', 'SETUSER', 'gateway', '-eval', '-evalsha'),
    end: (redis: RedisServer) => redis.command('ACL', 'SETUSER', 'gateway', '+eval', '+evalsha'),
    reason: /^NOPERM .*evalsha/,
  },
  {
    name: 'forbids a command of the script',
    begin: (redis: RedisServer) => redis.command('ACL', 'SETUSER', 'gateway', '-hincrby'),
    end: (redis: RedisServer) => redis.command('ACL', 'SETUSER', 'gateway', '+hincrby'),
    reason: /can't run this command|NOPERM/,
  },
  {
    name: 'has too few replicas to write',
    begin: (redis: RedisServer) => redis.command('CONFIG', 'SET', 'min-replicas-to-write', 1),
    end: (redis: RedisServer) => redis.command('CONFIG', 'SET', 'min-replicas-to-write', 0),
    reason: /^NOREPLICAS /,
  },
])(
  'a Redis that $name makes the gateway degraded, logged once, until it accepts reservations again',
  async ({ begin, end, reason }) => {
    const system = await startSystem();
    const { redis, gateway, backend, customer } = system;
    expect(await send(system)).toBe(200);
    expect(await readiness(gateway)).toEqual({ status: 'ready', reasons: [] });

    await begin(redis);
    for (let i = 0; i < 5; i++) expect(await send(system)).toBe(200);
    expect(await readiness(gateway)).toEqual({ status: 'degraded', reasons: ['store_refusing'] });
    expect(await gauges(gateway)).toEqual({ up: 1, refusing: 1, degraded: 1 });
    const said = lines(gateway, REFUSES);
    expect(said).toMatchObject([{ reason: expect.stringMatching(reason) }]);
    expect(JSON.stringify(gateway.logs)).not.toContain(PASSWORD);
    expect((await callAdmin(gateway, '/status')).body).toMatchObject({ store: { up: true, refusing: true } });

    await end(redis);
    // A store at the edge of its memory is not said to be well after each write.
    expect(await send(system)).toBe(200);
    expect((await gauges(gateway)).refusing).toBe(1);
    system.passMs(10_000);
    expect(await send(system)).toBe(200);
    expect(await readiness(gateway)).toEqual({ status: 'ready', reasons: [] });
    expect(await gauges(gateway)).toEqual({ up: 1, refusing: 0, degraded: 0 });
    expect([lines(gateway, REFUSES).length, lines(gateway, TAKES).length]).toEqual([1, 1]);
    // What was admitted meanwhile is reported now.
    const counted = async () => (await readWindow(redis, customer)).used;
    await expect.poll(counted, { timeout: 20_000 }).toBe(backend.seen.length);
  },
);

test('a report that Redis refuses is repeated: it counts once, in the quota and in the history', async () => {
  const system = await startSystem();
  const { redis, gateway, backend, customer } = system;
  await redis.command('SET', windowName(customer), 'text');
  for (let served = 0; served < 5; served++) expect(await send(system)).toBe(200);
  const reports = async () => (await readMetric(gateway, 'tollgate_store_calls_total'))['op="report"'] ?? 0;
  await expect.poll(reports).toBeGreaterThan(0);

  await redis.command('DEL', windowName(customer));
  const counted = async () => (await readWindow(redis, customer)).used;
  await expect.poll(counted, { timeout: 20_000 }).toBe(backend.seen.length);
  const { body } = await callAdmin(gateway, `/admin/v1/customers/${customer}/usage/history?step=hour`);
  const points: readonly { requests: number }[] = body.points;
  expect(points.reduce((sum, { requests }) => sum + requests, 0)).toBe(backend.seen.length);
});

test('a read of the usage that is refused does not say that reservations are', async () => {
  const { redis, gateway, customer } = await startSystem();
  await redis.command('ACL', 'SETUSER', 'gateway', '-eval', '-evalsha');
  expect((await callAdmin(gateway, `/admin/v1/customers/${customer}/usage`)).status).toBe(503);
  expect((await gauges(gateway)).refusing).toBe(0);
});

test('a damaged set of instances is said, and does not say that reservations are refused', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  await redis.command('SET', INSTANCES_NAME, 'text');
  const gateway = await startTestGateway({ storeUrl: redis.url, upstreamUrl: 'http://127.0.0.1:9' });
  onTestFinished(() => gateway.close());
  expect(lines(gateway, /cannot announce itself: WRONGTYPE/)).toHaveLength(1);
  expect((await gauges(gateway)).refusing).toBe(0);
});

test.each([
  ['another type', ['SET', 'text']],
  ['a head of another form', ['HSET', 'head', 'garbage']],
])(
  'a window that has %s is logged once a minute with its customer, counted, and does not make the store degraded',
  async (_what, [command = '', ...args]) => {
    const system = await startSystem();
    const { redis, gateway, customer } = system;
    await redis.command(command, windowName(customer), ...args);
    for (let i = 0; i < 5; i++) expect(await send(system)).toBe(200);
    expect(lines(gateway, DAMAGED)).toMatchObject([{ customer, reason: expect.any(String) }]);
    expect((await readMetric(gateway, 'tollgate_damaged_windows_total'))['']).toBe(5);
    expect(await readiness(gateway)).toEqual({ status: 'ready', reasons: [] });
    system.passMs(60_000);
    await send(system);
    expect(lines(gateway, DAMAGED)).toHaveLength(2);

    await callAdmin(gateway, `/admin/v1/customers/${customer}/usage`, { method: 'DELETE' });
    const before = await readMetric(gateway, 'tollgate_damaged_windows_total');
    await send(system);
    expect(await readMetric(gateway, 'tollgate_damaged_windows_total')).toEqual(before);
  },
);

test.each(['evalsha', 'eval', 'hincrby', 'pexpireat', 'zremrangebyscore', 'setnx', 'del'])(
  'a gateway whose user may not run %s says so when it starts, and leaves nothing behind',
  async (command) => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const rules = ['on', `>${PASSWORD}`, 'allkeys', 'allchannels', '+@all', `-${command}`];
    await redis.command('ACL', 'SETUSER', 'gateway', ...rules);
    const gateway = await startTestGateway({
      storeUrl: `redis://gateway:${PASSWORD}@127.0.0.1:${redis.port}`,
      upstreamUrl: 'http://127.0.0.1:9',
    });
    onTestFinished(() => gateway.close());
    const isNamed = ({ msg }: Record<string, unknown>) =>
      /^Redis does not permit what the gateway needs/.test(String(msg)) && String(msg).toLowerCase().includes(command);
    await expect.poll(() => gateway.logs.filter(isNamed)).toHaveLength(1);
    expect(await redis.command('EXISTS', 'tollgate:permission-check')).toBe(0);
  },
);
