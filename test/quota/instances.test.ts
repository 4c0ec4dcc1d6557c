import { expect, it } from 'vitest';
import { Instances } from '../../src/quota/instances.ts';

function setUp(answers: (number | Error)[]) {
  const delays: number[] = [];
  const pending: (() => void)[] = [];
  const instances = new Instances({
    announce: async () => {
      const answer = answers.shift() ?? new Error('no answer left');
      if (answer instanceof Error) throw answer;
      return answer;
    },
    scheduler: {
      after(delayMs, action) {
        delays.push(delayMs);
        pending.push(action);
        return { cancel: () => pending.splice(0) };
      },
    },
  });
  return { instances, delays, pending };
}

it('an instance is not announced before the store has taken note of it', async () => {
  const { instances, delays } = setUp([new Error('away')]);
  await instances.start();
  expect(instances.announced).toBe(false);
  expect(instances.count).toBe(1);
  expect(delays).toEqual([1000]);
});

it('the last known number holds while the store is away', async () => {
  const { instances, pending } = setUp([3, new Error('away')]);
  await instances.start();
  pending.shift()?.();
  await Promise.resolve();
  expect(instances.announced).toBe(true);
  expect(instances.count).toBe(3);
});

it('nothing is announced after close', async () => {
  const { instances, pending } = setUp([1]);
  await instances.start();
  instances.close();
  expect(pending).toEqual([]);
});
