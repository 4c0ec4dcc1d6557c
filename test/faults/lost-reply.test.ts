import { expect, test } from 'vitest';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { readWindow, startRedisSystem, storeTimeMs, windowName } from '../support/redis-system.ts';
import { ask } from '../support/steady-load.ts';

const HEALS = { timeout: 30_000, interval: 50 };

async function start(onError: 'deny' | 'local') {
  let proxy: FaultProxy | undefined;
  const system = await startRedisSystem({
    // The deadline is not what is tried here.
    config: { store: { timeout_ms: 5000, on_error: onError } },
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

test('a reservation whose reply is lost is charged once, and its request is refused if the store must decide', async () => {
  const { backend, customer, proxy, used, noLeaseIsOpen, healed, ask } = await start('deny');
  expect((await ask()).status).toBe(200);
  await noLeaseIsOpen();
  expect(await used()).toBe(1);

  for (let lost = 1; lost <= 3; lost += 1) {
    const replyLost = proxy.loseReplies(windowName(customer), 1);
    expect(await ask()).toMatchObject({ status: 503, code: 'store_unavailable' });
    await replyLost;
    await healed();
    expect(await used()).toBe(1 + lost);
  }
  expect(backend.seen).toHaveLength(1);
  expect((await ask()).status).toBe(200);
  await noLeaseIsOpen();
  expect(await used()).toBe(1 + 3 + 1);
});

test('where a gateway decides locally, each admitted request is counted once, and the lost unit stays counted too', async () => {
  const { backend, customer, proxy, used, noLeaseIsOpen, healed, ask } = await start('local');
  expect((await ask()).status).toBe(200);
  await noLeaseIsOpen();
  const replyLost = proxy.loseReplies(windowName(customer), 1);
  expect((await ask()).status).toBe(200);
  await replyLost;
  await healed();
  await expect.poll(used, HEALS).toBe(1 + 1 + 1);
  expect(backend.seen).toHaveLength(2);
  expect((await ask()).status).toBe(200);
  await noLeaseIsOpen();
  expect(await used()).toBe(4);
});
