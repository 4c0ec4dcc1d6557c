import type { NonEmpty } from '../../src/base/non-empty.ts';
import type { Limit } from '../../src/store/windows.ts';

/** The limits of a customer who has the hourly one alone. */
export function hourly(amount: number): NonEmpty<Limit> {
  return [{ policy: 'hourly', amount }];
}
