/** Reservations and refunds of one turn of the event loop share a script call. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { StoreUnavailableError } from '../../src/store/errors.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { readCommandStats } from '../support/redis-system.ts';
import { RecordingObserver, refundOf, request } from './contract.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

async function open() {
  await redis.command('FLUSHALL');
  const observer = new RecordingObserver();
  const options = { url: redis.url, keyPrefix: 'test', timeoutMs: 2000, clock: systemClock, warn: () => undefined };
  const store = await openRedisStore({ ...options, observer });
  onTestFinished(() => store.close());
  // Redis learns the script.
  await store.windows.reserve(request({ customer: 'first' }));
  await redis.command('CONFIG', 'RESETSTAT');
  observer.calls.length = 0;
  const reserve = (customer: string, more: Parameters<typeof request>[0] = {}) =>
    store.windows.reserve(request({ customer, ...more }));
  return { ...store, observer, reserve };
}

async function scriptCalls(): Promise<number> {
  const stats = await readCommandStats(redis);
  return (stats.get('evalsha')?.calls ?? 0) + (stats.get('eval')?.calls ?? 0);
}

test('the reservations of one turn are one call, of at most 32 windows', async () => {
  const { reserve, observer } = await open();
  const grants = await Promise.all(Array.from({ length: 70 }, (_, i) => reserve(`c${i}`)));
  expect(grants.map(({ granted, counts }) => [granted, counts[0].used])).toEqual(grants.map(() => [1, 1]));
  expect(await scriptCalls()).toBe(3);
  expect(observer.calls).toMatchObject([{ op: 'reserve' }, { op: 'reserve' }, { op: 'reserve' }]);
});

test('a window that comes twice in a turn is reserved from one after the other', async () => {
  const { reserve } = await open();
  const grants = await Promise.all(Array.from({ length: 4 }, () => reserve('acme', { need: 4, limit: 10 })));
  expect(grants.map(({ granted, counts }) => [granted, counts[0].used])).toEqual([
    [4, 4],
    [4, 8],
    [2, 10],
    [0, 10],
  ]);
});

test('a refund is part of the call, and returns units before a later reservation of the turn', async () => {
  const { reserve, windows } = await open();
  const grant = { ...request(), grant: 'acme-1' };
  await reserve('acme', { grant: grant.grant, need: 10, limit: 10 });
  await redis.command('CONFIG', 'RESETSTAT');
  const refunding = windows.refund('acme', [refundOf(grant, 3)]);
  const [refunded, other] = await Promise.all([refunding, reserve('globex')]);
  expect([refunded, other.granted]).toEqual([3, 1]);
  expect(await scriptCalls()).toBe(1);
  const [returned, again] = await Promise.all([
    windows.refund('acme', [refundOf(grant, 5)]),
    reserve('acme', { need: 10, limit: 10 }),
  ]);
  expect([returned, again.granted]).toEqual([2, 5]);
});

test.each([
  ['whose head is damaged', ['HSET', 'test:window:{damaged}', 'head', 'garbage']],
  ['of a wrong type', ['SET', 'test:window:{damaged}', 'text']],
])('a window %s fails alone', async (_what, command) => {
  const { reserve, observer } = await open();
  await redis.command(...command);
  const [before, damaged, after] = await Promise.allSettled([reserve('a'), reserve('damaged'), reserve('b')]);
  expect([before, after]).toMatchObject([{ value: { granted: 1 } }, { value: { granted: 1 } }]);
  expect(damaged).toMatchObject({ reason: expect.any(StoreUnavailableError) });
  expect(observer.calls).toMatchObject([{ op: 'reserve', failed: false }]);
});

test('a bucket that is no number fails the reservation that needs it, and no other', async () => {
  const { reserve } = await open();
  const { bucket } = await reserve('damaged');
  for (const at of [bucket, bucket + 1]) await redis.command('HSET', 'test:window:{damaged}', at, 'text');
  const [damaged, other] = await Promise.allSettled([reserve('damaged'), reserve('other')]);
  expect(damaged).toMatchObject({ reason: expect.any(StoreUnavailableError) });
  expect(other).toMatchObject({ value: { granted: 1 } });
});

test('a call that fails as a whole fails each of its reservations', async () => {
  const { reserve, observer } = await open();
  const calls = Promise.allSettled([reserve('a'), reserve('b')]);
  await redis.disconnect('tollgate-windows');
  const after = await calls;
  // The connection may have been closed before or after the reply.
  expect(new Set(after.map(({ status }) => status)).size).toBe(1);
  expect(observer.calls.filter(({ op }) => op === 'reserve')).toHaveLength(1);
});
