import type { Clock } from '../base/clock.ts';
import { LruMap } from '../base/lru-map.ts';
import type { UsageHistory } from '../store/usage-history.ts';
import { type Step, seriesRange, type UsagePoint, usageSeries } from './usage-series.ts';

/** Clients may poll their history at any rate: it is read from the store at most this often per customer. */
const REUSE_MS = 10_000;
const MAX_CUSTOMERS = 1000;

/** A customer's last 24 hours and 35 days. */
interface RecentHistoryDocument {
  readonly customer: string;
  readonly hours: readonly UsagePoint[];
  readonly days: readonly UsagePoint[];
}

/** Serves customers' own history to clients. */
export class RecentHistory {
  readonly #history: UsageHistory;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #reads = new LruMap<
    string,
    { readonly document: Promise<RecentHistoryDocument>; readonly goodUntilMs: number }
  >(MAX_CUSTOMERS);

  constructor(history: UsageHistory, clock: Pick<Clock, 'monotonicMs'>) {
    this.#history = history;
    this.#clock = clock;
  }

  /** Rejects with StoreUnavailableError; failures are not reused. */
  of(customer: string): Promise<RecentHistoryDocument> {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#reads.get(customer);
    if (known !== undefined && nowMs < known.goodUntilMs) return known.document;
    const document = this.#read(customer);
    this.#reads.set(customer, { document, goodUntilMs: nowMs + REUSE_MS });
    document.catch(() => this.#reads.delete(customer));
    return document;
  }

  async #read(customer: string): Promise<RecentHistoryDocument> {
    const nowMs = await this.#history.nowMs();
    const read = (step: Step) => usageSeries(this.#history, customer, step, seriesRange(step, nowMs, {}), nowMs);
    const [hours, days] = await Promise.all([read('hour'), read('day')]);
    return { customer, hours, days };
  }
}
