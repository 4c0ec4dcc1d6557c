/**
 * A key that was created (or made by a rotation) while its customer was being deleted survived the deletion in one of
 * seven tries, and worked for the next customer of the same id.
 */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWithPrefix } from '../store/open-with-prefix.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

/** So long each reply to the creating gateway takes: a deletion fits between two steps. */
const STEP_MS = 5;
const STEPS = 7;
const ACME = { id: 'acme', plan: 'starter', suspended: false };

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('no key of a deleted customer is left, at whichever step of its creation the customer is deleted', async () => {
  const proxy = await startFaultProxy(redis);
  const { store, prefix } = await openWithPrefix(redis);
  const { store: slow } = await openWithPrefix({ ...redis, url: `redis://127.0.0.1:${proxy.port}` }, prefix);
  proxy.delay(STEP_MS);
  for (let afterMs = 0; afterMs < STEPS * STEP_MS; afterMs += 1) {
    await store.records.createCustomer(ACME);
    const creation = slow.records.createKey('0'.repeat(64), { id: 'key', customer: 'acme' });
    await setTimeout(afterMs);
    await store.records.deleteCustomer('acme');
    await creation;
    expect(await redis.command('KEYS', `${prefix}:key:*`)).toEqual([]);
  }
});
