/**
 * Collects the approximate part of the usage history in memory, and adds it to the store every 10 s: refusals per
 * customer, totals per plan, and customers near their limits. A crash loses at most the counts of the last 10 s.
 */
import type { Clock, Scheduler } from '../base/clock.ts';
import { Periodic } from '../base/periodic.ts';
import { HOUR_MS, noTotals, type Total, type UsageHistory, unlessClosed } from '../store/usage-history.ts';

const FLUSH_INTERVAL_MS = 10_000;
/** Different counts, and customers near their limits, that are kept between two writes. Further ones are dropped. */
const MAX_ENTRIES = 20_000;

interface HistoryCollectorOptions {
  readonly history: Pick<UsageHistory, 'add' | 'nowMs'>;
  readonly storeIsUp: () => boolean;
  /** Called with the number of refusals that were not counted, because too many customers were refused at once. */
  readonly dropped: (count: number) => void;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly scheduler: Pick<Scheduler, 'after'>;
}

/** What was counted in one hour of the store's time. */
interface CollectedHour {
  readonly hourMs: number;
  /** By customer, then by problem code. */
  readonly refusals: Map<string, Map<string, number>>;
  readonly totals: Map<string, Record<Total, number>>;
}

export class HistoryCollector {
  readonly #options: HistoryCollectorOptions;
  /** Oldest first. More than one only around the turn of an hour, or while the store is away. */
  #hours: CollectedHour[] = [];
  #refusals = 0;
  #dropped = 0;
  /** Percent of the limit, by customer. */
  #near = new Map<string, number>();
  /** The store's time minus this process's; learnt at each write. */
  #offsetMs = 0;
  readonly #flushing: Periodic;

  constructor(options: HistoryCollectorOptions) {
    this.#options = options;
    this.#flushing = new Periodic(options.scheduler, async () => {
      await this.#write();
      return FLUSH_INTERVAL_MS;
    });
    this.#flushing.start(FLUSH_INTERVAL_MS);
  }

  /** Counts a refusal. `customer` is undefined for a request without a valid key. */
  refused(customer: string | undefined, plan: string, code: string): void {
    const hour = this.#hour();
    totalsOf(hour, plan).refused++;
    if (customer === undefined) return;
    const codes = hour.refusals.get(customer) ?? new Map<string, number>();
    const count = codes.get(code) ?? 0;
    if (count === 0 && ++this.#refusals > MAX_ENTRIES) {
      this.#refusals--;
      this.#dropped++;
      return;
    }
    hour.refusals.set(customer, codes.set(code, count + 1));
  }

  /** Counts a request that was sent to an upstream. */
  sent(plan: string): void {
    totalsOf(this.#hour(), plan).requests++;
  }

  /** Counts a request for which the upstream gave no complete response, or a response of status 500 or above. */
  upstreamFailed(plan: string): void {
    totalsOf(this.#hour(), plan).upstream_errors++;
  }

  /** Notes that a customer is near its limit. */
  near(customer: string, percent: number): void {
    if (this.#near.size < MAX_ENTRIES || this.#near.has(customer)) this.#near.set(customer, percent);
  }

  /** Stops, and writes what was collected so far. */
  async close(): Promise<void> {
    await this.#flushing.close();
    await this.#write();
  }

  #hour(): CollectedHour {
    const nowMs = this.#options.clock.nowMs() + this.#offsetMs;
    const current = this.#hours.at(-1);
    if (current !== undefined && nowMs >= current.hourMs && nowMs < current.hourMs + HOUR_MS) return current;
    const hour = { hourMs: Math.floor(nowMs / HOUR_MS) * HOUR_MS, refusals: new Map(), totals: new Map() };
    this.#hours.push(hour);
    return hour;
  }

  /** Never rejects. A write of which the outcome is unknown is not repeated: it could count twice. */
  async #write(): Promise<void> {
    const { history, storeIsUp, dropped, clock } = this.#options;
    if (!storeIsUp()) return;
    let storeMs: number;
    try {
      const beforeMs = clock.nowMs();
      storeMs = await history.nowMs();
      this.#offsetMs = storeMs - (beforeMs + clock.nowMs()) / 2;
    } catch {
      return;
    }
    const [hours, near, droppedRefusals] = [this.#hours, this.#near, this.#dropped];
    [this.#hours, this.#near, this.#refusals, this.#dropped] = [[], new Map(), 0, 0];
    if (droppedRefusals > 0) dropped(droppedRefusals);
    if (hours.length + near.size === 0) return;
    const refusals = hours.flatMap(({ hourMs, refusals }) =>
      [...refusals].flatMap(([customer, codes]) =>
        [...codes].map(([code, count]) => ({
          customer,
          hourMs: unlessClosed(hourMs / HOUR_MS, storeMs) * HOUR_MS,
          code,
          count,
        })),
      ),
    );
    const totals = hours.flatMap(({ hourMs, totals }) =>
      [...totals].flatMap(([plan, counts]) =>
        Object.entries(counts).map(([what, count]) => ({ plan, hourMs, what: what as Total, count })),
      ),
    );
    const collected = {
      refusals,
      totals: totals.filter(({ count }) => count > 0),
      atMs: storeMs,
      near: Array.from(near, ([customer, percent]) => ({ customer, percent })),
    };
    // The store's metrics count the failure.
    await history.add(collected).catch(() => undefined);
  }
}

function totalsOf({ totals }: CollectedHour, plan: string): Record<Total, number> {
  let counts = totals.get(plan);
  if (counts === undefined) {
    counts = noTotals();
    totals.set(plan, counts);
  }
  return counts;
}
