/**
 * The end of a day's quota, on a real Redis whose clock the test sets shortly before it: gateway processes that are killed,
 * connections that are lost, and Redis itself that is killed and starts again with its data.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import { DAY_MS, HOUR_MS } from '../../src/store/usage-history.ts';
import { scriptedHistory } from '../store/window-scripts-with-clock.ts';
import { bearer } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { type RunningGateway, startProgram } from '../support/process.ts';
import { startRedis } from '../support/redis-server.ts';
import { writeCustomer, writeKey } from '../support/redis-system.ts';
import { STORE_CLOCK_ENVIRONMENT, setStoreClock, setStoreTimeMs } from '../support/store-clock.ts';

const GATEWAYS = 2;
const CLIENTS = 8;
/** Every write is on disk before it is answered, so that a crash loses nothing. */
const DURABLE = { args: ['--appendonly', 'yes', '--appendfsync', 'always'] };
const AMOUNT = 120;
/** Used up before the end of the day, and never. */
const CUSTOMERS = { small: AMOUNT, large: 1_000_000 };
type Customer = keyof typeof CUSTOMERS;
const PATIENCE = { timeout: 60_000, interval: 100 };
/** From the setting of the clock to the end of the day. */
const BEFORE_MS = 6000;
/** The last request on a grant begins within this. */
const HOLD_MS = 10_000;

async function startSystem() {
  const redis = await startRedis(DURABLE);
  onTestFinished(() => redis.stop());
  const proxy = await startFaultProxy(redis);
  const seen = { small: 0, large: 0 };
  const backend = await startBackend((req, res) => {
    seen[req.headers['x-tollgate-customer'] as Customer] += 1;
    res.end('{"data":[]}');
  });
  onTestFinished(() => backend.close());
  // Ahead, so that nothing expires early, by at most two hours.
  const endMs = HOUR_MS * (Math.floor(Date.now() / HOUR_MS) + 2);
  for (const [id, period_requests] of Object.entries(CUSTOMERS)) {
    await writeCustomer(redis, id, { plan: 'daily', period_requests, period_anchor: new Date(endMs).toISOString() });
    await writeKey(redis, `key-of-${id}`, id);
  }
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'gateway.yaml');
  const anyPort = { host: '127.0.0.1', port: 0 };
  const config = {
    listen: anyPort,
    ops: anyPort,
    store: { url: `redis://127.0.0.1:${proxy.port}`, timeout_ms: 500, on_error: 'deny' },
    upstream: { urls: [backend.url] },
    plans: { daily: { requests_per_hour: 10_000_000, period: { per: 'day', requests: 1 } } },
    logging: { access: 'off' },
  };
  await writeFile(file, stringify(config));
  const start = () => startProgram({ args: ['--config', file], env: STORE_CLOCK_ENVIRONMENT });
  const gateways = [await start(), await start()];

  const read = async (gateway: RunningGateway | undefined, id: string) => {
    const response = await fetch(`${gateway?.public}/v1/conversations`, { headers: bearer(`key-of-${id}`) });
    await response.arrayBuffer();
    return response.status;
  };
  for (const gateway of gateways) {
    for (const id of Object.keys(CUSTOMERS)) await expect.poll(() => read(gateway, id), PATIENCE).toBe(200);
  }
  let isOver = false;
  const statuses = new Set<number>();
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let sent = client; !isOver; sent += 1) {
      // A gateway that is killed responds to nobody.
      const reading = read(gateways[client % GATEWAYS], sent % 2 === 0 ? 'small' : 'large');
      await reading.then((status) => statuses.add(status)).catch(() => undefined);
      await setTimeout(5);
    }
  });
  const starts = { yesterday: endMs / HOUR_MS - 24, today: endMs / HOUR_MS };
  const countOf = async (id: string, day: keyof typeof starts) =>
    Number((await redis.command('HGET', `tollgate:period:{${id}}`, `d${starts[day]}`)) ?? 0);
  const history = scriptedHistory(redis, 'tollgate', { hoursDays: 400, days: 400 });
  return {
    redis,
    proxy,
    seen,
    gateways,
    endMs,
    countOf,
    async restartGateway(index: number) {
      gateways[index]?.signal('SIGKILL');
      await gateways[index]?.finished;
      gateways[index] = await start();
    },
    shortlyBefore: () => setStoreClock(redis, endMs - BEFORE_MS),
    isPast: () => expect.poll(() => setStoreTimeMs(redis), PATIENCE).toBeGreaterThan(endMs + HOLD_MS),
    /** Of the units that count, gateways may still hold some in leases. */
    usedUp: (day: keyof typeof starts) => expect.poll(() => countOf('small', day), PATIENCE).toBe(AMOUNT),
    reached: (units: number) => expect.poll(() => seen.small, PATIENCE).toBe(units),
    async stopLoad() {
      isOver = true;
      await Promise.all(clients);
    },
    /** The units in the history of the hours of a day. */
    async inHistory(id: string, day: keyof typeof starts) {
      const fromMs = starts[day] * HOUR_MS;
      const [hours = []] = await history.hours([id], { fromMs, toMs: fromMs + DAY_MS });
      return hours.reduce((sum, { units }) => sum + units, 0);
    },
    async expectHistoryInPeriods() {
      for (const id of Object.keys(CUSTOMERS)) {
        // Two calls, between which units of a lease may come back.
        for (const day of ['yesterday', 'today'] as const)
          await expect.poll(async () => (await this.inHistory(id, day)) - (await countOf(id, day)), PATIENCE).toBe(0);
      }
    },
    async expectExact() {
      // A request that was sent and failed counts, and the backend may not have seen it.
      expect([...statuses].filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
      for (const id of ['small', 'large'] as const) {
        await expect
          .poll(async () => (await countOf(id, 'yesterday')) + (await countOf(id, 'today')), PATIENCE)
          .toBe(seen[id]);
      }
      await this.expectHistoryInPeriods();
    },
  };
}

test('lost connections around the end of a day: each day is used to the unit, and its count is what reached the backend', async () => {
  const { proxy, shortlyBefore, isPast, usedUp, reached, stopLoad, redis, endMs, ...system } = await startSystem();
  await usedUp('yesterday');
  await reached(AMOUNT);
  await shortlyBefore();
  for (let cut = 0; (await setStoreTimeMs(redis)) < endMs + HOLD_MS; cut += 1) {
    await setTimeout(400);
    proxy.delay(cut % 3 === 0 ? 100 : 0);
    proxy.cut();
  }
  proxy.delay(0);
  await isPast();
  await usedUp('today');
  await reached(2 * AMOUNT);
  await stopLoad();
  expect(await system.countOf('large', 'yesterday')).toBeGreaterThan(0);
  await system.expectExact();
});

test('gateways that are killed around the end of a day: neither day has more than it allows, and the history is its count', async () => {
  const { seen, shortlyBefore, isPast, usedUp, reached, stopLoad, proxy, ...system } = await startSystem();
  await usedUp('yesterday');
  await reached(AMOUNT);
  await shortlyBefore();
  for (const index of [0, 1, 0, 1]) {
    await system.restartGateway(index);
    proxy.cut();
  }
  await isPast();
  await usedUp('today');
  await stopLoad();
  expect(seen.small).toBeLessThanOrEqual(2 * AMOUNT);
  expect(seen.small).toBeGreaterThan(AMOUNT);
  await system.expectHistoryInPeriods();
  for (const id of ['small', 'large'] as const) {
    const counted = (await system.countOf(id, 'yesterday')) + (await system.countOf(id, 'today'));
    expect(seen[id]).toBeLessThanOrEqual(counted);
  }
});

test('Redis that is killed before the end of a day, and starts after it with its data: both days are exact', async () => {
  const { redis, seen, shortlyBefore, usedUp, reached, stopLoad, endMs, ...system } = await startSystem();
  await usedUp('yesterday');
  await reached(AMOUNT);
  await shortlyBefore();
  const leftMs = endMs - (await setStoreTimeMs(redis));
  await redis.kill();
  const before = seen.small;
  await setTimeout(leftMs + 1000);
  expect(seen.small).toBe(before);
  await redis.restart();
  await usedUp('today');
  expect(await system.countOf('small', 'yesterday')).toBe(AMOUNT);
  await reached(2 * AMOUNT);
  await stopLoad();
  await system.expectExact();
});
