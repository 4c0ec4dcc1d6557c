import { expect, test } from 'vitest';
import { RecentHistory } from '../../../src/customers/usage/recent-history.ts';
import { StoreUnavailableError } from '../../../src/store/errors.ts';
import type { UsageHistory } from '../../../src/store/usage-history.ts';

const ACME = { id: 'acme', createdAt: '2030-01-01T00:00:00Z' };

/** A history whose reads the test answers, in any order. */
function controlledHistory() {
  const reads: PromiseWithResolvers<number>[] = [];
  const clock = { ms: 0, monotonicMs: () => clock.ms };
  const history = {
    nowMs: () => {
      const read = Promise.withResolvers<number>();
      reads.push(read);
      return read.promise;
    },
    hours: async () => [[]],
    days: async () => [],
  } as Partial<UsageHistory> as UsageHistory;
  return { reads, clock, recent: new RecentHistory(history, clock) };
}

test('a read is reused for ten seconds, unless it failed', async () => {
  const { reads, clock, recent } = controlledHistory();
  const first = recent.of(ACME);
  reads[0]?.reject(new StoreUnavailableError('away'));
  await expect(first).rejects.toThrow('away');
  const second = recent.of(ACME);
  reads[1]?.resolve(0);
  await second;
  clock.ms = 9999;
  expect(recent.of(ACME)).toBe(second);
  clock.ms = 10_000;
  void recent.of(ACME);
  expect(reads).toHaveLength(3);
});

test('an older read that fails late does not discard a newer one', async () => {
  const { reads, clock, recent } = controlledHistory();
  const older = recent.of(ACME);
  clock.ms = 10_000;
  const newer = recent.of(ACME);
  reads[1]?.resolve(0);
  await newer;
  reads[0]?.reject(new StoreUnavailableError('away'));
  await expect(older).rejects.toThrow('away');
  expect(recent.of(ACME)).toBe(newer);
  expect(reads).toHaveLength(2);
});

test('a customer that is deleted and created again does not get the history of the former one', async () => {
  const { reads, recent } = controlledHistory();
  const former = recent.of(ACME);
  reads[0]?.resolve(0);
  await former;
  void recent.of({ ...ACME, createdAt: '2030-01-01T00:00:05Z' });
  expect(reads).toHaveLength(2);
});
