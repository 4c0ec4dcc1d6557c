import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RetryBudget } from '../../src/upstream/retry-budget.ts';
import { HeldTime } from './support/held-time.ts';

type Event = { readonly kind: 'request' | 'retry' } | { readonly kind: 'pause'; readonly ms: number };

const EVENTS: fc.Arbitrary<Event[]> = fc.array(
  fc.oneof(
    { weight: 1, arbitrary: fc.constant<Event>({ kind: 'request' }) },
    { weight: 4, arbitrary: fc.constant<Event>({ kind: 'retry' }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 500 }).map((ms): Event => ({ kind: 'pause', ms })) },
  ),
  { maxLength: 1_500, size: 'max' },
);

test('in any interval no more is retried than a fifth of its requests, ten a second, and a hundred', () => {
  fc.assert(
    fc.property(EVENTS, (events) => {
      const time = new HeldTime();
      const budget = new RetryBudget(time);
      // Allowed beyond the hundred since the start, less what was retried: it never falls by more than the hundred.
      let unspent = 0;
      let highest = 0;
      for (const event of events) {
        if (event.kind === 'pause') {
          time.advance(event.ms);
          unspent += event.ms / 100;
        } else if (event.kind === 'request') {
          budget.request();
          unspent += 1 / 5;
        } else if (budget.take()) {
          unspent -= 1;
        }
        highest = Math.max(highest, unspent);
        expect(highest - unspent).toBeLessThan(100.001);
      }
    }),
  );
});

test('a hundred are saved up at first, then every fifth request brings one', () => {
  const budget = new RetryBudget(new HeldTime());
  for (let i = 0; i < 100; i++) expect(budget.take()).toBe(true);
  for (let i = 0; i < 4; i++) budget.request();
  expect(budget.take()).toBe(false);
  budget.request();
  expect([budget.take(), budget.take()]).toEqual([true, false]);
});

test('rare requests are retried as well: time brings ten a second', () => {
  const time = new HeldTime();
  const budget = new RetryBudget(time);
  while (budget.take());
  time.advance(99);
  expect(budget.take()).toBe(false);
  time.advance(1);
  expect(budget.take()).toBe(true);
});
