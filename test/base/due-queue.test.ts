import { expect, test } from 'vitest';
import { DueQueue } from '../../src/base/due-queue.ts';
import { Machine } from '../../tools/simulator/machine.ts';
import { VirtualTime } from '../../tools/simulator/virtual-time.ts';

function setUp() {
  const time = new VirtualTime();
  const machine = new Machine({ time, rate: 1, monotonicOriginMs: 0, wallOriginMs: 0, timerLatenessMs: () => 0 });
  const reported: [item: string, atMs: number][] = [];
  let timers = 0;
  const scheduler = {
    after(delayMs: number, action: () => void) {
      timers++;
      return machine.after(delayMs, action);
    },
  };
  const queue = new DueQueue<string>({ clock: machine, scheduler }, (item) => reported.push([item, time.nowMs]));
  return { time, queue, reported, timers: () => timers };
}

test('each item is reported when it is due, at most 10 ms late', async () => {
  const { time, queue, reported } = setUp();
  for (const [item, dueMs] of [
    ['a', 100],
    ['b', 103],
    ['c', 200],
  ] as const)
    queue.add(item, dueMs);
  await time.run(300);
  expect(reported).toEqual([
    ['a', 100],
    ['b', 110],
    ['c', 200],
  ]);
  queue.add('d', 350);
  await time.run(100);
  expect(reported.at(-1)).toEqual(['d', 350]);
});

test('an item that is due earlier than those before it is reported with them', async () => {
  const { time, queue, reported } = setUp();
  queue.add('a', 100);
  queue.add('b', 50);
  await time.run(200);
  expect(reported).toEqual([
    ['a', 100],
    ['b', 100],
  ]);
});

test('thousands of items take a timer every 10 ms, and each is reported once', async () => {
  const { time, queue, reported, timers } = setUp();
  for (let i = 0; i < 10_000; i++) queue.add(String(i), 1000 + i / 10);
  await time.run(3000);
  expect(reported.map(([item]) => Number(item))).toEqual(Array.from({ length: 10_000 }, (_, i) => i));
  expect(timers()).toBeLessThanOrEqual(102);
});
