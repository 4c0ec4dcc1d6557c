import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RequestQueue } from '../../src/upstream/http1/request-queue.ts';
import { TestRequest } from './support/test-request.ts';

/** Index of the request that leaves, in the order of arrival. */
const LEAVING = fc.nat({ max: 30 });
const STEPS = fc.array(fc.oneof(fc.constant('add' as const), fc.constant('shift' as const), LEAVING));

test('requests that join, leave and are served in any order are served first in, first out', () => {
  fc.assert(
    fc.property(STEPS, (steps) => {
      const queue = new RequestQueue();
      const all: TestRequest[] = [];
      let expected: TestRequest[] = [];
      for (const step of steps) {
        if (step === 'add') {
          const request = new TestRequest();
          all.push(request);
          queue.add(request);
          expected.push(request);
        } else if (step === 'shift') {
          expect(queue.shift()).toBe(expected.shift());
        } else {
          const request = all[step];
          if (request !== undefined) queue.remove(request);
          expected = expected.filter((each) => each !== request);
        }
        expect(queue.length).toBe(expected.length);
      }
      while (expected.length > 0) expect(queue.shift()).toBe(expected.shift());
      expect(queue.shift()).toBeUndefined();
    }),
    { numRuns: 1000 },
  );
});
