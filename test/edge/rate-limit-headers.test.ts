import { expect, it } from 'vitest';
import { asFlatList, asLines, rateLimitHeaders } from '../../src/edge/rate-limit-headers.ts';

it('the quota is in the headers of the draft and in the older ones, with the reset rounded up', () => {
  const quota = [{ policy: 'hourly', amount: 1000, remaining: 742, resetSeconds: 41 }] as const;
  expect(rateLimitHeaders(asFlatList, quota, undefined, 1_700_000_000_001)).toEqual([
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

it('a burst limit is a second policy beside the hour', () => {
  const quota = [{ policy: 'hourly', amount: 1000, remaining: 742, resetSeconds: 41 }] as const;
  const headers = rateLimitHeaders(asFlatList, quota, { limit: 50, remaining: 49 }, 1_700_000_000_001);
  expect(headers.slice(0, 4)).toEqual([
    'RateLimit-Policy',
    '"hourly";q=1000;w=3600, "burst";q=50;w=1',
    'RateLimit',
    '"hourly";r=742;t=41, "burst";r=49;t=1',
  ]);
});

it('as lines they are the same', () => {
  const parameters = [
    [{ policy: 'hourly', amount: 9, remaining: 0, resetSeconds: 1 }],
    { limit: 5, remaining: 4 },
    1000,
  ] as const;
  const pairs = rateLimitHeaders(asLines, ...parameters)
    .split('\r\n')
    .slice(1);
  expect(pairs.flatMap((line) => line.split(': '))).toEqual(rateLimitHeaders(asFlatList, ...parameters));
});
