/** What a store promises, it promises on Redis Cluster and behind Sentinel as well. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openStore } from '../../src/store/open/open-store.ts';
import { tryStore } from '../../src/store/open/try-store.ts';
import type { StoreObserver } from '../../src/store/store.ts';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { startSentinelSystem } from '../support/redis-sentinel.ts';
import { RecordingObserver, storeContract } from './contract.ts';

interface Servers {
  readonly url: string;
  stop(): Promise<void>;
}

const started: { cluster?: Servers; sentinel?: Servers } = {};
let storeNumber = 0;
beforeAll(async () => {
  started.cluster = await startRedisCluster();
  started.sentinel = await startSentinelSystem();
});
afterAll(async () => {
  await started.cluster?.stop();
  await started.sentinel?.stop();
});

async function open(servers: Servers | undefined, observer: StoreObserver) {
  storeNumber += 1;
  const settings = { url: servers?.url ?? '', keyPrefix: `test-${storeNumber}`, timeoutMs: 2000 };
  const surroundings = { clock: systemClock, warn: () => undefined };
  // Empty on purpose: otherwise unknown keys would be in doubt.
  const first = await openStore(settings, { ...surroundings, observer: new RecordingObserver() });
  await first.initialise();
  await first.close();
  return openStore(settings, { ...surroundings, observer });
}

test('a check of the store tries each master of a cluster, and the master that the sentinels name', async () => {
  const check = (servers: Servers | undefined) =>
    tryStore({ url: servers?.url ?? '', keyPrefix: 'test', timeoutMs: 100 });
  const masters = await check(started.cluster);
  expect(masters.map(({ outcome }) => outcome)).toEqual(['ok', 'ok', 'ok']);
  for (const { text } of masters) expect(text).toMatch(/^master 127\.0\.0\.1:\d+: Redis \d/);
  expect(new Set(masters.map(({ text }) => text.split(': ')[0])).size).toBe(3);
  expect(await check(started.sentinel)).toMatchObject([{ outcome: 'ok', text: expect.stringMatching(/^Redis \d/) }]);
});

storeContract('the store on Redis Cluster', (observer) => open(started.cluster, observer));
storeContract('the store behind Sentinel', (observer) => open(started.sentinel, observer));
