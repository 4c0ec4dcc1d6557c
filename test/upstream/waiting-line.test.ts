import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type InLine, WaitingLine } from '../../src/upstream/http1/connection-queue.ts';

class Member implements InLine<Member> {
  place: InLine<Member>['place'];
  readonly number: number;

  constructor(number: number) {
    this.number = number;
  }
}

/** Of the first so many who ever came: leaves. */
const LEAVING = fc.nat({ max: 30 });
const STEPS = fc.array(fc.oneof(fc.constant('join' as const), fc.constant('next' as const), LEAVING));

test('whatever joins, leaves and is served, those who wait are served in the order in which they came', () => {
  fc.assert(
    fc.property(STEPS, (steps) => {
      const line = new WaitingLine<Member>();
      const everybody: Member[] = [];
      let expected: number[] = [];
      for (const step of steps) {
        if (step === 'join') {
          const member = new Member(everybody.length);
          everybody.push(member);
          line.join(member);
          expected.push(member.number);
        } else if (step === 'next') {
          expect(line.next()?.number).toBe(expected.shift());
        } else {
          const member = everybody[step];
          if (member !== undefined) line.leave(member);
          expected = expected.filter((number) => number !== step);
        }
        expect(line.length).toBe(expected.length);
      }
      while (expected.length > 0) expect(line.next()?.number).toBe(expected.shift());
      expect(line.next()).toBeUndefined();
    }),
    { numRuns: 1000 },
  );
});
