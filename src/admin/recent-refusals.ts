/**
 * Who was refused, and why, by all instances: what this gateway remembers of the last hour, and what the usage history
 * has of all. The history counts by hours, so the hour before the present one is included as a whole.
 */
import type { RecentRefusal } from '../observability/recent-refusals.ts';
import { StoreUnavailableError } from '../store/store.ts';
import { HOUR_MS, type UsageHistory } from '../store/usage-history.ts';
import type { AdminContext } from './dependencies.ts';

type Sources = Pick<AdminContext, 'refusals' | 'history'>;

/** Returns the refusals of all customers, the latest first. Without the store, those of this gateway. */
export async function latestRefusals({ refusals, history }: Sources, limit: number): Promise<RecentRefusal[]> {
  const own = await refusals(undefined);
  const all = await unlessUnavailable(history, async (stored) => {
    const nowMs = await stored.nowMs();
    const latest = await stored.refused(nowMs - HOUR_MS, limit);
    const customers = [...new Set(latest.map(({ customer }) => customer))];
    const counted = new Map((await countedRefusals(stored, customers, nowMs)).map((each) => [keyOf(each), each]));
    return latest.flatMap((each) => {
      const counts = counted.get(keyOf(each));
      return counts === undefined ? [] : [{ ...counts, lastAtMs: each.lastAtMs }];
    });
  });
  return merged(own, all).slice(0, limit);
}

/** Returns the refusals of one customer, the latest first. Without the store, those of this gateway. */
export async function refusalsOf({ refusals, history }: Sources, customer: string): Promise<RecentRefusal[]> {
  const own = await refusals(customer);
  const all = await unlessUnavailable(history, async (stored) =>
    countedRefusals(stored, [customer], await stored.nowMs()),
  );
  return merged(own, all);
}

async function countedRefusals(
  history: UsageHistory,
  customers: readonly string[],
  nowMs: number,
): Promise<RecentRefusal[]> {
  const thisHourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  const range = { fromMs: thisHourMs - HOUR_MS, toMs: thisHourMs + HOUR_MS };
  const hours = await history.hours(customers, range);
  return customers.flatMap((customer, at) => {
    const byCode = new Map<string, RecentRefusal>();
    for (const { startMs, refused } of hours[at] ?? []) {
      for (const [code, count] of Object.entries(refused)) {
        const former = byCode.get(code);
        byCode.set(code, {
          customer,
          code,
          count: count + (former?.count ?? 0),
          firstAtMs: former?.firstAtMs ?? startMs,
          lastAtMs: Math.min(startMs + HOUR_MS, nowMs),
          keyId: undefined,
        });
      }
    }
    return [...byCode.values()];
  });
}

/** What this gateway remembers is more exact, if no other one refused more. */
function merged(own: readonly RecentRefusal[], all: readonly RecentRefusal[]): RecentRefusal[] {
  const byCode = new Map(own.map((each) => [keyOf(each), each]));
  for (const each of all) {
    const known = byCode.get(keyOf(each));
    if (known !== undefined && known.count >= each.count) continue;
    byCode.set(keyOf(each), known === undefined ? each : { ...each, keyId: known.keyId, lastAtMs: known.lastAtMs });
  }
  return [...byCode.values()].toSorted((a, b) => b.lastAtMs - a.lastAtMs);
}

function keyOf({ customer, code }: Pick<RecentRefusal, 'customer' | 'code'>): string {
  return `${customer} ${code}`;
}

async function unlessUnavailable(
  history: UsageHistory | undefined,
  read: (history: UsageHistory) => Promise<RecentRefusal[]>,
): Promise<RecentRefusal[]> {
  if (history === undefined) return [];
  try {
    return await read(history);
  } catch (error) {
    if (error instanceof StoreUnavailableError) return [];
    throw error;
  }
}
