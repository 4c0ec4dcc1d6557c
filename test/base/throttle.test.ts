import { expect, it } from 'vitest';
import { Throttle } from '../../src/base/throttle.ts';

it('each id is due at first, and again when the time has passed since it was', () => {
  let nowMs = 0;
  const throttle = new Throttle({ nowMs: () => 0, monotonicMs: () => nowMs }, 1000, 10);
  expect([throttle.isDue('a'), throttle.isDue('a'), throttle.isDue('b')]).toEqual([true, false, true]);
  nowMs = 999;
  expect(throttle.isDue('a')).toBe(false);
  nowMs = 1000;
  expect([throttle.isDue('a'), throttle.isDue('a')]).toEqual([true, false]);
});

it('no more ids are tracked than configured', () => {
  const throttle = new Throttle({ nowMs: () => 0, monotonicMs: () => 0 }, 1000, 2);
  for (const id of ['a', 'b', 'c']) expect(throttle.isDue(id)).toBe(true);
  expect([throttle.isDue('c'), throttle.isDue('b'), throttle.isDue('a')]).toEqual([false, false, true]);
});
