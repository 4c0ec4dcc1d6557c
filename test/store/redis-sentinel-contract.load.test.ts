/** What a store promises, it promises behind Sentinel as well. */
import { afterAll, beforeAll } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openStore } from '../../src/store/open/open-store.ts';
import { type SentinelSystem, startSentinelSystem } from '../support/redis-sentinel.ts';
import { acceptAsEmpty } from '../support/redis-system.ts';
import { storeContract } from './contract.ts';
import { RETENTION } from './contract-history.ts';

let sentinel: SentinelSystem;
let storeNumber = 0;
beforeAll(async () => {
  sentinel = await startSentinelSystem();
});
afterAll(() => sentinel.stop());

storeContract('the store behind Sentinel', async (observer) => {
  storeNumber += 1;
  const settings = { url: sentinel.url, keyPrefix: `test-${storeNumber}`, timeoutMs: 2000, usage: RETENTION };
  await acceptAsEmpty(await sentinel.master(), settings.keyPrefix);
  return openStore(settings, { clock: systemClock, warn: () => undefined, observer });
});
