import { inspect } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { systemClock } from '../../src/base/clock.ts';
import { StoreUnavailableError } from '../../src/store/errors.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import type { Store } from '../../src/store/store.ts';
import { awakeMs } from '../support/awake-clock.ts';
import { type RedisServer, type RedisServerOptions, startRedis } from '../support/redis-server.ts';
import { acceptAsEmpty } from '../support/redis-system.ts';
import { charged, RecordingObserver, refundOf, request } from './contract.ts';

const SHA256 = 'a'.repeat(64);
const TIMEOUT_MS = 1000;

async function start(options?: RedisServerOptions): Promise<RedisServer> {
  const redis = await startRedis(options);
  onTestFinished(() => redis.stop());
  return redis;
}

async function open(url: string, timeoutMs = TIMEOUT_MS, heartbeatMs = 5000) {
  const observer = new RecordingObserver();
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const options = { url, keyPrefix: 'test', timeoutMs, heartbeatMs, clock: systemClock, observer, warn };
  const store = await openRedisStore(options);
  onTestFinished(() => store.close());
  return { store, observer, warnings };
}

/** Whether a read arrives before the deadline. */
const isAnswered = ({ records }: Store) =>
  records.findCustomer('acme').then(
    () => true,
    () => false,
  );

test('an absent Redis does not keep the store from opening; it is reached as soon as it is there', async () => {
  const port = await freePort();
  const { store, observer } = await open(`redis://127.0.0.1:${port}`);
  expect(store.status()).toMatchObject({ kind: 'redis', up: false, reached: false });
  expect(store.status().lastError).toContain('ECONNREFUSED');
  await expect(store.records.findKey(SHA256)).rejects.toThrow(StoreUnavailableError);
  await expect(store.windows.reserve(request())).rejects.toThrow(/^not connected to Redis: .*ECONNREFUSED/);

  await start({ port });
  await observer.until(true);
  expect(store.status()).toMatchObject({ up: true, reached: true });
  expect(await store.records.findCustomer('acme')).toBeUndefined();
  expect(await store.windows.reserve(request())).toMatchObject({ granted: 1 });
  expect(observer.changes.map(({ up }) => up)).toEqual([false, true]);
});

test('a database that Redis refuses is an outage: in another one good keys would be unknown', async () => {
  const redis = await start();
  const { store } = await open(`${redis.url}/99`);
  await expect(store.records.findKey(SHA256)).rejects.toThrow('database 99 is refused');
  expect(store.status()).toMatchObject({ up: false, reached: false });
  expect(store.status().lastError).toContain('database 99 is refused');
  expect(await redis.command('DBSIZE')).toBe(0);
});

test('records and windows lie in the database that the URL names, after a reconnect as well', async () => {
  const redis = await start();
  const { store, observer } = await open(`${redis.url}/3`);
  for (const moment of ['first', 'again']) {
    expect(await store.records.createCustomer({ id: moment, plan: 'starter', suspended: false })).toBe('created');
    expect(await store.windows.reserve(request())).toMatchObject({ granted: 1 });
    const changes = observer.changes.length;
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal');
    await expect.poll(() => observer.changes.length).toBeGreaterThanOrEqual(changes + 2);
    await observer.until(true);
  }
  expect(await redis.command('DBSIZE')).toBe(0);
  expect(store.status().lastError).not.toContain('refused');
});

test('a Redis that takes connections and says nothing does not keep the store from opening', async () => {
  const redis = await start();
  redis.pause();
  const { store, observer } = await open(redis.url, 50);
  expect(store.status()).toMatchObject({ up: false, reached: false });

  redis.resume();
  await observer.until(true);
  await expect.poll(() => isAnswered(store)).toBe(true);
});

test('a Redis that dies is unavailable at once, and is used again when it is back', async () => {
  const redis = await start();
  const { store, observer } = await open(redis.url);
  await store.windows.reserve(request());

  await redis.kill();
  await observer.until(false);
  await expect(store.records.findKey(SHA256)).rejects.toBeInstanceOf(StoreUnavailableError);
  await expect(store.records.findCustomer('acme')).rejects.toBeInstanceOf(StoreUnavailableError);
  await expect(store.windows.reserve(request())).rejects.toBeInstanceOf(StoreUnavailableError);
  expect(store.status()).toMatchObject({ up: false, reached: true });
  expect(observer.changes.at(-1)?.reason).toBeTruthy();

  await redis.restart();
  await observer.until(true);
  expect(await store.windows.reserve(request({ need: 10 }))).toMatchObject({ granted: 10 });
});

test('a refund of a grant from before a reconnect counts, and once', async () => {
  const redis = await start();
  const { store, observer } = await open(redis.url);
  const asked = request({ need: 10 });
  const grant = await store.windows.reserve(asked);

  await redis.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await observer.until(false);
  await observer.until(true);
  expect(await store.windows.refund('acme', [refundOf(asked, 4)])).toBe(4);
  const after = await store.windows.reserve(request({ need: 0, refunds: [refundOf(asked, 4)] }));
  expect(after).toMatchObject({ granted: 0, counts: [{ used: 6, epoch: grant.counts[0].epoch }] });
});

test('a call with a lost reply is charged once: nothing is resent after the reconnect', async () => {
  const redis = await start();
  const { store, observer } = await open(redis.url, 100);
  await store.windows.reserve(request({ limit: 1000 }));

  // Redis finds the calls in its socket after the gateway gave the connection up: they run, and nobody hears of it.
  redis.pause();
  const lost = Array.from({ length: 5 }, () => store.windows.reserve(request({ limit: 1000 })));
  const outcomes = Promise.allSettled(lost);
  await observer.until(false);
  expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true);
  redis.resume();
  await observer.until(true);
  expect((await store.windows.reserve(request({ need: 0, limit: 1000 }))).counts[0].used).toBeLessThanOrEqual(6);
});

test('a record that is not read in time rejects, and the store is up again once Redis answers', async () => {
  const redis = await start();
  const { store, observer } = await open(redis.url);
  redis.pause();
  const startedMs = awakeMs();
  await expect(store.records.findKey(SHA256)).rejects.toThrow('Redis: Command timed out');
  expect(awakeMs() - startedMs).toBeLessThan(4 * TIMEOUT_MS);
  expect(observer.changes.at(-1)).toMatchObject({ up: false, reason: 'Command timed out' });

  redis.resume();
  await observer.until(true);
  expect(await store.records.findCustomer('acme')).toBeUndefined();
});

test('a silent Redis delays one call: later calls reject at once, until Redis replies', async () => {
  const redis = await start();
  // So long that the socket is not given up meanwhile: the connection stays, and nothing comes.
  const { store, observer } = await open(redis.url, 1000);
  redis.pause();
  await expect(store.records.findKey(SHA256)).rejects.toThrow('Redis: Command timed out');
  expect(store.isUp()).toBe(false);
  const calls = observer.calls.length;

  const startedMs = awakeMs();
  for (let attempt = 0; attempt < 20; attempt += 1) {
    await expect(store.records.findCustomer('acme')).rejects.toThrow(/^Redis did not reply in time/);
    await expect(store.records.findKey(SHA256)).rejects.toBeInstanceOf(StoreUnavailableError);
  }
  // All together less than one of them would have waited.
  expect(awakeMs() - startedMs).toBeLessThan(1000);
  expect(observer.calls).toHaveLength(calls);

  redis.resume();
  await observer.until(true);
  expect(store.isUp()).toBe(true);
  expect(await store.records.findCustomer('acme')).toBeUndefined();
});

test('the store is not up while either of its connections is missing', async () => {
  const redis = await start();
  const { store, observer } = await open(redis.url);
  for (const name of ['tollgate-windows', 'tollgate-records']) {
    expect(store.isUp()).toBe(true);
    expect(await redis.disconnect(name)).toBe(1);
    await observer.until(false);
    expect(store.isUp()).toBe(false);
    await observer.until(true);
  }
});

test('an idle store detects that Redis no longer replies', async () => {
  const redis = await start();
  const { store, observer } = await open(redis.url, 50, 50);
  // Until the server was looked at; then nothing is under way whose reply could be missed.
  for (let call = 0; call < 3; call += 1) await expect.poll(() => isAnswered(store)).toBe(true);
  redis.pause();
  await observer.until(false);
  expect(store.isUp()).toBe(false);
  await expect.poll(() => store.invalidations.connected).toBe(false);

  redis.resume();
  await observer.until(true);
  await expect.poll(() => store.invalidations.connected).toBe(true);
});

test('a report whose reply is lost counts once when it is repeated', async () => {
  const redis = await start();
  const { store, observer } = await open(redis.url, 100);
  redis.pause();
  const report = [charged(0, 5)];
  await expect(store.windows.charge('acme', report)).rejects.toBeInstanceOf(StoreUnavailableError);
  redis.resume();
  await observer.until(true);
  expect(await store.windows.charge('acme', report)).toMatchObject({ used: 5 });
});

test('a reserve outlives the deadline of records: its late grant arrives and can be given back', async () => {
  const redis = await start();
  const { store } = await open(redis.url);
  redis.pause();
  const asked = request({ need: 10 });
  const late = store.windows.reserve(asked);
  await expect(store.records.findKey(SHA256)).rejects.toBeInstanceOf(StoreUnavailableError);
  redis.resume();
  const grant = await late;
  expect(grant).toMatchObject({ granted: 10 });
  expect(await store.windows.refund('acme', [refundOf(asked, 10)])).toBe(10);
});

test('scripts that Redis forgot are sent again, and run once', async () => {
  const redis = await start();
  const { store } = await open(redis.url);
  const asked = request({ need: 2 });
  await store.windows.reserve(asked);
  await store.windows.refund('acme', [refundOf(asked, 1)]);
  await redis.command('SCRIPT', 'FLUSH');
  expect(await store.windows.reserve(request({ need: 2 }))).toMatchObject({ granted: 2, counts: [{ used: 3 }] });
  expect(await store.windows.refund('acme', [refundOf(asked, 2)])).toBe(1);
});

test('the connection to a server that became a replica closes at the first script that it refuses', async () => {
  const redis = await start();
  const { store, observer } = await open(redis.url);
  await store.windows.reserve(request());
  await redis.command('REPLICAOF', '127.0.0.1', await freePort());
  await expect(store.windows.reserve(request())).rejects.toThrow(/^Redis: READONLY /);
  await observer.until(false);
  await expect.poll(() => store.status().lastError).toContain('this Redis is a replica');

  await redis.command('REPLICAOF', 'NO', 'ONE');
  await observer.until(true);
  expect(await store.windows.reserve(request())).toMatchObject({ granted: 1 });
});

test('a password in the URL reaches no message and no error', async () => {
  const redis = await start({ args: ['--requirepass', 'right-password'] });
  const { store } = await open(`redis://:wrong-password@127.0.0.1:${redis.port}`);
  const error: unknown = await store.records.findKey(SHA256).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(StoreUnavailableError);
  expect(String(error)).toContain('WRONGPASS');
  const everything = inspect([error, store.status()], { depth: 10, showHidden: true });
  expect(everything).not.toContain('wrong-password');
});

test('closing while Redis is unavailable ends the attempts to connect, and calls reject', async () => {
  const port = await freePort();
  const { store, observer } = await open(`redis://127.0.0.1:${port}`);
  await store.close();
  const redis = await start({ port });
  await expect(store.records.findKey(SHA256)).rejects.toBeInstanceOf(StoreUnavailableError);
  expect(String(await redis.command('CLIENT', 'LIST'))).not.toContain('tollgate-');
  expect(observer.changes.map(({ up }) => up)).toEqual([false]);
});

test('a server that would lose or bloat what it stores is warned of, once', async () => {
  const redis = await start({
    args: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru', '--hash-max-ziplist-entries', '128'],
  });
  await acceptAsEmpty(redis, 'test');
  const { store, observer, warnings } = await open(redis.url);
  await expect.poll(() => warnings).toHaveLength(2);
  expect(warnings[0]).toContain('maxmemory-policy allkeys-lru');
  expect(warnings[1]).toMatch(/hash-max-(ziplist|listpack)-entries 128/);

  await redis.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await observer.until(false);
  await observer.until(true);
  await store.records.findKey(SHA256);
  expect(warnings).toHaveLength(2);
});
