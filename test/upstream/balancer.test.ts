import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createBalancer } from '../../src/upstream/balancer.ts';

class Member {
  isUp = true;
  load = 0;
}

const MEMBERS = fc.array(fc.record({ isUp: fc.boolean(), load: fc.nat(3) }), { minLength: 1, maxLength: 8 });
const BALANCES = ['least_loaded', 'round_robin'] as const;

test.each(BALANCES)('%s chooses one that is up and not the excepted one, whenever there is one', (balance) => {
  fc.assert(
    fc.property(MEMBERS, fc.array(fc.nat(8), { minLength: 1, maxLength: 20 }), (members, exceptions) => {
      const choose = createBalancer(balance, members);
      for (const at of exceptions) {
        const except = members[at];
        const possible = members.filter((member) => member.isUp && member !== except);
        const chosen = choose(except);
        if (chosen === undefined) expect(possible).toEqual([]);
        else expect(possible).toContain(chosen);
      }
    }),
  );
});

test('least_loaded: with exchanges of any length, each gets one that had the least in progress', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 6 }), fc.array(fc.nat(12), { maxLength: 300 }), (count, steps) => {
      const members = Array.from({ length: count }, () => new Member());
      const choose = createBalancer('least_loaded', members);
      for (const step of steps) {
        const ending = members[step];
        if (ending !== undefined && ending.load > 0) {
          ending.load--;
          continue;
        }
        const lowest = Math.min(...members.map(({ load }) => load));
        const chosen = choose();
        expect(chosen?.load).toBe(lowest);
        if (chosen) chosen.load++;
      }
    }),
  );
});

test.each(BALANCES)('%s: of requests one after the other each member gets its share, to within one', (balance) => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), fc.nat(200), fc.nat(8), (count, requests, out) => {
      const members = Array.from({ length: count }, () => new Member());
      const down = members[out];
      if (down !== undefined && balance === 'round_robin') down.isUp = false;
      const choose = createBalancer(balance, members);
      const taken = new Map(members.filter(({ isUp }) => isUp).map((member) => [member, 0]));
      for (let i = 0; i < requests; i++) {
        const chosen = choose();
        if (chosen) taken.set(chosen, (taken.get(chosen) ?? 0) + 1);
      }
      const counts = [...taken.values()];
      if (counts.length > 0) expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    }),
  );
});
