import type { Limit, NonEmpty } from '../../src/store/store.ts';

/** The limits of a customer who has the hourly one alone. */
export function hourly(amount: number): NonEmpty<Limit> {
  return [{ policy: 'hourly', amount }];
}
