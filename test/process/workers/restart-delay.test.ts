import { expect, test } from 'vitest';
import { restartDelayMs } from '../../../src/process/workers/worker-pool.ts';

test('a worker that keeps exiting is restarted after 1 s, doubling to 30 s', () => {
  const delays: number[] = [];
  for (let i = 0; i < 8; i++) delays.push(restartDelayMs(delays.at(-1), 59_999));
  expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
});

test('a worker that ran for a minute is restarted after 1 s', () => {
  expect(restartDelayMs(30_000, 60_000)).toBe(1000);
});
