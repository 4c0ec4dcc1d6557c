/** A Redis Cluster whose slots move and whose masters are lost: what was promised of the store holds all the while. */
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { StoreDoubtError, StoreUnavailableError } from '../../src/store/errors.ts';
import { slotOf } from '../../src/store/redis/protocol/hash-slots.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import type { Store } from '../../src/store/store.ts';
import { RecordingObserver, refundOf, request } from '../store/contract.ts';
import { everyPage } from '../store/every-page.ts';
import { RecordedInvalidations } from '../store/recorded-invalidations.ts';
import { type RedisClusterServers, startRedisCluster } from '../support/redis-cluster.ts';

const HEALS = { timeout: 60_000, interval: 50 };
const ALL = { kind: 'all' };

let cluster: RedisClusterServers;
let prefixes = 0;
beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster.stop());
beforeEach(() => cluster.complete());

async function open(timeoutMs = 2000, keyPrefix = `test-${++prefixes}`) {
  const observer = new RecordingObserver();
  const warnings: string[] = [];
  // Each test begins without records, which is warned of.
  const warn = (message: string) => void (message.includes('has no customers yet') || warnings.push(message));
  const store = await openRedisStore({ url: cluster.url, keyPrefix, timeoutMs, clock: systemClock, observer, warn });
  onTestFinished(() => store.close());
  return { store, keyPrefix, observer, warnings, pushed: new RecordedInvalidations(store.invalidations) };
}

const windowOf = (prefix: string, customer: string) => `${prefix}:window:{${customer}}`;

/** One customer for each master. */
async function customersApart(prefix: string): Promise<string[]> {
  const found = new Map<number, string>();
  for (let number = 0; found.size < 3; number += 1) {
    const customer = `customer-${number}`;
    const { port } = await cluster.holderOf(windowOf(prefix, customer));
    if (!found.has(port)) found.set(port, customer);
  }
  return [...found.values()];
}

async function isWhole({ store }: { store: Store }): Promise<boolean> {
  return store.isUp() && store.invalidations.connected;
}

/** Reserves one unit after the other until it is stopped; resolves to how many it got. */
function reserveSteadily({ windows }: Store, customer: string) {
  let stopped = false;
  let granted = 0;
  const failures: unknown[] = [];
  const done = (async () => {
    while (!stopped) {
      await windows.reserve(request({ customer, limit: 1_000_000 })).then(
        (grant) => {
          granted += grant.granted;
        },
        async (error: unknown) => {
          failures.push(error);
          // A refusal without a call must not keep the process from everything else.
          await setImmediate();
        },
      );
    }
  })();
  const stop = async () => {
    stopped = true;
    await done;
    return { granted, failures };
  };
  // A store that was closed refuses at once: in a test that failed this would go round and round.
  onTestFinished(async () => void (await stop()));
  return { granted: () => granted, stop };
}

test('a slot that moves loses no call, no unit and no pushed change', async () => {
  const { store, keyPrefix, pushed } = await open();
  const { records, windows } = store;
  await records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  const window = windowOf(keyPrefix, 'acme');
  const steady = reserveSteadily(store, 'acme');
  for (let move = 0; move < 3; move += 1) {
    const before = steady.granted();
    await cluster.moveSlot(window, {
      begun: async () => void (await records.findCustomer('acme')),
      emptied: async () => {
        expect(await records.findCustomer('acme')).toMatchObject({ plan: 'starter' });
        expect(await records.updateCustomer('acme', { name: `moved ${move}` })).toMatchObject({ plan: 'starter' });
      },
    });
    await expect.poll(() => steady.granted(), HEALS).toBeGreaterThan(before + 100);
    expect(await records.findCustomerRecord('acme')).toMatchObject({ name: `moved ${move}` });
  }
  const { granted, failures } = await steady.stop();
  expect(failures).toEqual([]);
  expect(await windows.reserve(request({ need: 0, limit: 1_000_000 }))).toMatchObject({ counts: [{ used: granted }] });

  await expect.poll(() => isWhole({ store }), HEALS).toBe(true);
  await records.findCustomer('acme');
  pushed.all.length = 0;
  await cluster.command('HSET', `${keyPrefix}:customer:{acme}`, 'plan', 'business');
  expect(await pushed.atLeast(1)).toEqual([{ kind: 'customer', id: 'acme' }]);
});

test('a slot that moves to a master without slots loses no call and no unit', async () => {
  const { store, keyPrefix } = await open();
  const window = windowOf(keyPrefix, 'acme');
  const from = await cluster.holderOf(window);
  const added = await cluster.addMaster();
  const loads = Array.from({ length: 8 }, () => reserveSteadily(store, 'acme'));
  const granted = () => loads.reduce((sum, load) => sum + load.granted(), 0);
  for (const target of [added, from]) {
    const before = granted();
    await cluster.moveSlot(window, { target });
    await expect.poll(granted, HEALS).toBeGreaterThan(before + 100);
  }
  const ended = await Promise.all(loads.map((load) => load.stop()));
  expect(ended.flatMap(({ failures }) => failures)).toEqual([]);
  expect(await store.windows.reserve(request({ need: 0, limit: 1_000_000 }))).toMatchObject({
    counts: [{ used: granted() }],
  });
  await cluster.removeMaster(added);
});

test('what was missing where a slot was is pushed from where it went', async () => {
  const { store, keyPrefix, pushed } = await open();
  expect(await store.records.findCustomer('acme')).toBeUndefined();
  await cluster.moveSlot(windowOf(keyPrefix, 'acme'));
  // Nobody asks for it: the gateway finds out by itself that it must doubt what it knows.
  expect(await pushed.atLeast(1)).toContainEqual(ALL);
  expect(await store.records.findCustomer('acme')).toBeUndefined();
  const seen = pushed.all.length;
  await cluster.command('HSET', `${keyPrefix}:customer:{acme}`, 'plan', 'business');
  expect((await pushed.atLeast(seen + 1)).slice(seen)).toContainEqual({ kind: 'customer', id: 'acme' });
});

test('while a slot moves, scripts run once, on the master that has their keys, even if they were never loaded there', async () => {
  const { store, keyPrefix } = await open();
  const window = windowOf(keyPrefix, 'acme');
  await store.windows.reserve(request({ customer: 'globex' }));
  await cluster.moveSlot(window, {
    begun: async () => {
      await cluster.onMasters('SCRIPT', 'FLUSH');
      // The window is not there yet, so it begins where the slot goes.
      const grant = await store.windows.reserve(request({ need: 3 }));
      expect(grant).toMatchObject({ granted: 3, counts: [{ used: 3 }] });
      expect(await store.windows.reserve(request({ need: 3 }))).toMatchObject({ granted: 3, counts: [{ used: 6 }] });
      expect(await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false })).toBe('created');
      expect(await store.records.resetUsage('acme', '2026-01-01T00:00:00Z')).toMatchObject({ plan: 'starter' });
      expect(await store.windows.reserve(request({ need: 4 }))).toMatchObject({ granted: 4, counts: [{ used: 4 }] });
    },
  });
  expect(await store.windows.reserve(request({ need: 0 }))).toMatchObject({ counts: [{ used: 4 }] });
});

test('a script of two names waits until both are on one side of the move', async () => {
  const { store, keyPrefix } = await open();
  const window = windowOf(keyPrefix, 'acme');
  await store.records.createCustomer({ id: 'acme', plan: 'starter', suspended: false });
  let reset: Promise<unknown> = Promise.resolve();
  await cluster.moveSlot(window, {
    begun: async () => {
      // The record is here, and the window begins there.
      await store.windows.reserve(request({ need: 3 }));
      reset = store.records.resetUsage('acme', '2026-01-01T00:00:00Z');
      reset.catch(() => undefined);
    },
  });
  expect(await reset).toMatchObject({ usageResetAt: '2026-01-01T00:00:00Z' });
  expect(await store.windows.reserve(request({ need: 0 }))).toMatchObject({ counts: [{ used: 0 }] });
});

test('a list that is walked while slots move has everything that is there', async () => {
  const { store, keyPrefix } = await open();
  const ids = Array.from({ length: 60 }, (_, i) => `c${i}`);
  await Promise.all(ids.map((id) => store.records.createCustomer({ id, plan: 'starter', suspended: false })));
  const apart = await customersApart(keyPrefix);
  for (let round = 0; round < 5; round += 1) {
    // All in one direction: of masters that give each other slots at once, each may take the other one for the holder.
    const target = await cluster.holderOf(windowOf(keyPrefix, apart[round % apart.length] ?? ''));
    const move = async (moved: readonly string[]) => {
      for (const id of moved) await cluster.moveSlot(windowOf(keyPrefix, id), { target });
    };
    let pages = 0;
    let moving = Promise.resolve();
    const layouts = new Set<string | undefined>();
    const list = (cursor: string | undefined) => {
      layouts.add(cursor?.slice(0, 8));
      // Some while nothing is read, and some while pages are.
      if (++pages === 3) moving = move(ids.slice(10 * round, 10 * round + 5));
      return store.records.listCustomers(cursor, 5);
    };
    const between = async () => {
      if (pages !== 5) return;
      await moving;
      await move(ids.slice(10 * round + 5, 10 * round + 10));
    };
    const found = (await everyPage(list, between)).flat();
    await moving;
    expect(layouts.size).toBeGreaterThan(2);
    expect([...new Set(found.map(({ id }) => id))].toSorted()).toEqual(ids.toSorted());
  }
});

test('a lost master affects only its own customers, until its replica takes over', async () => {
  const { store, keyPrefix, observer, pushed, warnings } = await open(200);
  const [lost = '', ...others] = await customersApart(keyPrefix);
  for (const customer of [lost, ...others]) {
    await store.records.createCustomer({ id: customer, plan: 'starter', suspended: false });
    await store.windows.reserve(request({ customer, need: 3 }));
  }
  const window = windowOf(keyPrefix, lost);
  const master = await cluster.holderOf(window);
  const replica = await cluster.replicaOf(window);
  // The record, the window and the grants.
  await expect.poll(() => replica.command('CLUSTER', 'COUNTKEYSINSLOT', slotOf(window)), HEALS).toBe(3);

  // Until we looked at what is refused meanwhile.
  await replica.command('CONFIG', 'SET', 'cluster-replica-no-failover', 'yes');
  await master.kill();
  await expect.poll(() => store.isUp(lost), HEALS).toBe(false);
  expect(store.isUp()).toBe(false);
  await expect(store.windows.reserve(request({ customer: lost }))).rejects.toBeInstanceOf(StoreUnavailableError);
  await expect(store.records.findCustomer(lost)).rejects.toBeInstanceOf(StoreUnavailableError);
  const [role] = (await replica.command('ROLE')) as unknown[];
  expect(role).toBe('slave');

  await replica.command('CONFIG', 'SET', 'cluster-replica-no-failover', 'no');
  await observer.until(true);
  await expect.poll(() => isWhole({ store }), HEALS).toBe(true);
  expect(await store.windows.reserve(request({ customer: lost, need: 10 }))).toMatchObject({
    granted: 7,
    counts: [{ used: 10 }],
  });
  expect(await store.records.findCustomer(lost)).toMatchObject({ plan: 'starter' });
  expect(store.status()).toMatchObject({ up: true, wiped: false, invalidation: 'connected' });
  expect(warnings).toEqual([]);

  const seen = pushed.all.length;
  expect(pushed.all).toContainEqual(ALL);
  await cluster.command('HSET', `${keyPrefix}:customer:{${lost}}`, 'plan', 'business');
  expect((await pushed.atLeast(seen + 1)).slice(seen)).toEqual([{ kind: 'customer', id: lost }]);

  // It comes back as a replica, and nobody mistakes it for what it was.
  await master.restart();
  await expect.poll(() => cluster.replicaOf(window), HEALS).toBe(master);
  await expect.poll(() => isWhole({ store }), HEALS).toBe(true);
  expect(await store.windows.reserve(request({ customer: lost, need: 0 }))).toMatchObject({ counts: [{ used: 10 }] });
});

test('while a master is lost, customers of other masters are served, if the cluster allows it', async () => {
  await cluster.onMasters('CONFIG', 'SET', 'cluster-require-full-coverage', 'no');
  onTestFinished(async () => void (await cluster.onMasters('CONFIG', 'SET', 'cluster-require-full-coverage', 'yes')));
  const { store, keyPrefix } = await open(200);
  const [lost = '', other = ''] = await customersApart(keyPrefix);
  const window = windowOf(keyPrefix, lost);
  const [master, replica] = [await cluster.holderOf(window), await cluster.replicaOf(window)];
  await replica.command('CONFIG', 'SET', 'cluster-replica-no-failover', 'yes');
  await store.windows.reserve(request({ customer: lost, need: 3 }));

  master.pause();
  onTestFinished(async () => {
    master.resume();
    await replica.command('CONFIG', 'SET', 'cluster-replica-no-failover', 'no');
  });
  await expect(store.records.findCustomer(lost)).rejects.toBeInstanceOf(StoreUnavailableError);
  await expect.poll(() => store.isUp(lost), HEALS).toBe(false);
  for (let call = 0; call < 20; call += 1) {
    expect(store.isUp(other)).toBe(true);
    expect(await store.windows.reserve(request({ customer: other, limit: 100 }))).toMatchObject({ granted: 1 });
    await expect.poll(() => store.records.findCustomer(other).catch(() => 'late'), HEALS).toBeUndefined();
  }
  master.resume();
  await expect.poll(() => isWhole({ store }), HEALS).toBe(true);
  expect(await store.windows.reserve(request({ customer: lost, need: 0 }))).toMatchObject({ counts: [{ used: 3 }] });
});

test('a reply that a master owes and never gives charges once, and a refund of an earlier grant still counts', async () => {
  const { store, keyPrefix } = await open(50);
  const window = windowOf(keyPrefix, 'acme');
  const asked = request({ need: 10, limit: 1000 });
  await store.windows.reserve(asked);
  const master = await cluster.holderOf(window);
  master.pause();
  const outcomes = await Promise.allSettled(
    Array.from({ length: 5 }, () => store.windows.reserve(request({ limit: 1000 }))),
  );
  expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true);
  master.resume();
  await expect.poll(() => isWhole({ store }), HEALS).toBe(true);
  expect(await store.windows.refund('acme', [refundOf(asked, 10)])).toBe(10);
  const [{ used }] = (await store.windows.reserve(request({ need: 0, limit: 1000 }))).counts;
  expect(used).toBeLessThanOrEqual(5);
});

test('an unavailable cluster does not keep the store from opening, and is used as soon as it is available', async () => {
  for (const node of cluster.nodes) node.pause();
  const { store, observer } = await open(50);
  expect(store.status()).toMatchObject({ up: false, reached: false });
  await expect(store.records.findKey('a'.repeat(64))).rejects.toThrow(/^not connected to Redis/);
  for (const node of cluster.nodes) node.resume();
  await observer.until(true);
  await expect.poll(() => isWhole({ store }), HEALS).toBe(true);
  expect(await store.windows.reserve(request())).toMatchObject({ granted: 1 });
});

test.each(['comes back empty', 'is emptied'])(
  'a master that %s proves nothing: missing keys get 503, until an operator accepts the data',
  async (what) => {
    const { store, keyPrefix, warnings } = await open(1000);
    const { store: late } = await open(1000, keyPrefix);
    const [customer = '', other = ''] = await customersApart(keyPrefix);
    await store.records.createCustomer({ id: customer, plan: 'starter', suspended: false });
    await store.records.createCustomer({ id: other, plan: 'starter', suspended: false });
    const window = windowOf(keyPrefix, customer);
    const [master, replica] = [await cluster.holderOf(window), await cluster.replicaOf(window)];
    if (what === 'is emptied') {
      await master.command('FLUSHALL');
    } else {
      await replica.command('CONFIG', 'SET', 'cluster-replica-no-failover', 'yes');
      onTestFinished(async () => void (await replica.command('CONFIG', 'SET', 'cluster-replica-no-failover', 'no')));
      await master.restart();
      await expect.poll(() => isWhole({ store }), HEALS).toBe(true);
    }
    for (const { records } of [store, late]) {
      const refusal = () => records.findCustomer(customer).catch((error: unknown) => error);
      // The cluster itself is down for a moment.
      await expect.poll(refusal, HEALS).toBeInstanceOf(StoreDoubtError);
      expect(await records.findCustomer(other)).toMatchObject({ plan: 'starter' });
      await expect(records.listCustomers(undefined, 10)).rejects.toBeInstanceOf(StoreDoubtError);
    }
    // Nor does a gateway make it whole that starts now.
    const { store: latest } = await open(1000, keyPrefix);
    expect(latest.status().wiped).toBe(true);
    expect(store.status()).toMatchObject({ up: true, wiped: true });
    expect(warnings).toEqual([expect.stringContaining('the store has lost its data')]);

    await latest.initialise?.();
    for (const { records } of [store, late, latest]) {
      await expect.poll(() => records.findCustomer(customer).catch(() => 'away'), HEALS).toBeUndefined();
    }
    await expect.poll(() => store.status().wiped, HEALS).toBe(false);
    await expect.poll(() => late.status().wiped, HEALS).toBe(false);
  },
);

test('gateways that start at the same time in an empty cluster agree on its id', async () => {
  const keyPrefix = `test-${++prefixes}`;
  const opened = await Promise.all([open(2000, keyPrefix), open(2000, keyPrefix), open(2000, keyPrefix)]);
  for (const { store } of opened) {
    expect(await store.records.findCustomer('acme')).toBeUndefined();
    await expect.poll(() => store.status().wiped, HEALS).toBe(false);
  }
});

test('names hash to the slots that Redis gives them', async () => {
  const [node] = cluster.nodes;
  for (const name of ['', 'a', '{a}b', 'x{}y{z}', 'x{{a}}', 'a{b', 'é{ü}', 'tollgate:window:{acme}']) {
    expect(slotOf(name), name).toBe(await node?.command('CLUSTER', 'KEYSLOT', name));
  }
});
