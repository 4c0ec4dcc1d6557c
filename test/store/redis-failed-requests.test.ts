/** Failed requests in a Redis that other programs write, or that permits too little. */
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { StoreUnavailableError } from '../../src/store/errors.ts';
import type { FailedRequest } from '../../src/store/failed-requests.ts';
import { openStore } from '../../src/store/open/open-store.ts';
import { HOUR_MS } from '../../src/store/usage-history.ts';
import { hourly } from '../../src/store/windows.ts';
import { closeAtEnd, startShared } from '../support/cleanup.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';

const BOUNDS = { hours: 24, entries: 50 };
const shared = startShared(async () => {
  const redis = await startRedis();
  closeAtEnd(() => redis.stop());
  return redis;
});

let prefixes = 0;

async function open(redis: RedisServer, user = '') {
  const keyPrefix = `test-${++prefixes}`;
  const warnings: string[] = [];
  const store = await openStore(
    { url: redis.url.replace('//', `//${user}`), keyPrefix, timeoutMs: 2000 },
    { clock: systemClock, observer: silent.observer, warn: (message) => void warnings.push(message) },
  );
  closeAtEnd(() => store.close());
  return { store, failed: store.failedRequests, name: `${keyPrefix}:requests`, warnings };
}

const request = (id: string, atMs: number): FailedRequest => {
  return { id, atMs, requestId: 'r', status: 429, source: 'gateway', method: 'GET', route: '/' };
};

test('what another program writes there is ignored, and dropped when there is too much', async () => {
  const redis = shared();
  const { failed, name } = await open(redis);
  const nowMs = await failed.nowMs();
  const valid = { id: 'x.1', request_id: 'r', status: 429, source: 'gateway', method: 'GET', route: '/' };
  const garbage = [
    '',
    'text',
    'null',
    '[]',
    '"request_id":"r"',
    '{"request_id":"r"}',
    JSON.stringify({ ...valid, status: '429' }),
    JSON.stringify({ ...valid, customer: {} }),
    JSON.stringify({ ...valid, id: 'a b' }),
    JSON.stringify({ ...valid, source: 'other' }),
    JSON.stringify({ ...valid, failure: '"request_id":"r"', request_id: 'other', route: 7 }),
  ];
  for (const text of garbage) await redis.command('ZADD', name, nowMs, text);
  for (const score of ['+inf', '-inf', '1e300', String(nowMs + 0.5), String(nowMs + 9 * HOUR_MS)]) {
    await redis.command('ZADD', name, score, JSON.stringify({ ...valid, id: `x${score.replace('+', '')}` }));
  }
  await failed.add([request('a.1', nowMs)], BOUNDS);
  const { items } = await failed.list({ sinceMs: nowMs - HOUR_MS }, undefined, 100);
  expect(items).toEqual([request('a.1', nowMs)]);
  expect(await failed.find('r', nowMs - HOUR_MS, 20)).toEqual(items);

  const many = Array.from({ length: 3000 }, (_, at) => [String(nowMs), `garbage ${at}`]).flat();
  await redis.command('ZADD', name, ...many);
  await failed.add([request('a.2', nowMs)], BOUNDS);
  expect(await redis.command('ZCARD', name)).toBeLessThanOrEqual(BOUNDS.entries);
  await failed.add([request('a.3', nowMs)], BOUNDS);
  expect((await failed.list({ sinceMs: nowMs - HOUR_MS }, undefined, 100)).items.map(({ id }) => id)).toContain('a.3');
});

test('of a Redis key of another type, nothing is read, nothing is destroyed, and the log says so once', async () => {
  const redis = shared();
  const { store, failed, name, warnings } = await open(redis);
  await redis.command('SET', name, 'text');
  for (let at = 0; at < 2; at++) {
    await expect(failed.add([request('a.1', Date.now())], BOUNDS)).rejects.toThrow(StoreUnavailableError);
  }
  expect((await failed.list({ sinceMs: 0 }, undefined, 100)).items).toEqual([]);
  expect(await failed.find('r', 0, 20)).toEqual([]);
  expect(await redis.command('GET', name)).toBe('text');
  expect(warnings.filter((text) => text.includes('refused and failed requests are not recorded'))).toHaveLength(1);
  expect(store.isUp()).toBe(true);
});

test('a missing permission turns them off with a warning, and quotas go on', async () => {
  const redis = shared();
  const rules = ['~*', '&*', '+@all', '-zadd', '-zrevrangebyscore'];
  await redis.command('ACL', 'SETUSER', 'limited', 'on', '>some-password', ...rules);
  const { store, failed, warnings } = await open(redis, 'limited:some-password@');
  await expect(failed.add([request('a.1', Date.now())], BOUNDS)).rejects.toThrow(StoreUnavailableError);
  await expect(failed.list({ sinceMs: 0 }, undefined, 100)).rejects.toThrow(StoreUnavailableError);
  expect(warnings).toContainEqual(expect.stringMatching(/refused and failed requests are not recorded: NOPERM/));
  const reserve = { customer: 'acme', grant: 'a', need: 1, ahead: 0, limits: hourly(10), holdMs: 2000, refunds: [] };
  expect(await store.windows.reserve(reserve)).toMatchObject({ granted: 1 });
  expect(store.isUp('acme')).toBe(true);
});

test('the set expires with its last request', async () => {
  const { failed, name } = await open(shared());
  await failed.add([request('a.1', Date.now())], BOUNDS);
  const leftMs = Number(await shared().command('PTTL', name));
  expect(leftMs).toBeGreaterThan(23 * HOUR_MS);
  expect(leftMs).toBeLessThanOrEqual(24 * HOUR_MS);
});
