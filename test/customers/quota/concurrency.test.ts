/** Requests in progress: however a decision ends, the count is what was admitted and has not ended. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BurstLimiter } from '../../../src/customers/quota/burst.ts';
import { ConcurrencyLimiter } from '../../../src/customers/quota/concurrency.ts';
import { CustomerQuota } from '../../../src/customers/quota/customer-quota.ts';
import type { Admission } from '../../../src/customers/quota/hourly-quota.ts';
import type { LeasedQuota } from '../../../src/customers/quota/leased-quota.ts';
import { hourly } from '../../../src/store/windows.ts';

const CUSTOMER = { id: 'acme', plan: 'tried', suspended: false };
const FAILURE = new Error('the store is away');
const ADMITTED: Admission = {
  outcome: 'admitted',
  mode: 'lease',
  beginDeadlineMs: 0,
  beginDeadlineWallMs: 0,
  settle() {},
  remaining: () => 1,
  resetSeconds: () => 1,
};
const REFUSED: Admission = { outcome: 'refused', mode: 'lease', violated: hourly(1), resetSeconds: () => 1 };

/** What the hourly quota does with a request. */
const HOURLY_OUTCOMES: Readonly<Record<string, () => Admission | Promise<Admission>>> = {
  admits: () => ADMITTED,
  refuses: () => REFUSED,
  throws: () => {
    throw FAILURE;
  },
  'admits later': () => Promise.resolve(ADMITTED),
  'refuses later': () => Promise.resolve(REFUSED),
  rejects: () => Promise.reject(FAILURE),
};

function quotaOf(
  plan: { burstPerSecond?: number; maxConcurrent: number },
  admit: () => Admission | Promise<Admission>,
) {
  const clock = { monotonicMs: () => 0, nowMs: () => 0 };
  return new CustomerQuota({
    clock,
    limits: {
      plans: new Map([['tried', { requestsPerHour: 100, ...plan }]]),
      formerPlans: new Map(),
      overrides: new Map(),
    },
    bursts: new BurstLimiter(clock, 10),
    concurrency: new ConcurrencyLimiter(),
    hourly: { admit } as unknown as LeasedQuota,
    recentUsage: undefined as never,
  });
}

test('whatever becomes of a request, it takes a place only while it is in progress', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('decide' as const), hourly: fc.constantFrom(...Object.keys(HOURLY_OUTCOMES)) }),
    fc.record({ kind: fc.constant('end' as const) }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 60 }),
      fc.integer({ min: 1, max: 4 }),
      async (steps, maxConcurrent) => {
        let hourly = 'admits';
        const quota = quotaOf({ maxConcurrent }, () => HOURLY_OUTCOMES[hourly]?.() ?? REFUSED);
        const releases: (() => void)[] = [];
        for (const each of steps) {
          if (each.kind === 'end') {
            releases.pop()?.();
            continue;
          }
          hourly = each.hourly;
          const decision = await Promise.resolve()
            .then(() => quota.decide(CUSTOMER))
            .catch((error: unknown) => error);
          if (releases.length === maxConcurrent) {
            expect(decision).toEqual({ outcome: 'too_many_concurrent', maxConcurrent });
          } else if (hourly.startsWith('admits')) {
            expect(decision).toMatchObject({ outcome: 'admitted', release: expect.any(Function) });
            releases.push((decision as { release(): void }).release);
          } else if (hourly.startsWith('refuses')) {
            expect(decision).toMatchObject({ outcome: 'quota_exceeded' });
          } else {
            expect(decision).toBe(FAILURE);
          }
        }
      },
    ),
  );
});

test.each(['refuses', 'throws', 'refuses later', 'rejects'])(
  'what is not admitted counts neither as a burst nor as in progress: the hourly quota %s',
  async (hourly) => {
    let outcome = hourly;
    const quota = quotaOf({ burstPerSecond: 2, maxConcurrent: 2 }, () => HOURLY_OUTCOMES[outcome]?.() ?? REFUSED);
    for (let i = 0; i < 5; i++) {
      await Promise.resolve()
        .then(() => quota.decide(CUSTOMER))
        .catch(() => {});
    }
    outcome = 'admits';
    expect(await quota.decide(CUSTOMER)).toMatchObject({ outcome: 'admitted', burst: { limit: 2, remaining: 1 } });
  },
);

test('a request that max_concurrent refuses is no part of a burst', async () => {
  const quota = quotaOf({ burstPerSecond: 2, maxConcurrent: 1 }, () => ADMITTED);
  const first = await quota.decide(CUSTOMER);
  for (let i = 0; i < 3; i++) expect(await quota.decide(CUSTOMER)).toMatchObject({ outcome: 'too_many_concurrent' });
  if (first.outcome === 'admitted') first.release?.();
  expect(await quota.decide(CUSTOMER)).toMatchObject({ outcome: 'admitted', burst: { remaining: 0 } });
});
