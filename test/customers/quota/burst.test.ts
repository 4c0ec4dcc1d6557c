import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BurstLimiter, type BurstTaken } from '../../../src/customers/quota/burst.ts';

function limiterAt() {
  const time = { ms: 5_000_000 };
  const limiter = new BurstLimiter({ monotonicMs: () => time.ms, nowMs: () => 0 }, 100);
  return { time, limiter };
}

it('no second, wherever it begins, sees more than the limit', () => {
  const steps = fc.array(fc.nat({ max: 400 }), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 20 }), (gapsMs, limit) => {
      const { time, limiter } = limiterAt();
      const allowedAt: number[] = [];
      for (const gapMs of gapsMs) {
        time.ms += gapMs / 4;
        if (limiter.take('acme', limit).allowed) allowedAt.push(time.ms);
      }
      for (const end of allowedAt) {
        expect(allowedAt.filter((at) => at > end - 1000 && at <= end).length).toBeLessThanOrEqual(limit);
      }
    }),
    { numRuns: 500 },
  );
});

it('whoever waits as long as a refusal says is allowed', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 300 }), { minLength: 5, maxLength: 50 }), (gapsMs) => {
      const { time, limiter } = limiterAt();
      for (const gapMs of gapsMs) {
        time.ms += gapMs;
        const decision = limiter.take('acme', 3);
        if (decision.allowed) continue;
        time.ms += decision.resetSeconds * 1000;
        expect(limiter.take('acme', 3).allowed).toBe(true);
      }
    }),
  );
});

/** `givenBackAfterMs`: the request was counted and then not admitted. */
const takes = fc.array(
  fc.record({ gapMs: fc.nat({ max: 100 }), givenBackAfterMs: fc.option(fc.nat({ max: 1500 }), { nil: undefined }) }),
  { minLength: 1, maxLength: 200 },
);

it('no second sees more than the limit, and none less, while requests give their places back at any later time', () => {
  fc.assert(
    fc.property(takes, fc.integer({ min: 1, max: 20 }), (steps, limit) => {
      const { time, limiter } = limiterAt();
      const counted: { readonly atMs: number; readonly taken: BurstTaken; readonly backAtMs: number }[] = [];
      const given = new Set<BurstTaken>();
      for (const { gapMs, givenBackAfterMs } of steps) {
        time.ms += gapMs;
        for (const { taken, backAtMs } of counted) {
          if (backAtMs > time.ms || given.has(taken)) continue;
          given.add(taken);
          limiter.uncount(taken);
        }
        const slot = Math.floor(time.ms / 100);
        const open = counted.filter(({ taken }) => !given.has(taken));
        const within = open.filter(({ taken }) => taken.slot >= slot - 10).length;
        const decision = limiter.take('acme', limit);
        expect(decision.allowed).toBe(within < limit);
        if (!decision.allowed) continue;
        const backAtMs = givenBackAfterMs === undefined ? Number.POSITIVE_INFINITY : time.ms + givenBackAfterMs;
        counted.push({ atMs: time.ms, taken: decision, backAtMs });
      }
      const admittedAt = counted
        .filter(({ backAtMs }) => backAtMs === Number.POSITIVE_INFINITY)
        .map(({ atMs }) => atMs);
      for (const end of admittedAt) {
        expect(admittedAt.filter((at) => at > end - 1000 && at <= end).length).toBeLessThanOrEqual(limit);
      }
    }),
    { numRuns: 300 },
  );
});

it('a request gives its own place back, not that of a newer one', () => {
  const { time, limiter } = limiterAt();
  const first = limiter.take('acme', 2);
  time.ms += 500;
  expect(limiter.take('acme', 2).allowed).toBe(true);
  if (first.allowed) limiter.uncount(first);
  time.ms += 50;
  expect(limiter.take('acme', 2).allowed).toBe(true);
  time.ms += 600;
  expect(limiter.take('acme', 2).allowed).toBe(false);
});

it('a request that went no further is not counted', () => {
  const { limiter } = limiterAt();
  const taken = limiter.take('acme', 1);
  if (taken.allowed) limiter.uncount(taken);
  expect(limiter.take('acme', 1)).toMatchObject({ allowed: true, remaining: 0 });
  expect(limiter.take('acme', 1).allowed).toBe(false);
});

it('customers do not share a limit', () => {
  const { limiter } = limiterAt();
  expect(limiter.take('acme', 1).allowed).toBe(true);
  expect(limiter.take('other', 1).allowed).toBe(true);
});
