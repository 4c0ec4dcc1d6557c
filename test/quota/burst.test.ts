import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BurstLimiter } from '../../src/quota/burst.ts';

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

it('a request that went no further is not counted', () => {
  const { limiter } = limiterAt();
  limiter.take('acme', 1);
  limiter.uncount('acme');
  expect(limiter.take('acme', 1)).toEqual({ allowed: true, remaining: 0 });
  expect(limiter.take('acme', 1).allowed).toBe(false);
});

it('customers do not share a limit', () => {
  const { limiter } = limiterAt();
  expect(limiter.take('acme', 1).allowed).toBe(true);
  expect(limiter.take('other', 1).allowed).toBe(true);
});
