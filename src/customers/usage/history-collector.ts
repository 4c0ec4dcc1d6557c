/**
 * Collects the approximate part of the usage history in memory, and adds it to the store every 10 s: refusals and requests per
 * customer, totals per plan, customers near their limits, and calls of deprecated routes. A crash loses at most the counts of the last 10 s.
 */
import type { Clock, Scheduler } from '../../base/clock.ts';
import { Periodic } from '../../base/periodic.ts';
import {
  type DeprecatedCalls,
  HOUR_MS,
  noTotals,
  type PlanHour,
  REQUESTS,
  TOTALS,
  type Total,
  type UsageHistory,
  unlessClosed,
} from '../../store/usage-history.ts';

const FLUSH_INTERVAL_MS = 10_000;
/** Different counts, and customers near their limits, that are kept between two writes. Further ones are dropped. */
const MAX_ENTRIES = 20_000;

interface HistoryCollectorOptions {
  readonly history: Pick<UsageHistory, 'add' | 'nowMs'>;
  readonly storeIsUp: () => boolean;
  /** Called with the number of refusals and requests that were not counted, because they were of too many customers. */
  readonly dropped: (count: number) => void;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly scheduler: Pick<Scheduler, 'after'>;
}

export class HistoryCollector {
  readonly #options: HistoryCollectorOptions;
  /** By hour of the store's time, problem code or {@link REQUESTS}, and customer. */
  #counts = new Map<
    string,
    { readonly customer: string; readonly hourMs: number; readonly code: string; count: number }
  >();
  #dropped = 0;
  #totals: PlanHour[] = [];
  /** Of {@link #totals}, the last of each plan. */
  #lastTotals = new Map<string, PlanHour & { readonly counts: Record<Total, number> }>();
  /** Percent of the limit, by customer. */
  #near = new Map<string, number>();
  /** By customer and route. */
  #deprecated = new Map<string, DeprecatedCalls>();
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
    this.#totalsOf(plan).refused++;
    if (customer !== undefined) this.#count(customer, code);
  }

  /** Counts a call of a route that has a deprecation or a sunset. `isGone`: it was refused after the sunset. */
  deprecated(customer: string, route: string, isGone: boolean): void {
    const id = `${customer} ${route}`;
    const known = this.#deprecated.get(id);
    if (known === undefined && this.#deprecated.size >= MAX_ENTRIES) return;
    const { count, gone } = known ?? { count: 0, gone: 0 };
    const counts = isGone ? { count, gone: gone + 1 } : { count: count + 1, gone };
    this.#deprecated.set(id, { customer, route, ...counts, lastAtMs: this.#nowMs() });
  }

  /** Counts a request that was sent to an upstream. `customer`: undefined where each request takes one unit. */
  sent(plan: string, customer?: string): void {
    this.#totalsOf(plan).requests++;
    if (customer !== undefined) this.#count(customer, REQUESTS);
  }

  #count(customer: string, code: string): void {
    const hourMs = this.#hourMs();
    const id = `${hourMs} ${code} ${customer}`;
    const known = this.#counts.get(id);
    if (known !== undefined) known.count++;
    else if (this.#counts.size < MAX_ENTRIES) this.#counts.set(id, { customer, hourMs, code, count: 1 });
    else this.#dropped++;
  }

  /** Counts a request for which the upstream gave no complete response, or a response of status 500 or above. */
  upstreamFailed(plan: string): void {
    this.#totalsOf(plan).upstream_errors++;
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

  #nowMs(): number {
    return this.#options.clock.nowMs() + this.#offsetMs;
  }

  #hourMs(): number {
    return Math.floor(this.#nowMs() / HOUR_MS) * HOUR_MS;
  }

  #totalsOf(plan: string): Record<Total, number> {
    const startMs = this.#hourMs();
    const last = this.#lastTotals.get(plan);
    if (last?.startMs === startMs) return last.counts;
    const totals = { startMs, plan, counts: noTotals() };
    this.#totals.push(totals);
    this.#lastTotals.set(plan, totals);
    return totals.counts;
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
    const [counts, totals, near, droppedCounts] = [this.#counts, this.#totals, this.#near, this.#dropped];
    [this.#counts, this.#totals, this.#near, this.#dropped] = [new Map(), [], new Map(), 0];
    const deprecated = [...this.#deprecated.values()];
    this.#deprecated.clear();
    this.#lastTotals.clear();
    if (droppedCounts > 0) dropped(droppedCounts);
    if (totals.length + near.size === 0) return;
    const counted = totals.flatMap(({ startMs, plan, counts }) =>
      TOTALS.map((what) => ({ plan, hourMs: startMs, what, count: counts[what] })).filter(({ count }) => count > 0),
    );
    const collected = {
      counts: Array.from(counts.values(), ({ hourMs, ...counted }) => {
        return { ...counted, hourMs: unlessClosed(hourMs / HOUR_MS, storeMs) * HOUR_MS };
      }),
      totals: counted,
      atMs: storeMs,
      near: Array.from(near, ([customer, percent]) => ({ customer, percent })),
      deprecated,
    };
    // The store's metrics count the failure.
    await history.add(collected).catch(() => undefined);
  }
}
