import fc from 'fast-check';
import { expect, it } from 'vitest';
import { StoreBoundedClock } from '../../src/base/store-bounded-clock.ts';

const ms = (max: number) => fc.integer({ min: 0, max });
const HOUR_MS = 3_600_000;

it('stays as close to the clock of the store as its last reading allows, whatever the clock of the machine says', () => {
  const property = fc.property(
    fc.array(fc.record({ idleMs: ms(HOUR_MS), toStoreMs: ms(100), fromStoreMs: ms(100) }), { minLength: 1 }),
    fc.array(fc.record({ afterMs: ms(HOUR_MS), ownOffsetMs: fc.integer({ min: -HOUR_MS, max: HOUR_MS }) })),
    fc.double({ min: 0.9996, max: 1.0004, noNaN: true }),
    (readings, looks, rate) => {
      let storeMs = Date.parse('2026-01-01T00:00:00Z');
      let monotonicMs = 0;
      let ownOffsetMs = 0;
      const pass = (passedMs: number) => {
        storeMs += passedMs;
        monotonicMs += rate * passedMs;
      };
      const clock = new StoreBoundedClock({ monotonicMs: () => monotonicMs, nowMs: () => storeMs + ownOffsetMs });
      let tripMs = 0;
      for (const { idleMs, toStoreMs, fromStoreMs } of readings) {
        pass(idleMs);
        const sentAtMs = monotonicMs;
        pass(toStoreMs);
        const readMs = storeMs;
        pass(fromStoreMs);
        clock.learn(readMs, sentAtMs);
        tripMs = toStoreMs + fromStoreMs;
      }
      let sinceMs = 0;
      for (const look of looks) {
        pass(look.afterMs);
        sinceMs += look.afterMs;
        ownOffsetMs = look.ownOffsetMs;
        expect(Math.abs(clock.nowMs() - storeMs)).toBeLessThanOrEqual(1 + 1.01 * tripMs + 0.001 * sinceMs);
      }
      // A clock that is right is believed.
      ownOffsetMs = 0;
      expect(clock.nowMs()).toBeCloseTo(storeMs, 3);
    },
  );
  fc.assert(property);
});

it('is the clock of the machine until the clock of the store is known', () => {
  expect(new StoreBoundedClock({ monotonicMs: () => 5, nowMs: () => 1234 }).nowMs()).toBe(1234);
});
