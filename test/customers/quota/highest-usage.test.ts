import fc from 'fast-check';
import { expect, it } from 'vitest';
import { highestUsage } from '../../../src/customers/quota/highest-usage.ts';
import { hourly } from '../../../src/store/windows.ts';

const NOW_MS = 1_000_000;
const COUNT = { policy: 'hourly', waitMs: 0, epoch: 'e', holdEndMs: 0 } as const;

function stateOf(customer: string, used: number, limit: number, { saidAgoMs = 0, leased = 0 } = {}) {
  return {
    customer,
    settings: { limits: hourly(limit), usageResetAt: '' },
    lastReply: { counts: [{ ...COUNT, free: limit - used, used }] as const, receivedAt: NOW_MS - saidAgoMs },
    unusedUnits: () => leased,
    main: undefined,
  };
}

it('the highest by share of the limit are chosen, as sorting all would', () => {
  const known = fc.record({ used: fc.nat(200), limit: fc.integer({ min: 1, max: 100 }) });
  fc.assert(
    fc.property(fc.array(known, { maxLength: 60 }), fc.integer({ min: 1, max: 10 }), (customers, count) => {
      const states = customers.map(({ used, limit }, i) => stateOf(`c${i}`, used, limit));
      const sorted = customers.map(({ used, limit }) => used / limit).toSorted((a, b) => b - a);
      const chosen = highestUsage(states, count, NOW_MS);
      expect(chosen.map(({ ratio }) => ratio)).toEqual(sorted.filter((ratio) => ratio > 0).slice(0, count));
      for (const { customer, ratio } of chosen) {
        const { used = 0, limit = 1 } = customers[Number(customer.slice(1))] ?? {};
        expect(ratio).toBe(used / limit);
      }
      expect(new Set(chosen.map(({ customer }) => customer)).size).toBe(chosen.length);
    }),
  );
});

it('units that this instance holds and has not used do not count', () => {
  const states = [stateOf('holding', 90, 100, { leased: 80 }), stateOf('using', 50, 100)];
  expect(highestUsage(states, 10, NOW_MS)).toEqual([
    { customer: 'using', ratio: 0.5 },
    { customer: 'holding', ratio: 0.1 },
  ]);
});

it('a customer of whom the store has said nothing within five minutes is left out', () => {
  const states = [
    stateOf('old', 100, 100, { saidAgoMs: 300_001 }),
    stateOf('recent', 10, 100, { saidAgoMs: 300_000 }),
    { ...stateOf('unheard', 1, 1), lastReply: undefined },
  ];
  expect(highestUsage(states, 10, NOW_MS)).toEqual([{ customer: 'recent', ratio: 0.1 }]);
});
