/**
 * A key that was created (or made by a rotation) while its customer was being deleted survived the deletion in one of
 * seven tries, and worked for the next customer of the same id.
 */
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWithPrefix } from '../store/open-with-prefix.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

const TRIES = 50;
const CREATIONS = 20;
const ACME = { id: 'acme', plan: 'starter', suspended: false };

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('no key of a deleted customer is left, however the deletion and the creation of keys meet', async () => {
  const { store, prefix } = await openWithPrefix(redis);
  const { store: other } = await openWithPrefix(redis, prefix);
  const outcomes = new Set<string>();
  for (let round = 0; round < TRIES; round += 1) {
    await store.records.createCustomer(ACME);
    const creations = Promise.all(
      Array.from({ length: CREATIONS }, async (_, i) => {
        await setTimeout(i % 4);
        return other.records.createKey(`${i}`.padStart(64, '0'), { id: `key-${i}`, customer: 'acme' });
      }),
    );
    await setTimeout(round % 4);
    await store.records.deleteCustomer('acme');
    for (const outcome of await creations) outcomes.add(outcome);
    expect(await redis.command('KEYS', `${prefix}:key:*`)).toEqual([]);
  }
  expect([...outcomes].toSorted()).toEqual(['created', 'no_customer']);
});
