/** What a store promises, it promises on Redis Cluster as well. Behind Sentinel: redis-sentinel-contract.load.test.ts. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { StoreObserver } from '../../src/store/observer.ts';
import { openStore } from '../../src/store/open/open-store.ts';
import { tryStore } from '../../src/store/open/try-store.ts';
import { PART_TAGS } from '../../src/store/redis/protocol/hash-slots.ts';
import { redisKeyNames } from '../../src/store/redis/protocol/key-names.ts';
import { type RedisClusterServers, startRedisCluster } from '../support/redis-cluster.ts';
import { type SentinelSystem, startSentinelSystem } from '../support/redis-sentinel.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { acceptAsEmpty } from '../support/redis-system.ts';
import { storeContract } from './contract.ts';
import { RETENTION } from './contract-history.ts';
import { keysContract } from './contract-keys.ts';
import { periodsContract } from './contract-periods.ts';

let cluster: RedisClusterServers;
/** Of each part of the slots. */
let masters: readonly RedisServer[];
let sentinel: SentinelSystem;
let storeNumber = 0;
beforeAll(async () => {
  [cluster, sentinel] = await Promise.all([startRedisCluster(), startSentinelSystem()]);
  masters = await Promise.all(PART_TAGS.map((tag) => cluster.holderOf(`{${tag}}`)));
});
afterAll(() => Promise.all([cluster.stop(), sentinel.stop()]));

/** Marks each part as `store init` does: a first start would wait for another gateway that may be writing these marks. */
async function acceptPartsAsEmpty(prefix: string): Promise<void> {
  const { installedPart } = redisKeyNames(prefix);
  await Promise.all(PART_TAGS.map((tag, part) => masters[part]?.command('SET', installedPart(tag), 'init-test')));
}

async function open(observer: StoreObserver) {
  storeNumber += 1;
  const settings = { url: cluster.url, keyPrefix: `test-${storeNumber}`, timeoutMs: 2000, usage: RETENTION };
  await acceptAsEmpty(cluster, settings.keyPrefix);
  await acceptPartsAsEmpty(settings.keyPrefix);
  return openStore(settings, { clock: systemClock, warn: () => undefined, observer });
}

test('a check of the store tries each master of a cluster, and the master that the sentinels name', async () => {
  const check = ({ url }: { readonly url: string }) => tryStore({ url, keyPrefix: 'test', timeoutMs: 100 });
  const masters = await check(cluster);
  expect(masters.map(({ outcome }) => outcome)).toEqual(['ok', 'ok', 'ok']);
  for (const { text } of masters) expect(text).toMatch(/^master 127\.0\.0\.1:\d+: Redis \d/);
  expect(new Set(masters.map(({ text }) => text.split(': ')[0])).size).toBe(3);
  expect(await check(sentinel)).toMatchObject([{ outcome: 'ok', text: expect.stringMatching(/^Redis \d/) }]);
});

storeContract('the store on Redis Cluster', open);
periodsContract('the store on Redis Cluster', open);
keysContract('the store on Redis Cluster', open);
