import { expect, test } from 'vitest';
import type { Scheduler } from '../../../src/base/clock.ts';
import { FailedRequestCollector } from '../../../src/customers/usage/failed-request-collector.ts';
import type { FailedRequest, FailedRequestBounds } from '../../../src/store/failed-requests.ts';
import { HeldClock } from '../keys/held-clock.ts';

const BOUNDS: FailedRequestBounds = { hours: 24, entries: 1000 };

function collectorOver({ bounds = BOUNDS, storeAheadMs = 0 } = {}) {
  const clock = new HeldClock();
  const store = { isUp: true, fails: false, written: new Map<string, FailedRequest>(), dropped: 0 };
  let tick: () => void = () => undefined;
  const scheduler: Pick<Scheduler, 'after'> = {
    after(_delayMs, action) {
      tick = action;
      return { cancel: () => undefined };
    },
  };
  const collector = new FailedRequestCollector({
    store: {
      nowMs: async () => clock.nowMs() + storeAheadMs,
      async add(requests) {
        // Written, but the reply is lost.
        for (const request of requests) store.written.set(request.id, request);
        if (store.fails) throw new Error('connection lost');
      },
    },
    storeIsUp: () => store.isUp,
    bounds,
    dropped: (count) => {
      store.dropped += count;
    },
    clock,
    scheduler,
  });
  const note = (members: Partial<FailedRequest> = {}) =>
    collector.note({ requestId: 'r', status: 429, source: 'gateway', method: 'GET', route: '/', ...members });
  const flush = async () => {
    tick();
    await new Promise(setImmediate);
  };
  const written = () => [...store.written.values()];
  return { clock, collector, store, note, flush, written };
}

test('requests are written with the time of the store at which they ended', async () => {
  const { clock, note, flush, written } = collectorOver({ storeAheadMs: 60_000 });
  const startMs = clock.nowMs();
  note({ requestId: 'first' });
  await clock.advance(3000);
  note({ requestId: 'second' });
  await flush();
  expect(written()).toMatchObject([
    { requestId: 'first', atMs: startMs + 60_000 },
    { requestId: 'second', atMs: startMs + 63_000 },
  ]);
});

test('of one customer or address, 20 a second are written, and a flood of others takes nothing from them', async () => {
  const { clock, store, note, flush, written } = collectorOver();
  for (let second = 0; second < 3; second++) {
    for (let at = 0; at < 500; at++) {
      note({ customer: 'loud', client: `192.0.2.${at % 200}` });
      note({ client: '198.51.100.1' });
      note({ client: `2001:db8::${at.toString(16)}` });
    }
    note({ customer: 'quiet', client: '192.0.2.1' });
    note({ client: '2001:db8:0:1::1' });
    await clock.advance(1000);
  }
  await flush();
  const count = (isWanted: (request: FailedRequest) => boolean) => written().filter(isWanted).length;
  expect(count(({ customer }) => customer === 'loud')).toBe(60);
  expect(count(({ customer }) => customer === 'quiet')).toBe(3);
  expect(count(({ client }) => client === '198.51.100.1')).toBe(60);
  expect(count(({ client = '' }) => client.startsWith('2001:db8::'))).toBe(60);
  expect(count(({ client }) => client === '2001:db8:0:1::1')).toBe(3);
  expect(store.dropped).toBe(3 * 3 * 480);
});

test('a flood of addresses has a share of its own once too many are counted in a second', async () => {
  const { note, flush, written } = collectorOver({ bounds: { hours: 24, entries: 30_000 } });
  for (let at = 0; at < 12_000; at++) note({ client: `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}` });
  await flush();
  expect(written()).toHaveLength(10_020);
});

test('a write of which the outcome is unknown is repeated, and adds no request twice', async () => {
  const { store, note, flush, written } = collectorOver();
  note();
  store.fails = true;
  await flush();
  note({ requestId: 'later' });
  await flush();
  store.fails = false;
  await flush();
  await flush();
  expect(written()).toMatchObject([{ requestId: 'r' }, { requestId: 'later' }]);
});

test('while the store is away, as many wait as it may hold, and the rest is counted: first of those with the most', async () => {
  const { clock, store, note, flush, written } = collectorOver({ bounds: { hours: 24, entries: 100 } });
  store.isUp = false;
  note({ customer: 'quiet', requestId: 'first' });
  for (let second = 0; second < 60; second++) {
    for (let at = 0; at < 20; at++) note({ customer: 'loud' });
    for (let at = 0; at < 20; at++) note({ client: `192.0.2.${at}` });
    await clock.advance(1000);
    await flush();
  }
  expect(written()).toEqual([]);
  store.isUp = true;
  await flush();
  expect(written().length).toBeLessThanOrEqual(100);
  expect(written().length).toBeGreaterThanOrEqual(90);
  expect(written()[0]).toMatchObject({ requestId: 'first' });
  expect(store.dropped + written().length).toBe(60 * 40 + 1);
});

test('what waits is written at the end; without bounds nothing is collected, from a reload on', async () => {
  const { collector, note, written } = collectorOver();
  note({ requestId: 'before' });
  collector.applyBounds(undefined);
  note({ requestId: 'off' });
  collector.applyBounds(BOUNDS);
  note({ requestId: 'after' });
  await collector.close();
  expect(written()).toMatchObject([{ requestId: 'after' }]);
});
