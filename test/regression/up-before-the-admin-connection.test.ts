/**
 * After an outage the gateway said that the store is up as soon as requests could be decided. The connection of admin writes
 * and lists came a moment later: of twelve writes that waited for "up", two were refused with 503.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { RecordingObserver } from '../store/contract.ts';
import { startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';

/** Passes on to a Redis, except, while `isHolding`, what a new connection for admin writes says. */
async function startHoldingProxy(to: { readonly port: number }) {
  const clients = new Set<Socket>();
  const held: (() => void)[] = [];
  const proxy = {
    port: 0,
    isHolding: false,
    cut() {
      for (const client of clients) client.destroy();
    },
    release() {
      proxy.isHolding = false;
      for (const pass of held.splice(0)) pass();
    },
  };
  const listener = createServer((client) => {
    const server = connect(to.port, '127.0.0.1');
    clients.add(client);
    for (const socket of [client, server]) socket.on('error', () => undefined);
    client.on('close', () => {
      clients.delete(client);
      server.destroy();
    });
    server.on('close', () => client.destroy());
    server.pipe(client);
    client.on('data', (bytes: Buffer) => {
      if (proxy.isHolding && bytes.includes('tollgate-background')) held.push(() => server.write(bytes));
      else server.write(bytes);
    });
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  onTestFinished(() => {
    listener.close();
    proxy.cut();
  });
  proxy.port = (listener.address() as AddressInfo).port;
  return proxy;
}

test('the store is reported up when admin writes work again, not before', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const proxy = await startHoldingProxy(redis);
  const observer = new RecordingObserver();
  const url = `redis://127.0.0.1:${proxy.port}`;
  const options = { url, keyPrefix: 'test', timeoutMs: 2000, ...silent, observer };
  const store = await openRedisStore(options);
  onTestFinished(() => store.close());
  expect(store.status().up).toBe(true);

  proxy.isHolding = true;
  proxy.cut();
  await observer.until(false);
  // Requests are decided again, and operators are not told so yet.
  await expect.poll(() => store.isUp()).toBe(true);
  expect([store.status().up, observer.changes.at(-1)?.up]).toEqual([false, false]);
  proxy.release();
  await observer.until(true);
  for (let i = 0; i < 12; i++) {
    expect(await store.records.createCustomer({ id: `c${i}`, plan: 'starter', suspended: false })).toBe('created');
  }
});

test('a loss of the connection for admin writes alone is no outage', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const observer = new RecordingObserver();
  const options = { url: redis.url, keyPrefix: 'test', timeoutMs: 2000, clock: systemClock, observer };
  const store = await openRedisStore({ ...options, warn: () => undefined });
  onTestFinished(() => store.close());
  expect(await redis.disconnect('tollgate-background')).toBe(1);
  await expect
    .poll(() =>
      store.records.listKeys(undefined, 1).then(
        () => 'read',
        () => 'failed',
      ),
    )
    .toBe('read');
  expect(observer.changes.map(({ up }) => up)).toEqual([true]);
});
