/** The share of one backend in the requests in progress. Times are given, so no test waits. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Backends } from '../../src/upstream/backends.ts';

const SETTINGS = {
  urls: ['http://192.0.2.1'],
  balance: 'least_loaded',
  connectTimeoutMs: 1000,
  maxConnections: 1,
  maxConnectionsPerCustomer: 1,
  responseHeaderBytes: 16_384,
} as const;

function openBackends(maxInFlight: number, ...names: string[]) {
  const backends = new Backends({
    maxInFlight: () => maxInFlight,
    observer: { changed() {}, retry() {} },
    clock: systemClock,
  });
  onTestFinished(() => backends.close());
  const apply = (...given: string[]) => backends.apply(new Map(given.map((name) => [name, SETTINGS])));
  apply(...names);
  /** Begins so many requests at a time; returns how many may proceed, and ends the others at once. */
  const begin = (name: string, count: number, nowMs: number) => {
    const backend = backends.get(name);
    return Array.from({ length: count }, () => {
      const mayProceed = backend.began(nowMs);
      if (!mayProceed) backend.ended();
      return mayProceed;
    }).filter((mayProceed) => mayProceed).length;
  };
  return { backends, apply, begin };
}

test('a backend that is alone has no share', () => {
  expect(openBackends(10, 'one').begin('one', 50, 0)).toBe(50);
});

test('of several, one has no share while the others have had no work', () => {
  expect(openBackends(10, 'one', 'two').begin('one', 50, 0)).toBe(50);
});

test.each([
  [10, 5],
  [7, 4],
  [1, 1],
])('of %i, half (%i) may be for one backend while another has a request in progress', (maxInFlight, half) => {
  const { backends, begin } = openBackends(maxInFlight, 'one', 'two');
  begin('two', 1, 0);
  expect(begin('one', 50, 1_000_000)).toBe(half);
  expect(begin('one', 1, 1_000_000)).toBe(0);
  backends.get('one').ended();
  expect(begin('one', 2, 1_000_000)).toBe(1);
});

test('for ten seconds after its latest request, another backend still has work', () => {
  const { backends, begin } = openBackends(10, 'one', 'two');
  begin('two', 1, 1000);
  backends.get('two').ended();
  expect(begin('one', 50, 10_999)).toBe(5);
  expect(begin('one', 1, 11_000)).toBe(1);
});

test('a request that is refused is work, too: the backend that hangs does not take more for it', () => {
  const { begin } = openBackends(10, 'one', 'two');
  begin('two', 1, 0);
  expect(begin('one', 6, 0)).toBe(5);
  expect(begin('two', 9, 5000)).toBe(4);
});

test('a backend that is removed has no work, and one that is unknown is a bug', () => {
  const { backends, apply, begin } = openBackends(10, 'one', 'two');
  begin('two', 1, 0);
  apply('one');
  expect(begin('one', 50, 0)).toBe(50);
  expect(() => backends.get('two')).toThrow('there is no backend two');
});

test('backends that were replaced or removed are garbage', async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const { backends } = openBackends(10, 'one');
  const former: WeakRef<object>[] = [];
  for (const maxConnections of [2, 3, 4, 5]) {
    former.push(new WeakRef(backends.get('one')));
    backends.apply(new Map([['one', { ...SETTINGS, maxConnections }]]));
  }
  await expect
    .poll(() => {
      collect();
      return former.filter((each) => each.deref() !== undefined).length;
    })
    .toBe(0);
});
