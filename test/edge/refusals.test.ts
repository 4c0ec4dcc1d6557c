import { expect, it } from 'vitest';
import { quotaExceeded } from '../../src/edge/refusals.ts';

it.each([
  [1, 'in a second'],
  [2, 'in 2 seconds'],
  [119, 'in 119 seconds'],
  [120, 'in about 2 minutes'],
  [3241, 'in about 55 minutes'],
  [3600, 'in about 60 minutes'],
])('a wait of %i s reads "%s", and never shorter than it is', (resetSeconds, words) => {
  const decision = { outcome: 'quota_exceeded', limit: 1000, burst: undefined, mode: 'store', resetSeconds } as const;
  const { detail, headers } = quotaExceeded(decision, 0);
  expect(detail).toBe(`All 1000 requests of the last hour are used. Try again ${words}.`);
  expect(headers).toContain(String(resetSeconds));
});
