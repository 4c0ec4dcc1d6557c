/** Customers that another program writes into Redis, and searches for them. */
import { onTestFinished } from 'vitest';
import type { CustomerSearch } from '../../src/store/customer-search.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import type { Store } from '../../src/store/store.ts';
import { closeAtEnd, startShared } from '../support/cleanup.ts';
import { startRedis } from '../support/redis-server.ts';
import { readCommandStats } from '../support/redis-system.ts';
import { silent } from '../support/silent.ts';
import { RecordingObserver } from './contract.ts';
import { everyPage } from './every-page.ts';

/** Starts a Redis for all tests of a file. Stores that a test opens are closed when it ends. */
export function startCustomersInRedis() {
  const redis = startShared(async () => {
    const server = await startRedis();
    closeAtEnd(() => server.stop());
    return server;
  });

  async function open(url = redis().url): Promise<Store> {
    const surroundings = { ...silent, observer: new RecordingObserver() };
    const store = await openRedisStore({ url, keyPrefix: 'test', timeoutMs: 2000, ...surroundings });
    onTestFinished(() => store.close());
    return store;
  }

  async function openEmpty(): Promise<Store> {
    await redis().command('FLUSHALL');
    return open();
  }

  async function idsOf({ records }: Store, search: CustomerSearch, limit = 10): Promise<string[]> {
    const pages = await everyPage((cursor) => records.findCustomers(search, cursor, limit));
    return pages.flat().map(({ id }) => id);
  }

  const write = (id: string, ...fields: string[]) =>
    redis().command('HSET', `test:customer:{${id}}`, 'plan', 'starter', ...fields);

  /** Writes customers `c-1` and so on, as another program would. */
  async function writeMany(count: number, name = 'Customer'): Promise<void> {
    const script = `for i = 1, ARGV[1] do redis.call('HSET', 'test:customer:{c-' .. i .. '}', 'plan', 'starter', 'name', ARGV[2] .. ' ' .. i) end`;
    await redis().command('EVAL', script, 0, count, name);
  }

  /** Resolves to how many records a search reads one by one, and how many steps of a scan it takes. */
  async function costOf(search: () => Promise<unknown>): Promise<{ read: number; scans: number }> {
    await redis().command('CONFIG', 'RESETSTAT');
    await search();
    const stats = await readCommandStats(redis());
    return { read: stats.get('hmget')?.calls ?? 0, scans: stats.get('scan')?.calls ?? 0 };
  }

  return { redis, open, openEmpty, idsOf, write, writeMany, costOf };
}
