import { afterAll, beforeAll } from 'vitest';
import { openStore } from '../../src/store/open/open-store.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { acceptAsEmpty } from '../support/redis-system.ts';
import { silent } from '../support/silent.ts';
import { type OpenStore, storeContract } from './contract.ts';
import { RETENTION } from './contract-history.ts';
import { keysContract } from './contract-keys.ts';
import { periodsContract } from './contract-periods.ts';

let redis: RedisServer;
let storeNumber = 0;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const open: OpenStore = async (observer) => {
  storeNumber += 1;
  const settings = { url: redis.url, keyPrefix: `test-${storeNumber}`, timeoutMs: 2000, usage: RETENTION };
  await acceptAsEmpty(redis, settings.keyPrefix);
  return openStore(settings, { ...silent, observer });
};

storeContract('the Redis store', open);
periodsContract('the Redis store', open);
keysContract('the Redis store', open);
