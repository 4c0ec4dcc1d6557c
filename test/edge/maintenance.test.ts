/** The maintenance that an instance knows: it follows the store by pushes, by reading again, and not at all while that fails. */
import { expect, it, onTestFinished } from 'vitest';
import { MaintenanceWatch } from '../../src/edge/maintenance.ts';
import { type Invalidation, InvalidationListeners } from '../../src/store/invalidations.ts';
import type { Maintenance } from '../../src/store/maintenance.ts';

const DOWN: Maintenance = { mode: 'down', sinceMs: 0 };
const OFF: Maintenance = { mode: 'off' };

/** Each read of the store waits for `reply`. */
function startWatch() {
  const replies: PromiseWithResolvers<Maintenance | undefined>[] = [];
  const listeners = new InvalidationListeners();
  const clock = { wallMs: 0, nowMs: () => clock.wallMs };
  let planned: (() => void) | undefined;
  const watch = new MaintenanceWatch({
    store: {
      read() {
        const reply = Promise.withResolvers<Maintenance | undefined>();
        replies.push(reply);
        return reply.promise;
      },
    },
    invalidations: listeners,
    clock,
    scheduler: {
      after(_delayMs, action) {
        planned = action;
        return { cancel: () => (planned = undefined) };
      },
    },
  });
  onTestFinished(() => watch.close());
  const settled = () => new Promise(setImmediate);
  return {
    watch,
    clock,
    reads: () => replies.length,
    push(pushed: Invalidation) {
      listeners.emit(pushed);
      return settled();
    },
    /** Lets the time pass until the next planned read. */
    wait: () => planned?.(),
    async reply(maintenance: Maintenance | Error) {
      if (maintenance instanceof Error) replies.at(-1)?.reject(maintenance);
      else replies.at(-1)?.resolve(maintenance);
      await settled();
    },
  };
}

it('a change that is pushed while the record is read is read after that', async () => {
  const { watch, push, reply, reads } = startWatch();
  const started = watch.start();
  await push({ kind: 'maintenance' });
  await push({ kind: 'maintenance' });
  expect(reads()).toBe(1);
  await reply(OFF);
  await started;
  expect([reads(), watch.current]).toEqual([2, undefined]);
  await reply(DOWN);
  expect([reads(), watch.current]).toEqual([2, DOWN]);
  await push({ kind: 'key', sha256: 'a' });
  expect(reads()).toBe(2);
});

it('without a push it is read again, and a read that fails changes nothing and is repeated', async () => {
  const { watch, push, wait, reply, reads } = startWatch();
  void watch.start();
  await reply(DOWN);
  await push({ kind: 'all' });
  await reply(new Error('connection lost'));
  expect([reads(), watch.current]).toEqual([2, DOWN]);
  wait();
  await reply(new Error('connection lost'));
  wait();
  await reply(OFF);
  expect([reads(), watch.current]).toEqual([4, undefined]);
});

it('is over at the millisecond of its end', async () => {
  const { watch, clock, reply } = startWatch();
  void watch.start();
  await reply({ ...DOWN, mode: 'read_only', untilMs: 1000, routes: ['/a'] });
  clock.wallMs = 999;
  expect(['GET', 'HEAD', 'OPTIONS', 'POST', 'QUERY'].map((method) => watch.of('/a', method) !== undefined)).toEqual([
    false,
    false,
    false,
    true,
    true,
  ]);
  expect(watch.of('/b', 'POST')).toBeUndefined();
  clock.wallMs = 1000;
  expect(watch.of('/a', 'POST')).toBeUndefined();
});
