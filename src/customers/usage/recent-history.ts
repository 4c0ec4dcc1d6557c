import type { Clock } from '../../base/clock.ts';
import { LruMap } from '../../base/lru-map.ts';
import type { CustomerRecord } from '../../store/record-fields.ts';
import type { UsageHistory } from '../../store/usage-history.ts';
import { type Step, seriesRange, type UsagePoint, usageSeries } from './usage-series.ts';

/** Clients may poll their history at any rate: it is read from the store at most this often per customer. */
const REUSE_MS = 10_000;
const MAX_CUSTOMERS = 1000;

/** A customer's last 24 hours and 35 days. */
interface RecentHistoryDocument {
  readonly customer: string;
  readonly hours: readonly PublicPoint[];
  readonly days: readonly PublicPoint[];
}

/** As docs/openapi/public.yaml has it. */
type PublicPoint = Omit<UsagePoint, 'refusedByCode'> & { readonly refused_by_code?: UsagePoint['refusedByCode'] };

/** Serves customers' own history to clients. */
export class RecentHistory {
  readonly #history: UsageHistory;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #reads = new LruMap<
    string,
    {
      readonly createdAt: string | undefined;
      readonly document: Promise<RecentHistoryDocument>;
      readonly goodUntilMs: number;
    }
  >(MAX_CUSTOMERS);

  constructor(history: UsageHistory, clock: Pick<Clock, 'monotonicMs'>) {
    this.#history = history;
    this.#clock = clock;
  }

  /** Rejects with StoreUnavailableError; failures are not reused. */
  of({ id, createdAt }: Pick<CustomerRecord, 'id' | 'createdAt'>): Promise<RecentHistoryDocument> {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#reads.get(id);
    // A customer that was deleted and created again must not see the history of the former one.
    if (known !== undefined && known.createdAt === createdAt && nowMs < known.goodUntilMs) return known.document;
    const document = this.#read(id);
    this.#reads.set(id, { createdAt, document, goodUntilMs: nowMs + REUSE_MS });
    document.catch(() => {
      if (this.#reads.get(id)?.document === document) this.#reads.delete(id);
    });
    return document;
  }

  async #read(customer: string): Promise<RecentHistoryDocument> {
    const nowMs = await this.#history.nowMs();
    const read = async (step: Step): Promise<PublicPoint[]> => {
      const points = await usageSeries(this.#history, customer, step, seriesRange(step, nowMs, {}), nowMs);
      return points.map(({ refusedByCode: codes, ...point }) => ({
        ...point,
        ...(codes && { refused_by_code: codes }),
      }));
    };
    const [hours, days] = await Promise.all([read('hour'), read('day')]);
    return { customer, hours, days };
  }
}
