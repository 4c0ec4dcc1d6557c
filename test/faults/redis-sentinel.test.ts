/** A master behind Sentinel that goes: the store finds the new one by itself, and never takes a replica for a master. */
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import type { Store } from '../../src/store/store.ts';
import { RecordingObserver, request, used } from '../store/contract.ts';
import { RecordedInvalidations } from '../store/recorded-invalidations.ts';
import { type SentinelSystem, startSentinelSystem } from '../support/redis-sentinel.ts';
import type { RedisServer } from '../support/redis-server.ts';

const HEALS = { timeout: 30_000, interval: 50 };
const CALLERS = 20;
const CUSTOMER = { id: 'acme', plan: 'starter', suspended: false };

let system: SentinelSystem;
beforeEach(async () => {
  system = await startSentinelSystem();
});
afterEach(() => system.stop());

async function open(url = system.url) {
  const observer = new RecordingObserver();
  const keyPrefix = 'test';
  const warn = () => undefined;
  const store = await openRedisStore({ url, keyPrefix, timeoutMs: 200, clock: systemClock, observer, warn });
  onTestFinished(() => store.close());
  return { store, keyPrefix, observer, pushed: new RecordedInvalidations(store.invalidations) };
}

/** Once it can be read: sentinels close connections more than once in a failover. */
function planOfAcme({ records }: Store): Promise<string | undefined> {
  return records.findCustomer('acme').then(
    (customer) => customer?.plan,
    () => undefined,
  );
}

async function isWhole({ store }: { store: Store }): Promise<boolean> {
  return store.isUp() && store.invalidations.connected;
}

async function other(server: RedisServer): Promise<RedisServer> {
  const [first, second] = system.servers;
  return server === first ? second : first;
}

/** Everything that the master has is on the replica, too. */
async function inStep(): Promise<void> {
  const master = await system.master();
  await expect.poll(async () => Number(await master.command('WAIT', 1, 100)), HEALS).toBe(1);
}

test('a requested failover loses no unit that was counted before', async () => {
  const { store, keyPrefix, pushed } = await open();
  await store.records.createCustomer(CUSTOMER);
  expect(await store.windows.reserve(request({ need: 4 }))).toMatchObject({ granted: 4 });
  await inStep();
  const before = await system.master();
  await system.failover();
  await expect.poll(() => used(store), HEALS).toBe(4);
  const master = await system.master();
  expect(master).not.toBe(before);
  await expect.poll(() => isWhole({ store }), HEALS).toBe(true);
  expect(store.status().wiped).toBe(false);
  // All of its connections lead to the new master, which pushes now.
  await expect.poll(async () => String(await before.command('CLIENT', 'LIST')), HEALS).not.toContain('name=tollgate-');
  await expect.poll(() => planOfAcme(store), HEALS).toBe('starter');
  const seen = pushed.all.length;
  const change = async () => {
    // Only what was read is pushed; a connection that is closed once more has everything read again.
    await planOfAcme(store);
    await master.command('HSET', `${keyPrefix}:customer:{acme}`, 'plan', 'business');
    return pushed.all.slice(seen);
  };
  await expect.poll(change, HEALS).toContainEqual({ kind: 'customer', id: 'acme' });
});

test.each(['dies', 'falls silent'])(
  'when the master %s, the store becomes unavailable and recovers by itself',
  async (what) => {
    const { store, observer } = await open();
    await store.records.createCustomer(CUSTOMER);
    await store.windows.reserve(request({ need: 4 }));
    await inStep();
    const master = await system.master();
    if (what === 'dies') await master.kill();
    else master.pause();
    await store.records.findCustomer('acme').catch(() => undefined);
    await observer.until(false);
    await observer.until(true);
    expect(await system.master()).toBe(await other(master));
    await expect.poll(() => isWhole({ store }), HEALS).toBe(true);
    await expect.poll(() => used(store), HEALS).toBe(4);
    expect(store.status().wiped).toBe(false);

    if (what === 'dies') await master.restart();
    else master.resume();
    // Sentinels leave it what it takes itself for until they have seen that for a while.
    const patience = { timeout: 90_000, interval: 50 };
    await expect.poll(async () => String(await master.command('ROLE')), patience).toMatch(/^slave,.*,connected,/);
    await expect.poll(() => isWhole({ store }), HEALS).toBe(true);
    await expect.poll(() => used(store), HEALS).toBe(4);
  },
);

test('a master that fails loses at most the units that it granted in its last second', async () => {
  const { store } = await open();
  const grantedAtMs: number[] = [];
  const master = await system.master();
  const ask = async () => {
    for (;;) {
      const { granted } = await store.windows.reserve(request({ limit: 1_000_000 }));
      if (granted === 1) grantedAtMs.push(performance.now());
    }
  };
  const asking = Promise.allSettled(Array.from({ length: CALLERS }, ask));
  await setTimeout(3000);
  const diedAtMs = performance.now();
  await master.kill();
  await asking;
  await expect.poll(async () => (await system.master()) !== master, HEALS).toBe(true);
  await expect.poll(() => used(store), HEALS).toBeGreaterThan(0);
  const lost = grantedAtMs.length - ((await used(store)) ?? 0);
  expect(lost).toBeLessThanOrEqual(grantedAtMs.filter((atMs) => atMs > diedAtMs - 1000).length);
  // What was counted and never told: of each caller at most what it waited for.
  expect(lost).toBeGreaterThanOrEqual(-CALLERS);
});

test('also without Sentinel, a master that becomes a replica is not used until it is the master again', async () => {
  const [first] = system.servers;
  const port = (await system.master()).port;
  const { store, observer } = await open(`redis://127.0.0.1:${port}`);
  await store.records.createCustomer(CUSTOMER);
  const steady = setInterval(
    () => void store.windows.reserve(request({ limit: 1_000_000 })).catch(() => undefined),
    20,
  );
  onTestFinished(() => clearInterval(steady));
  await inStep();
  await system.failover();
  await observer.until(false);
  await expect.poll(() => store.status().lastError, HEALS).toContain('this Redis is a replica');
  expect(store.status().up).toBe(false);
  expect(observer.changes.filter(({ up }) => !up).length).toBeLessThan(5);
  await expect.poll(async () => String(await first.command('ROLE')), HEALS).toMatch(/^(master|slave,.*,connected,)/);
  await system.failover();
  await observer.until(true);
  await expect.poll(() => planOfAcme(store), HEALS).toBe('starter');
});
