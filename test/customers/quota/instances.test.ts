import { expect, it } from 'vitest';
import { Instances } from '../../../src/customers/quota/instances.ts';

function setUp(answers: (number | Error)[], withdraw = async () => {}) {
  const delays: number[] = [];
  const pending: (() => void)[] = [];
  const withdrawn: string[] = [];
  const time = { nowMs: 5000 };
  const instances = new Instances({
    announce: async () => {
      const answer = answers.shift() ?? new Error('no answer left');
      if (answer instanceof Error) throw answer;
      return answer;
    },
    withdraw: async () => {
      withdrawn.push('withdrawn');
      await withdraw();
    },
    timeoutMs: 100,
    clock: { monotonicMs: () => time.nowMs },
    scheduler: {
      after(delayMs, action) {
        delays.push(delayMs);
        pending.push(action);
        return { cancel: () => pending.splice(0) };
      },
    },
  });
  return { instances, delays, pending, withdrawn, time };
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
  await instances.close();
  expect(pending).toEqual([]);
});

it('an instance that ends withdraws, unless it used its share within the last hour', async () => {
  const idle = setUp([1]);
  await idle.instances.start();
  await idle.instances.close();
  expect(idle.withdrawn).toHaveLength(1);

  const local = setUp([1]);
  await local.instances.start();
  expect(local.instances.countForShare()).toBe(1);
  local.time.nowMs += 3_599_999;
  await local.instances.close();
  expect(local.withdrawn).toEqual([]);

  const longAgo = setUp([1]);
  await longAgo.instances.start();
  longAgo.instances.countForShare();
  longAgo.time.nowMs += 3_600_000;
  await longAgo.instances.close();
  expect(longAgo.withdrawn).toHaveLength(1);
});

it('an instance that ends does not wait for a store that is silent', async () => {
  const { instances, pending } = setUp([1], () => new Promise(() => {}));
  await instances.start();
  const closed = instances.close();
  pending.shift()?.();
  await closed;
});
