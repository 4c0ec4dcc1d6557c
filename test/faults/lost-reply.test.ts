import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { bearer } from '../support/admin.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { readWindow, startRedisSystem, storeTimeMs, windowName } from '../support/redis-system.ts';
import { ask, startLoad } from '../support/steady-load.ts';

const HEALS = { timeout: 30_000, interval: 50 };

async function start(onError: 'deny' | 'local', store = { timeout_ms: 5000 }) {
  let proxy: FaultProxy | undefined;
  const system = await startRedisSystem({
    // By default, the deadline is not what is tried here.
    config: { store: { ...store, on_error: onError } },
    customer: { plan: 'starter' },
    prepare: async (redis) => {
      proxy = await startFaultProxy(redis);
      return `redis://127.0.0.1:${proxy.port}`;
    },
  });
  if (proxy === undefined) throw new Error('there is a proxy');
  const { redis, gateway, key, customer } = system;
  const used = async () => (await readWindow(redis, customer)).used;
  const noLeaseIsOpen = async () => {
    const left = async () => (await readWindow(redis, customer)).holdEndMs + 1000 - (await storeTimeMs(redis));
    await expect.poll(left, HEALS).toBeLessThan(0);
  };
  const ready = async () => (await fetch(`${gateway.ops}/readyz`)).json();
  return {
    ...system,
    proxy,
    used,
    noLeaseIsOpen,
    healed: () => expect.poll(ready, HEALS).toMatchObject({ status: 'ready' }),
    ask: () => ask(gateway.public, key),
  };
}

test('a reservation whose reply is lost is given back, and its request is refused if the store must decide', async () => {
  const { backend, customer, proxy, used, noLeaseIsOpen, healed, ask } = await start('deny');
  expect((await ask()).status).toBe(200);
  await noLeaseIsOpen();
  expect(await used()).toBe(1);

  for (let times = 0; times < 3; times += 1) {
    const replyLost = proxy.loseReplies(windowName(customer), 1);
    expect(await ask()).toMatchObject({ status: 503, code: 'store_unavailable' });
    await replyLost;
    await healed();
    await expect.poll(used, HEALS).toBe(1);
  }
  expect(backend.seen).toHaveLength(1);
  expect((await ask()).status).toBe(200);
  await noLeaseIsOpen();
  expect(await used()).toBe(2);
});

test('where a gateway decides locally, each admitted request is counted once, and the lost unit is given back', async () => {
  const { backend, customer, proxy, used, noLeaseIsOpen, healed, ask } = await start('local');
  expect((await ask()).status).toBe(200);
  await noLeaseIsOpen();
  const replyLost = proxy.loseReplies(windowName(customer), 1);
  expect((await ask()).status).toBe(200);
  await replyLost;
  await healed();
  await expect.poll(used, HEALS).toBe(2);
  expect(backend.seen).toHaveLength(2);
  expect((await ask()).status).toBe(200);
  await noLeaseIsOpen();
  expect(await used()).toBe(3);
});

test.each(['local', 'deny'] as const)(
  'after a storm of lost connections and replies (on_error: %s), the history has what reached the backend, to the unit',
  async (onError) => {
    const { gateway, key, customer, backend, proxy, healed } = await start(onError, { timeout_ms: 100 });
    const load = startLoad([gateway.public, gateway.public, gateway.public], () => key);
    for (let times = 0; times < 40; times += 1) {
      await setTimeout(30 + 5 * times);
      if (times % 3 === 0) void proxy.loseReplies('evalsha', 1);
      else proxy.cut();
    }
    // Those that were to be lost are.
    proxy.cut();
    await load.more(20);
    await load.stop();
    await healed();
    const counted = async () => {
      const url = `${gateway.admin}/admin/v1/customers/${customer}/usage/history`;
      const { points } = (await (await fetch(url, { headers: bearer(ADMIN_TOKEN) })).json()) as {
        points: { requests: number }[];
      };
      return points.reduce((sum, { requests }) => sum + requests, 0);
    };
    // Within 15 s; a busy machine takes longer.
    await expect.poll(counted, HEALS).toBe(backend.seen.length);
    expect(backend.seen.length).toBeGreaterThan(20);
  },
);
