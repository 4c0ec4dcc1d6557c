import type { CustomerState } from './customer-state.ts';
import type { UsageRatio } from './hourly-quota.ts';

type UsageState = Pick<CustomerState, 'customer' | 'settings' | 'lastReply' | 'unusedUnits' | 'main'>;

/** Older store replies are ignored: other instances use units, and units expire from the window. */
const MAX_REPLY_AGE_MS = 300_000;

/**
 * Returns the customers with the highest usage relative to their limits, highest first. Only customers for which the
 * store replied to this instance within the last five minutes are included. Each ratio is an upper bound: it includes
 * units that were refunded since that reply. Takes one pass, without sorting. `nowMs`: monotonic.
 */
export function highestUsage(customers: Iterable<UsageState>, count: number, nowMs: number): UsageRatio[] {
  const highest: UsageRatio[] = [];
  for (const state of customers) {
    const { lastReply, settings } = state;
    // The state of the customer has the last reply to any of its keys.
    if (state.main !== undefined) continue;
    if (lastReply === undefined || nowMs - lastReply.receivedAt > MAX_REPLY_AGE_MS) continue;
    const [{ used }] = lastReply.counts;
    const [{ amount }] = settings.limits;
    const toBeat = highest.length < count ? 0 : (highest.at(-1)?.ratio ?? Number.POSITIVE_INFINITY);
    // Skips most customers before the costlier sum of their unused units.
    if (used / amount <= toBeat) continue;
    const ratio = (used - state.unusedUnits()) / amount;
    if (ratio <= toBeat) continue;
    const place = highest.findIndex((other) => other.ratio < ratio);
    highest.splice(place < 0 ? highest.length : place, 0, { customer: state.customer, ratio });
    highest.length = Math.min(highest.length, count);
  }
  return highest;
}
