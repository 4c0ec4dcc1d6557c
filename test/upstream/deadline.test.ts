import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Deadline } from '../../src/upstream/deadline.ts';

let nowMs = 0;
const clock = { nowMs: () => 0, monotonicMs: () => nowMs };

function advance(ms: number): void {
  for (let i = 0; i < ms; i++) {
    nowMs++;
    vi.advanceTimersByTime(1);
  }
}

beforeEach(() => {
  nowMs = 1000;
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('it passes once, at its time', () => {
  const passed: number[] = [];
  new Deadline(clock, () => passed.push(nowMs)).set(1050);
  advance(49);
  expect(passed).toEqual([]);
  advance(100);
  expect(passed).toEqual([1050]);
});

test('it can be put off and brought forward, with one timer at a time', () => {
  const passed: number[] = [];
  const deadline = new Deadline(clock, () => passed.push(nowMs));
  deadline.set(1050);
  deadline.set(1200);
  expect(vi.getTimerCount()).toBe(1);
  advance(100);
  expect([passed, vi.getTimerCount()]).toEqual([[], 1]);
  deadline.set(1150);
  advance(200);
  expect(passed).toEqual([1150]);
});

test('it looks at the clock again when its timer was early', () => {
  const passed: number[] = [];
  new Deadline(clock, () => passed.push(nowMs)).set(1010);
  nowMs = 1009.5;
  vi.advanceTimersByTime(10);
  expect(passed).toEqual([]);
  nowMs = 1010.5;
  vi.advanceTimersByTime(1);
  expect(passed).toEqual([1010.5]);
});

test('cleared, it never passes', () => {
  const passed: number[] = [];
  const deadline = new Deadline(clock, () => passed.push(nowMs));
  deadline.set(1050);
  deadline.clear();
  advance(100);
  expect([passed, vi.getTimerCount()]).toEqual([[], 0]);
});

test('a time that is over passes in the next turn', () => {
  const passed: number[] = [];
  new Deadline(clock, () => passed.push(nowMs)).set(900);
  expect(passed).toEqual([]);
  advance(1);
  expect(passed).toHaveLength(1);
});
