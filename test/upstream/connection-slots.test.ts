import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ConnectionSlots } from '../../src/upstream/connection-slots.ts';

test('slots are handed on in the order of asking, without those who withdrew', async () => {
  const slots = new ConnectionSlots(1);
  const ran: string[] = [];
  const asks = ['a', 'b', 'c', 'd'].map((name) => () => void ran.push(name));
  for (const ask of asks) slots.acquire(ask);
  expect(ran).toEqual(['a']);
  if (asks[1]) slots.withdraw(asks[1]);
  for (const expected of ['ac', 'acd']) {
    slots.release();
    await setImmediate();
    expect(ran.join('')).toBe(expected);
  }
});

test('it is idle once the last slot came back, not before', async () => {
  const slots = new ConnectionSlots(1);
  await slots.idle();
  slots.acquire(() => {});
  slots.acquire(() => {});
  let idle = false;
  const waiting = slots.idle().then(() => {
    idle = true;
  });
  slots.release();
  await setImmediate();
  expect(idle).toBe(false);
  slots.release();
  await waiting;
});

test('never more than the total are in use, and nobody is forgotten', async () => {
  const step = fc.constantFrom('ask', 'withdraw', 'release');
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), async (total, steps) => {
      const slots = new ConnectionSlots(total);
      let used = 0;
      const waiting: (() => void)[] = [];
      for (const next of steps) {
        if (next === 'ask') {
          const run = (): void => {
            used++;
            const at = waiting.indexOf(run);
            if (at >= 0) waiting.splice(at, 1);
          };
          waiting.push(run);
          slots.acquire(run);
        } else if (next === 'withdraw') {
          const run = waiting.pop();
          if (run) slots.withdraw(run);
        } else if (used > 0) {
          used--;
          slots.release();
          await Promise.resolve();
        }
        expect(used).toBeLessThanOrEqual(total);
        if (waiting.length > 0) expect(used).toBe(total);
      }
    }),
  );
});
