/** Walks through the list of keys in a Redis that others use, page by page. */
import { expect, onTestFinished } from 'vitest';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import type { Store } from '../../src/store/store.ts';
import { closeAtEnd, startShared } from '../support/cleanup.ts';
import { startRedis } from '../support/redis-server.ts';
import { silent } from '../support/silent.ts';
import { sha256Of } from '../support/stored-key.ts';
import { RecordingObserver } from './contract.ts';
import { everyPage } from './every-page.ts';

/** Returns the ids on all pages. */
export async function ids(list: Promise<readonly (readonly { id: string }[])[]>): Promise<string[]> {
  return (await list).flat().map(({ id }) => id);
}

/** Starts a Redis for all tests of a file. Stores that a test opens are closed when it ends. */
export function startListedRedis() {
  const redis = startShared(async () => {
    const server = await startRedis();
    closeAtEnd(() => server.stop());
    return server;
  });

  /** On a Redis that is empty again: foreign names decide how SCAN goes. */
  async function open(keyPrefix = 'test'): Promise<Store> {
    await redis().command('FLUSHALL');
    const surroundings = { ...silent, observer: new RecordingObserver() };
    const store = await openRedisStore({ url: redis().url, keyPrefix, timeoutMs: 2000, ...surroundings });
    onTestFinished(() => store.close());
    return store;
  }

  /** Runs one command for each number, in few round trips. */
  async function forEach(count: number, command: string): Promise<void> {
    const script = `for i = 0, ARGV[1] - 1 do local n = string.format('%064d', i); ${command} end`;
    await redis().command('EVAL', script, 0, count);
  }

  function writeKeys(count: number, prefix = 'test'): Promise<void> {
    return forEach(count, `redis.call('HSET', '${prefix}:key:' .. n, 'id', 'k' .. i, 'customer', 'acme')`);
  }

  async function expectEachListedOnce(limit: number): Promise<void> {
    const { records } = await open();
    await writeKeys(3000);
    const pages = await everyPage((cursor) => records.listKeys(cursor, limit));
    expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(limit);
    expect(new Set(pages.flat().map(({ id }) => id)).size).toBe(3000);
    expect(pages.flat()).toHaveLength(3000);
  }

  /** Other names and most records come and go meanwhile. */
  async function expectNoneLeftOutOfChangingTables(limit: number): Promise<void> {
    const { records } = await open();
    await writeKeys(2000);
    const stays = (number: number) => number % 4 === 0;
    let step = 0;
    const listed = new Set(
      await ids(
        everyPage(
          (cursor) => records.listKeys(cursor, limit),
          async () => {
            step += 1;
            // Twelve thousand names come over the first pages, and go over the next, with most of the records.
            if (step <= 6) await forEach(step * 2000, "redis.call('SET', 'other:' .. i, 'x')");
            else if (step <= 12) await forEach((step - 6) * 2000, "redis.call('DEL', 'other:' .. i)");
            const gone = Array.from({ length: 150 }, (_, i) => (step - 1) * 150 + i).filter(
              (n) => !stays(n) && n < 2000,
            );
            if (gone.length > 0) await redis().command('DEL', ...gone.map((n) => `test:key:${sha256Of(n)}`));
          },
        ),
      ),
    );
    const missing = Array.from({ length: 2000 }, (_, i) => i).filter((n) => stays(n) && !listed.has(`k${n}`));
    expect(missing).toEqual([]);
  }

  /** Its neighbours are deleted meanwhile. */
  async function expectNoneLeftOutBesideDeletions(limit: number): Promise<void> {
    const { records } = await open();
    const count = 1500;
    await writeKeys(count);
    let deleted = 0;
    const listed = new Set(
      await ids(
        everyPage(
          (cursor) => records.listKeys(cursor, limit),
          async () => {
            // Odd ones go, as fast as the walk proceeds.
            const gone = Array.from({ length: 2 * limit }, () => sha256Of(1 + 2 * deleted++));
            await redis().command('DEL', ...gone.map((sha256) => `test:key:${sha256}`));
          },
        ),
      ),
    );
    const missing = Array.from({ length: count / 2 }, (_, i) => `k${2 * i}`).filter((id) => !listed.has(id));
    expect(missing).toEqual([]);
  }

  return {
    redis,
    open,
    forEach,
    writeKeys,
    expectEachListedOnce,
    expectNoneLeftOutOfChangingTables,
    expectNoneLeftOutBesideDeletions,
  };
}
