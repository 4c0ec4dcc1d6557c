/**
 * Clocks that are set by an hour while requests come. The store's is set where its scripts read it: they are the gateway's
 * own but for that line, and run on a real Redis.
 */
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { bearer } from '../support/admin.ts';
import { startBackend } from '../support/backend.ts';
import { startTestGateway } from '../support/gateway.ts';
import { startRedis } from '../support/redis-server.ts';
import { readWindow, windowName, writeCustomer, writeKey } from '../support/redis-system.ts';

const HOUR_MS = 3_600_000;
const BUCKET_MS = 10_000;
/** A unit is counted until the bucket of its hold has ended. */
const RESOLUTION_MS = 12_000;
const LIMIT = 50;
const KEY = 'key-of-acme';
const HEALS = { timeout: 30_000, interval: 100 };

/** Holds by how many seconds the store's clock is set. */
const CLOCK_SET_BY = vi.hoisted(() => 'test:clock-set-by');

vi.mock(import('../../src/store/redis/window/window-scripts.ts'), async (importOriginal) => {
  const real = await importOriginal();
  const line = "local time = call('TIME')";
  const withClock = (script: string) => {
    if (script.split(line).length !== 2) throw new Error('a script must read the clock in exactly one line');
    return script.replace(line, `${line}; time[1] = time[1] + (call('GET', '${CLOCK_SET_BY}') or 0)`);
  };
  return { ...real, RESERVE_LUA: withClock(real.RESERVE_LUA), CHARGE_LUA: withClock(real.CHARGE_LUA) };
});

async function start() {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const backend = await startBackend();
  onTestFinished(() => backend.close());
  let setByMs = 0;
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + setByMs };
  // The deadline is not what is tried here.
  const settings = { storeUrl: redis.url, upstreamUrl: backend.url, config: { store: { timeout_ms: 5000 } } };
  const gateways = [await startTestGateway({ ...settings, clock }), await startTestGateway(settings)];
  for (const gateway of gateways) onTestFinished(() => gateway.close());
  await writeCustomer(redis, 'acme', { plan: 'enterprise', requests_per_hour: LIMIT });
  await writeKey(redis, KEY, 'acme');
  const [first, second] = gateways;
  if (first === undefined || second === undefined) throw new Error('there are two');

  const read = async ({ public: origin }: typeof first) => {
    const answer = await fetch(`${origin}/v1/conversations`, { headers: bearer(KEY) });
    await answer.arrayBuffer();
    expect([200, 429]).toContain(answer.status);
    return answer;
  };
  return {
    redis,
    first,
    read,
    seen: () => backend.seen.length,
    async readFromEach(count: number) {
      for (let i = 0; i < count; i += 1) for (const gateway of [first, second]) await read(gateway);
    },
    /** Until both refuse, and go on doing so when what either held has come back. */
    async useUp(expected: number) {
      await expect
        .poll(async () => {
          for (const gateway of [first, second]) while ((await read(gateway)).status === 200);
          return backend.seen.length;
        }, HEALS)
        .toBe(expected);
    },
    /**
     * What a gateway has in hand is good until its lease ends, whatever the store's clock does; and what it gives back
     * after the clock was set back stays counted.
     */
    noLeaseIsOpen: () =>
      expect.poll(async () => (await readWindow(redis, 'acme')).used, HEALS).toBe(backend.seen.length),
    setGatewayClock(ms: number) {
      setByMs = ms;
    },
    setStoreClock: (ms: number) => redis.command('SET', CLOCK_SET_BY, ms / 1000),
  };
}

test.each([HOUR_MS, -HOUR_MS])(
  'when the clock of a gateway is set by %i ms, limits are exact and responses use the new time',
  async (ms) => {
    const { first, read, readFromEach, seen, useUp, setGatewayClock } = await start();
    await readFromEach(10);
    expect(seen()).toBe(20);
    setGatewayClock(ms);
    await readFromEach(5);
    expect(seen()).toBe(30);
    await useUp(LIMIT);

    const refused = await read(first);
    expect(refused.status).toBe(429);
    const waitSeconds = Number(refused.headers.get('retry-after'));
    expect(waitSeconds).toBeGreaterThan(3000);
    expect(waitSeconds).toBeLessThan((HOUR_MS + 2 * RESOLUTION_MS) / 1000);
    const resetMs = 1000 * Number(refused.headers.get('x-ratelimit-reset'));
    expect(Math.abs(resetMs - 1000 * waitSeconds - (Date.now() + ms))).toBeLessThan(60_000);
    setGatewayClock(0);
    await readFromEach(5);
    expect(seen()).toBe(LIMIT);
  },
);

test('when the clock of the store is set ahead by an hour, the hour ends early, once: the limit can be used once more', async () => {
  const { redis, read, first, readFromEach, seen, useUp, noLeaseIsOpen, setStoreClock } = await start();
  await readFromEach(15);
  expect(seen()).toBe(30);
  await noLeaseIsOpen();
  await setStoreClock(HOUR_MS + RESOLUTION_MS);
  await useUp(30 + LIMIT);
  expect((await readWindow(redis, 'acme')).used).toBe(LIMIT);
  expect((await read(first)).status).toBe(429);
});

test('when the clock of the store is set back by an hour, counted units stay counted for an hour from then', async () => {
  const { redis, read, first, readFromEach, seen, useUp, noLeaseIsOpen, setStoreClock } = await start();
  await readFromEach(15);
  expect(seen()).toBe(30);
  await noLeaseIsOpen();
  await setStoreClock(-HOUR_MS);
  await useUp(LIMIT);
  expect((await readWindow(redis, 'acme')).used).toBe(LIMIT);
  const buckets = ((await redis.command('HKEYS', windowName('acme'))) as string[]).map(Number).filter(Number.isInteger);
  const latest = Math.floor((Date.now() - HOUR_MS + RESOLUTION_MS) / BUCKET_MS);
  expect(Math.max(...buckets)).toBeLessThanOrEqual(latest);
  const waitSeconds = Number((await read(first)).headers.get('retry-after'));
  expect(waitSeconds).toBeGreaterThan(3000);
  expect(waitSeconds).toBeLessThan((HOUR_MS + 3 * RESOLUTION_MS) / 1000);
});
