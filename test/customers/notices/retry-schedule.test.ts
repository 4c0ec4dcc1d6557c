import { describe, expect, test } from 'vitest';
import { waitBeforeAttempt } from '../../../src/customers/notices/notice-sender.ts';

describe('waits between attempts', () => {
  test('are 5 s, 30 s, 2, 10 and 30 minutes, then the notice is dead', () => {
    const waits = [1, 2, 3, 4, 5, 6].map((failed) => waitBeforeAttempt(failed, null, 0));
    expect(waits).toEqual([5000, 30_000, 120_000, 600_000, 1_800_000, null]);
  });

  test('are at most a fifth longer by chance', () => {
    expect(waitBeforeAttempt(1, null, 1)).toBe(6000);
  });

  test('are never shorter than Retry-After, which counts up to an hour', () => {
    expect(waitBeforeAttempt(1, 60_000, 0.5)).toBe(60_000);
    expect(waitBeforeAttempt(3, 60_000, 0)).toBe(120_000);
    expect(waitBeforeAttempt(1, 86_400_000, 0)).toBe(3_600_000);
    expect(waitBeforeAttempt(6, 60_000, 0)).toBeNull();
  });
});
