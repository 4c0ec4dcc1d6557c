import type { RedisServer } from './redis-server.ts';
import { storeTimeMs } from './redis-system.ts';
import { STORE_CLOCK_SET_BY } from './store-clock-key.ts';

/**
 * The environment of a gateway whose scripts read the clock that the test sets. It is not traced: the rules of traces hold
 * only while that clock is not set under open leases.
 */
export const STORE_CLOCK_ENVIRONMENT: Readonly<Record<string, string>> = {
  NODE_OPTIONS: `--import ${new URL('./store-clock-preload.ts', import.meta.url)}`,
};

/** Sets the store's clock, which goes on from there. */
export async function setStoreClock(redis: RedisServer, toMs: number): Promise<void> {
  await redis.command('SET', STORE_CLOCK_SET_BY, Math.round((toMs - (await storeTimeMs(redis))) / 1000));
}

/** Returns the store's time by the clock that the test set, in ms since 1970. */
export async function setStoreTimeMs(redis: RedisServer): Promise<number> {
  const aheadSeconds = Number((await redis.command('GET', STORE_CLOCK_SET_BY)) ?? 0);
  return (await storeTimeMs(redis)) + 1000 * aheadSeconds;
}
