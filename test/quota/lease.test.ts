import { describe, expect, test } from 'vitest';
import { Lease } from '../../src/quota/lease.ts';

const ASKED = { monotonicMs: 5000, wallMs: 1_000_000 };
const lease = new Lease(
  {
    granted: 3,
    free: 0,
    used: 3,
    waitMs: 1000,
    bucket: 7,
    epoch: 'e',
    session: 1,
    storeTimeMs: 70_000,
    holdEndMs: 72_000,
  },
  ASKED,
);

function later(monotonicMs: number, wallMs: number) {
  return { monotonicMs: ASKED.monotonicMs + monotonicMs, wallMs: ASKED.wallMs + wallMs };
}

describe('a lease runs', () => {
  test.each([
    { monotonicMs: 0, wallMs: 0, runs: true },
    { monotonicMs: 989, wallMs: 989, runs: true },
    { monotonicMs: 990, wallMs: 990, runs: false },
    // The wall clock was set back, or the machine slept and only the one clock knows.
    { monotonicMs: 990, wallMs: -5000, runs: false },
    { monotonicMs: 10, wallMs: 990, runs: false },
    { monotonicMs: 10, wallMs: -5000, runs: true },
  ])('after $monotonicMs ms and by the wall clock $wallMs ms: $runs', ({ monotonicMs, wallMs, runs }) => {
    expect(lease.runsAt(later(monotonicMs, wallMs))).toBe(runs);
  });
});

test('its requests begin within 99 % of the hold, by either clock, counted from before it was asked for', () => {
  expect(lease.beginDeadlineMs).toBe(ASKED.monotonicMs + 1980);
  expect(lease.beginDeadlineWallMs).toBe(ASKED.wallMs + 1980);
});
