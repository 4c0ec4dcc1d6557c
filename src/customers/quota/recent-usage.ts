import type { Clock } from '../../base/clock.ts';
import { LruMap } from '../../base/lru-map.ts';
import { areSameSettings } from './customer-state.ts';
import { type QuotaSettings, type Usage, usageAfter } from './hourly-quota.ts';
import type { LeasedQuota } from './leased-quota.ts';

/** Limits a customer that polls its usage to four store calls a second. */
const REUSE_MS = 250;

interface Read {
  readonly settings: QuotaSettings;
  readonly usage: Promise<Usage>;
  /** Undefined while the store call is in flight, and after it failed. */
  result:
    | {
        readonly usage: Usage;
        readonly admitted: number;
        readonly admittedOfKey: number;
        readonly goodUntilMs: number;
      }
    | undefined;
  isUnderWay: boolean;
}

interface RecentUsageOptions {
  readonly hourly: Pick<LeasedQuota, 'usage' | 'admitted'>;
  readonly storeIsUp: (customer: string) => boolean;
  readonly clock: Clock;
  /** Maximum number of customers in memory. */
  readonly customers: number;
}

/**
 * Serves customers' usage to clients, which may poll it at any rate. Each customer has at most one store call in
 * flight. Its result is shared and reused for 250 ms, plus the requests that this instance admitted meanwhile. A change
 * of the limit, a usage reset or the loss of the store discards the result at once.
 */
export class RecentUsage {
  readonly #options: RecentUsageOptions;
  /** By customer or by the key with a limit, and by the units if those are not 1. */
  readonly #reads: LruMap<string, Read>;

  constructor(options: RecentUsageOptions) {
    this.#options = options;
    this.#reads = new LruMap(options.customers);
  }

  /** Returns {@link LeasedQuota.usage}. Rejects with StoreUnavailableError; failures are not reused. */
  of(customer: string, settings: QuotaSettings, units = 1): Promise<Usage> {
    const of = settings.ceiling?.leases ?? customer;
    const id = units === 1 ? of : `${of} ${units}`;
    const read = this.#reads.get(id);
    if (read && areSameSettings(read.settings, settings)) {
      if (read.isUnderWay) return read.usage;
      const usage = this.#reusable(customer, read);
      if (usage) return Promise.resolve(usage);
    }
    return this.#read(id, customer, settings, units);
  }

  #reusable(customer: string, { result, settings }: Read): Usage | undefined {
    const { hourly, storeIsUp, clock } = this.#options;
    if (result === undefined || clock.monotonicMs() >= result.goodUntilMs || !storeIsUp(customer)) return undefined;
    const { usage, admitted, admittedOfKey } = result;
    const since = Math.max(0, hourly.admitted(customer) - admitted);
    if (since === 0) return usage;
    const root = settings.ceiling?.limit.root;
    const sinceOfKey = root === undefined ? 0 : Math.max(0, hourly.admitted(customer, root) - admittedOfKey);
    // Only the store knows when the first unit of an empty window will expire.
    if (usage.used === 0 || (sinceOfKey > 0 && usage.key?.used === 0)) return undefined;
    return usageAfter(usage, since, sinceOfKey);
  }

  #read(id: string, customer: string, settings: QuotaSettings, units: number): Promise<Usage> {
    const { hourly, clock } = this.#options;
    const usage = hourly.usage(customer, settings.limits, units);
    const read: Read = { settings, usage, result: undefined, isUnderWay: true };
    this.#reads.set(id, read);
    usage.then(
      (result) => {
        read.isUnderWay = false;
        const goodUntilMs = clock.monotonicMs() + REUSE_MS;
        const [admitted, admittedOfKey] = [
          hourly.admitted(customer),
          hourly.admitted(customer, settings.ceiling?.limit.root),
        ];
        read.result = { usage: result, admitted, admittedOfKey, goodUntilMs };
      },
      () => {
        read.isUnderWay = false;
      },
    );
    return usage;
  }
}
