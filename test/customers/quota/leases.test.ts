import { describe, expect, test } from 'vitest';
import { Lease, LONG_LEASE, SHORT_LEASE } from '../../../src/customers/quota/leases.ts';

const ASKED = { monotonicMs: 5000, wallMs: 1_000_000 };
const grant = {
  granted: 3,
  counts: [{ policy: 'hourly', free: 0, used: 3, waitMs: 1000, epoch: 'e', holdEndMs: 72_000 }],
  bucket: 7,
  storeTimeMs: 70_000,
} as const;
const lease = new Lease('a', grant, ASKED, SHORT_LEASE);
const longLease = new Lease('a', grant, ASKED, LONG_LEASE);

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

test('a long lease runs for 99 % of 9 s', () => {
  expect(longLease.runsAt(later(8909, 8909))).toBe(true);
  expect(longLease.runsAt(later(8910, 10))).toBe(false);
  expect(longLease.runsAt(later(10, 8910))).toBe(false);
  expect(longLease.endsAt).toBe(ASKED.monotonicMs + 8910);
});

test.each([
  { what: 'a short lease', of: lease, admittedAfterMs: 900, deadlineMs: 1980 },
  { what: 'a long lease, at its beginning', of: longLease, admittedAfterMs: 100, deadlineMs: 2080 },
  { what: 'a long lease, at its end', of: longLease, admittedAfterMs: 8900, deadlineMs: 9900 },
])('a request of $what begins within 99 % of the hold and 1.98 s, by either clock', (row) => {
  const admittedAt = later(row.admittedAfterMs, row.admittedAfterMs);
  expect(row.of.beginDeadline(admittedAt)).toEqual(later(row.deadlineMs, row.deadlineMs));
});
