import { expect, it } from 'vitest';
import { rateLimitHeaders } from '../../src/edge/rate-limit-headers.ts';

it('the quota is told in the fields of the draft and in the older ones, the reset rounded up', () => {
  expect(rateLimitHeaders({ limit: 1000, remaining: 742, resetSeconds: 41 }, 1_700_000_000_001)).toEqual([
    'RateLimit-Policy',
    '"hourly";q=1000;w=3600',
    'RateLimit',
    '"hourly";r=742;t=41',
    'X-RateLimit-Limit',
    '1000',
    'X-RateLimit-Remaining',
    '742',
    'X-RateLimit-Reset',
    '1700000042',
  ]);
});
