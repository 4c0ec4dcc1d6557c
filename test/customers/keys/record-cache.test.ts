import { describe, expect, test } from 'vitest';
import { RecordCache, type RecordCacheOptions } from '../../../src/customers/keys/record-cache.ts';
import { DamagedRecordError, StoreUnavailableError } from '../../../src/store/errors.ts';
import { HeldClock } from './held-clock.ts';
import { HeldReads } from './held-reads.ts';

interface Item {
  readonly version: number;
}

const CACHE_MS = 30_000;
const REFRESH_MS = 24_000;
const STALE_MS = 3_600_000;
const V1: Item = { version: 1 };
const V2: Item = { version: 2 };

function setUp(options: Partial<RecordCacheOptions<Item>> = {}) {
  const clock = new HeldClock();
  const source = new HeldReads<Item>();
  const cache = new RecordCache<Item>({
    read: source.read,
    unchanged: (held, read) => held.version === read.version,
    clock,
    provenAtMs: () => Number.NEGATIVE_INFINITY,
    cacheMs: CACHE_MS,
    entries: 100,
    staleIfErrorMs: STALE_MS,
    ...options,
  });
  /** Asks for a record that must be read, and gives it. */
  async function load(id: string, item: Item | undefined): Promise<Item | undefined> {
    const got = cache.get(id);
    expect(got).toBeInstanceOf(Promise);
    await source.answer(item);
    return got;
  }
  return { cache, clock, source, load };
}

test('other times hold from the next request on, for what is in memory already', async () => {
  const { cache, clock, source, load } = setUp();
  await load('a', V1);
  clock.advance(1000);
  cache.applyCacheTimes({ cacheMs: 1000, staleIfErrorMs: STALE_MS });
  expect(await load('a', V2)).toBe(V2);
  cache.applyCacheTimes({ cacheMs: CACHE_MS, staleIfErrorMs: STALE_MS });
  clock.advance(1000);
  expect(cache.get('a')).toBe(V2);
  expect(source.asked).toEqual(['a', 'a']);
});

describe('a record', () => {
  test('is read once and then answered without a promise', async () => {
    const { cache, source, load } = setUp();
    expect(await load('a', V1)).toBe(V1);
    expect(cache.get('a')).toBe(V1);
    expect(source.asked).toEqual(['a']);
  });

  test('is read once for all who wait for it', async () => {
    const { cache, source } = setUp();
    const waiting = [cache.get('a'), cache.get('a'), cache.get('a')];
    expect(source.asked).toEqual(['a']);
    await source.answer(V1);
    expect(await Promise.all(waiting)).toEqual([V1, V1, V1]);
  });

  test('is read again by the first request of the last fifth of its time, which does not wait', async () => {
    const { cache, clock, source, load } = setUp();
    await load('a', V1);
    clock.advance(REFRESH_MS - 1);
    expect(cache.get('a')).toBe(V1);
    expect(source.open).toBe(0);

    clock.advance(1);
    expect(cache.get('a')).toBe(V1);
    expect(cache.get('a')).toBe(V1);
    expect(source.open).toBe(1);
    await source.answer(V2);
    expect(cache.get('a')).toBe(V2);
  });

  test('is waited for once its time is over', async () => {
    const { cache, clock, source, load } = setUp();
    await load('a', V1);
    clock.advance(CACHE_MS);
    expect(await load('a', V2)).toBe(V2);
    expect(cache.get('a')).toBe(V2);
    expect(source.open).toBe(0);
  });

  test('counts its time from when it was asked for, not from the response', async () => {
    const { cache, clock, source } = setUp();
    const first = cache.get('a');
    clock.advance(CACHE_MS);
    await source.answer(V1);
    expect(await first).toBe(V1);
    expect(cache.get('a')).toBeInstanceOf(Promise);
    expect(source.open).toBe(1);
  });

  test('keeps its identity when it is read again unchanged', async () => {
    const { cache, clock, load } = setUp();
    await load('a', V1);
    clock.advance(CACHE_MS);
    expect(await load('a', { ...V1 })).toBe(V1);
    expect(cache.get('a')).toBe(V1);
  });

  test('is not read again while the push is proven to work, and again `cacheMs` after the last proof', async () => {
    let provenAtMs = Number.NEGATIVE_INFINITY;
    const { cache, clock, source, load } = setUp({ provenAtMs: () => provenAtMs });
    await load('a', V1);
    for (let proof = 0; proof < 20; proof++) {
      clock.advance(5000);
      provenAtMs = clock.monotonicMs();
      expect(cache.get('a')).toBe(V1);
    }
    expect(source.asked).toEqual(['a']);
    clock.advance(CACHE_MS - 1);
    expect(cache.get('a')).toBe(V1);
    clock.advance(1);
    expect(cache.get('a')).toBeInstanceOf(Promise);
  });

  test('is read again after ten minutes and `cacheMs`, whatever is proven', async () => {
    const { cache, clock, load } = setUp({ provenAtMs: () => Number.POSITIVE_INFINITY });
    await load('a', V1);
    clock.advance(600_000 + CACHE_MS - 1);
    expect(cache.get('a')).toBe(V1);
    clock.advance(1);
    expect(cache.get('a')).toBeInstanceOf(Promise);
  });

  test('is read again when anything may have changed, whatever is proven', async () => {
    const { cache, clock, load } = setUp({ provenAtMs: () => clock.monotonicMs() });
    await load('a', V1);
    cache.invalidateAll();
    expect(cache.get('a')).toBeInstanceOf(Promise);
  });

  test('is gone when the store says so, whatever was remembered', async () => {
    const { cache, clock, load } = setUp();
    await load('a', V1);
    clock.advance(CACHE_MS);
    expect(await load('a', undefined)).toBeUndefined();
    expect(cache.get('a')).toBeUndefined();
    expect(cache.size()).toEqual({ records: 0, missing: 1 });
  });

  test('makes room when it is the least recently used', async () => {
    const { cache, source, load } = setUp({ entries: 2 });
    await load('a', V1);
    await load('b', V1);
    cache.get('a');
    await load('c', V1);
    expect(cache.size().records).toBe(2);
    expect(cache.get('a')).toBe(V1);
    expect(cache.get('c')).toBe(V1);
    expect(source.open).toBe(0);
    expect(cache.get('b')).toBeInstanceOf(Promise);
  });

  test('is read every time when nothing may be cached', async () => {
    const { load } = setUp({ cacheMs: 0 });
    await load('a', V1);
    await load('a', V2);
    await load('a', undefined);
    expect(await load('a', undefined)).toBeUndefined();
  });
});

describe('a missing record', () => {
  test('is remembered for five seconds, from when it was asked for', async () => {
    const { cache, clock, source } = setUp();
    const first = cache.get('a');
    clock.advance(1000);
    await source.answer(undefined);
    expect(await first).toBeUndefined();

    clock.advance(3999);
    expect(cache.get('a')).toBeUndefined();
    clock.advance(1);
    expect(cache.get('a')).toBeInstanceOf(Promise);
  });

  test('is remembered no longer than a record would be', async () => {
    const { cache, clock, load } = setUp({ cacheMs: 2000 });
    await load('a', undefined);
    clock.advance(1999);
    expect(cache.get('a')).toBeUndefined();
    clock.advance(1);
    expect(cache.get('a')).toBeInstanceOf(Promise);
  });

  test('is not remembered beside the record that came to be', async () => {
    const { cache, clock, load } = setUp();
    await load('a', undefined);
    clock.advance(5000);
    await load('a', V1);
    expect(cache.size()).toEqual({ records: 1, missing: 0 });
  });

  test('is forgotten at once when it comes to be', async () => {
    const { cache, load } = setUp();
    await load('a', undefined);
    cache.invalidate('a');
    expect(await load('a', V1)).toBe(V1);
    expect(cache.size()).toEqual({ records: 1, missing: 0 });
  });

  test('is forgotten when anything may have changed', async () => {
    const { cache, load } = setUp();
    await load('a', undefined);
    cache.invalidateAll();
    expect(await load('a', V1)).toBe(V1);
  });

  test('rejects, and is not called missing, while the store is unavailable', async () => {
    const { cache, clock, source, load } = setUp();
    await load('a', undefined);
    clock.advance(5000);
    const known = cache.get('a');
    const unknown = cache.get('b');
    await Promise.all([
      expect(known).rejects.toBeInstanceOf(StoreUnavailableError),
      expect(unknown).rejects.toBeInstanceOf(StoreUnavailableError),
      source.fail(),
      source.fail(),
    ]);
  });

  test('evicts no record, and a hundred thousand of them leave memory bounded', async () => {
    let present: Item | undefined = V1;
    const { cache } = setUp({ entries: 10, read: async () => present });
    await cache.get('a');
    present = undefined;
    for (let batch = 0; batch < 100; batch += 1) {
      await Promise.all(Array.from({ length: 1000 }, (_, index) => cache.get(`made-up-${batch}-${index}`)));
    }
    expect(cache.get('a')).toBe(V1);
    expect(cache.size()).toEqual({ records: 1, missing: 10_000 });
  });
});

describe('an invalidation of one record', () => {
  test('ends it, and no other', async () => {
    const { cache, load } = setUp();
    await load('a', V1);
    await load('b', V1);
    cache.invalidate('a');
    expect(await load('a', V2)).toBe(V2);
    expect(cache.get('b')).toBe(V1);
  });

  test('during its read: who waits may have the result, who comes later has a newer one', async () => {
    const { cache, source } = setUp();
    const before = cache.get('a');
    cache.invalidate('a');
    const after = cache.get('a');
    expect(source.open).toBe(2);
    await source.answer(V1);
    expect(await before).toBe(V1);
    await source.answer(V2);
    expect(await after).toBe(V2);
    expect(cache.get('a')).toBe(V2);
  });

  test('during its read: the result is not kept', async () => {
    const { cache, source, load } = setUp();
    const before = cache.get('a');
    cache.invalidate('a');
    await source.answer(V1);
    expect(await before).toBe(V1);
    await load('a', V2);
    expect(cache.get('a')).toBe(V2);
  });

  test('during its read: that it was missing is not remembered', async () => {
    const { cache, source, load } = setUp();
    const before = cache.get('a');
    cache.invalidate('a');
    await source.answer(undefined);
    expect(await before).toBeUndefined();
    expect(await load('a', V1)).toBe(V1);
  });

  test('a read from before it does not overwrite a newer one that was faster', async () => {
    const { cache, clock, source, load } = setUp();
    await load('a', V1);
    clock.advance(REFRESH_MS);
    cache.get('a');
    cache.invalidate('a');
    const after = cache.get('a');
    // The second read overtakes the first, which is then left to answer.
    await source.answerLast(V2);
    expect(await after).toBe(V2);
    await source.answer(V1);
    expect(cache.get('a')).toBe(V2);
  });

  test('a record that is known to have changed does not stand in for the store', async () => {
    const { cache, source, load } = setUp();
    await load('a', V1);
    cache.invalidate('a');
    const asked = cache.get('a');
    await Promise.all([expect(asked).rejects.toBeInstanceOf(StoreUnavailableError), source.fail()]);
  });
});

describe('when anything may have changed', () => {
  test('every record is read again before it answers', async () => {
    const { cache, load } = setUp();
    await load('a', V1);
    await load('b', V1);
    cache.invalidateAll();
    expect(await load('a', V2)).toBe(V2);
    expect(await load('b', V2)).toBe(V2);
    expect(cache.get('a')).toBe(V2);
  });

  test('a read that is in progress is not kept', async () => {
    const { cache, source } = setUp();
    const before = cache.get('a');
    cache.invalidateAll();
    await source.answer(V1);
    expect(await before).toBe(V1);
    expect(cache.get('a')).toBeInstanceOf(Promise);
    expect(source.open).toBe(1);
  });

  test('a record still answers when it cannot be read again', async () => {
    const { cache, source, load } = setUp();
    await load('a', V1);
    cache.invalidateAll();
    const asked = cache.get('a');
    await source.fail();
    expect(await asked).toBe(V1);
    expect(cache.get('a')).toBe(V1);
  });

  test('that reading failed before says nothing: it is tried again before the record answers', async () => {
    const { cache, clock, source, load } = setUp();
    await load('a', V1);
    clock.advance(CACHE_MS);
    const asked = cache.get('a');
    await source.fail();
    expect(await asked).toBe(V1);
    cache.invalidateAll();
    expect(await load('a', V2)).toBe(V2);
  });

  test('the failure of a read from before says nothing either', async () => {
    const { cache, clock, source, load } = setUp();
    await load('a', V1);
    clock.advance(CACHE_MS);
    const asked = cache.get('a');
    cache.invalidateAll();
    await source.fail();
    expect(await asked).toBe(V1);
    expect(await load('a', V2)).toBe(V2);
  });
});

describe('while the store is unavailable', () => {
  test('a record answers until it was confirmed too long ago', async () => {
    const { cache, clock, source, load } = setUp();
    await load('a', V1);
    clock.advance(STALE_MS - 1);
    const within = cache.get('a');
    await source.fail();
    expect(await within).toBe(V1);

    clock.advance(1);
    const beyond = cache.get('a');
    await Promise.all([expect(beyond).rejects.toBeInstanceOf(StoreUnavailableError), source.fail()]);
  });

  test('requests do not wait after the first, and the store is asked every 250 ms', async () => {
    const { cache, clock, source, load } = setUp();
    await load('a', V1);
    clock.advance(CACHE_MS);
    const first = cache.get('a');
    await source.fail();
    expect(await first).toBe(V1);

    for (let round = 0; round < 10; round += 1) {
      clock.advance(249);
      expect(cache.get('a')).toBe(V1);
      expect(source.open).toBe(0);
      clock.advance(1);
      expect(cache.get('a')).toBe(V1);
      expect(cache.get('a')).toBe(V1);
      expect(source.open).toBe(1);
      await source.fail();
    }
  });

  test('nobody ever waits for a busy record: reading ahead has failed before its time was over', async () => {
    const { cache, clock, source, load } = setUp();
    await load('a', V1);
    clock.advance(REFRESH_MS);
    for (let elapsedMs = 0; elapsedMs < 2 * CACHE_MS; elapsedMs += 100) {
      expect(cache.get('a')).toBe(V1);
      if (source.open > 0) await source.fail();
      clock.advance(100);
    }
  });

  test('a record that was not asked for meanwhile is read before it answers', async () => {
    const { cache, clock, source, load } = setUp();
    await load('a', V1);
    clock.advance(CACHE_MS);
    const first = cache.get('a');
    await source.fail();
    await first;
    clock.advance(1000);
    expect(await load('a', V2)).toBe(V2);
  });

  test('the first read that succeeds ends it', async () => {
    const { cache, clock, source, load } = setUp();
    await load('a', V1);
    clock.advance(CACHE_MS);
    const first = cache.get('a');
    await source.fail();
    await first;
    clock.advance(250);
    expect(cache.get('a')).toBe(V1);
    await source.answer(V2);
    clock.advance(REFRESH_MS - 1);
    expect(cache.get('a')).toBe(V2);
    expect(source.open).toBe(0);
  });

  test('a failure counts no more once a read has succeeded', async () => {
    const { cache, clock, source, load } = setUp({ cacheMs: 300 });
    await load('a', V1);
    clock.advance(300);
    const first = cache.get('a');
    await source.fail();
    await first;
    clock.advance(250);
    cache.get('a');
    await source.answer(V1);
    clock.advance(300);
    expect(await load('a', V2)).toBe(V2);
  });

  test('reading ahead for nobody may fail', async () => {
    const { cache, clock, source, load } = setUp({ staleIfErrorMs: 0 });
    await load('a', V1);
    clock.advance(REFRESH_MS);
    expect(cache.get('a')).toBe(V1);
    // A rejection that nobody handled would end the process, and fails the test run.
    await source.fail();
    expect(cache.get('a')).toBe(V1);
  });

  test('a record that has been damaged is no failure of the store: what it was does not stand in for it', async () => {
    let read: () => Promise<Item> = async () => V1;
    const { cache, clock } = setUp({ read: () => read() });
    await cache.get('a');
    read = async () => {
      throw new DamagedRecordError('WRONGTYPE');
    };
    clock.advance(CACHE_MS);
    await expect(cache.get('a')).rejects.toBeInstanceOf(DamagedRecordError);
    expect(cache.size().records).toBe(0);
    read = async () => V2;
    expect(await cache.get('a')).toBe(V2);
  });

  test('what is no failure of the store is not papered over', async () => {
    const { cache, clock, source, load } = setUp();
    await load('a', V1);
    clock.advance(CACHE_MS);
    const asked = cache.get('a');
    await Promise.all([expect(asked).rejects.toThrow('a bug'), source.fail(new Error('a bug'))]);
    expect(await load('a', V2)).toBe(V2);
  });
});
