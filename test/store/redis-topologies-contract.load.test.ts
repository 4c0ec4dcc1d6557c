/** What a store promises, it promises on Redis Cluster and behind Sentinel as well. */
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openStore } from '../../src/store/open/open-store.ts';
import { tryStore } from '../../src/store/open/try-store.ts';
import { closeAtEnd, startShared } from '../support/cleanup.ts';
import { type SentinelSystem, startSentinelSystem } from '../support/redis-sentinel.ts';
import { acceptAsEmpty } from '../support/redis-system.ts';
import { storeContract } from './contract.ts';
import { RETENTION } from './contract-history.ts';
import { startClusterForStores } from './stores-on-cluster.ts';

const cluster = startClusterForStores();
const sentinel = startShared(async (): Promise<SentinelSystem> => {
  // Nothing fails here, but on a busy machine servers stand still.
  const system = await startSentinelSystem({ downAfterMs: 30_000 });
  closeAtEnd(() => system.stop());
  return system;
});
let storeNumber = 0;

test('a check of the store tries each master of a cluster, and the master that the sentinels name', async () => {
  const check = ({ url }: { readonly url: string }) => tryStore({ url, keyPrefix: 'test', timeoutMs: 2000 });
  const masters = await check(cluster.servers());
  expect(masters.map(({ outcome }) => outcome)).toEqual(['ok', 'ok', 'ok']);
  for (const { text } of masters) expect(text).toMatch(/^master 127\.0\.0\.1:\d+: Redis \d/);
  expect(new Set(masters.map(({ text }) => text.split(': ')[0])).size).toBe(3);
  expect(await check(sentinel())).toMatchObject([{ outcome: 'ok', text: expect.stringMatching(/^Redis \d/) }]);
});

storeContract('the store on Redis Cluster', cluster.open);
storeContract('the store behind Sentinel', async (observer) => {
  storeNumber += 1;
  const settings = { url: sentinel().url, keyPrefix: `test-${storeNumber}`, timeoutMs: 2000, usage: RETENTION };
  await acceptAsEmpty(await sentinel().master(), settings.keyPrefix);
  return openStore(settings, { clock: systemClock, warn: () => undefined, observer });
});
