import type { Account } from './account.ts';

/** How much of its hour a customer has used. */
export interface CustomerUsage {
  readonly customer: string;
  /** Used by limit; above 1 after a limit was lowered. */
  readonly ratio: number;
}

/** What the store said longer ago says little: other instances count, and units drop out of the window. */
const LONGEST_SILENCE_MS = 300_000;

/**
 * The customers that have used most of their limits, the highest first, of those whom this instance asked the store about
 * within the last five minutes. One pass over all of them, and no sorting. An upper bound: units that were given back
 * since the store's last answer are still in it. `nowMs`: monotonic.
 */
export function highestUsage(accounts: Iterable<Account>, count: number, nowMs: number): CustomerUsage[] {
  const highest: CustomerUsage[] = [];
  for (const account of accounts) {
    const { lastReply, terms } = account;
    if (lastReply === undefined || nowMs - lastReply.receivedAt > LONGEST_SILENCE_MS) continue;
    const toBeat = highest.length < count ? 0 : (highest.at(-1)?.ratio ?? Number.POSITIVE_INFINITY);
    // Most are done with here: units in hand are summed for candidates only.
    if (lastReply.used / terms.limit <= toBeat) continue;
    const ratio = (lastReply.used - account.unitsInHand) / terms.limit;
    if (ratio <= toBeat) continue;
    const place = highest.findIndex((other) => other.ratio < ratio);
    highest.splice(place < 0 ? highest.length : place, 0, { customer: account.customer, ratio });
    highest.length = Math.min(highest.length, count);
  }
  return highest;
}
