/**
 * Who was refused, and why, by all instances: what this gateway remembers of the last hour, and what the usage history
 * has of all. The history counts by hours, so the hour before the present one is included as a whole.
 */
import type { RecentRefusal } from '../../observability/recent-refusals.ts';
import { HOUR_MS, type UsageHistory } from '../../store/usage-history.ts';
import type { AdminContext } from './dependencies.ts';
import { unlessUnavailable } from './documents.ts';

type Sources = Pick<AdminContext, 'refusals' | 'history'>;

/** Returns the refusals of all customers, the latest first. Without the store, those of this gateway. */
export async function latestRefusals({ refusals, history }: Sources, limit: number): Promise<RecentRefusal[]> {
  const own = await refusals(undefined);
  return merged(own, await unlessUnavailable(() => latestOfAll(history, limit))).slice(0, limit);
}

/** Returns the refusals of one customer, the latest first. Without the store, those of this gateway. */
export async function refusalsOf({ refusals, history }: Sources, customer: string): Promise<RecentRefusal[]> {
  const own = await refusals(customer);
  if (history === undefined) return merged(own, undefined);
  const counted = async () => countedRefusals(history, [customer], await history.nowMs());
  return merged(own, await unlessUnavailable(counted));
}

async function latestOfAll(history: UsageHistory | undefined, limit: number): Promise<RecentRefusal[]> {
  if (history === undefined) return [];
  const nowMs = await history.nowMs();
  const latest = await history.refused(nowMs - HOUR_MS, limit);
  const customers = [...new Set(latest.map(({ customer }) => customer))];
  const counted = new Map((await countedRefusals(history, customers, nowMs)).map((each) => [keyOf(each), each]));
  return latest.flatMap((each) => {
    const counts = counted.get(keyOf(each));
    return counts === undefined ? [] : [{ ...counts, lastAtMs: each.lastAtMs }];
  });
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
function merged(own: readonly RecentRefusal[], all: readonly RecentRefusal[] = []): RecentRefusal[] {
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
