/**
 * Counts the customers on plans that the running config does not have: all their requests get 403. A reload refuses such
 * a file, but a start cannot, because the store may be unavailable and the other customers must be served.
 */
import type { Scheduler } from '../../base/clock.ts';
import { Periodic } from '../../base/periodic.ts';
import { type LimitPolicy, planOf } from '../../customers/quota/effective-limit.ts';
import type { Logger } from '../../observability/logger.ts';
import { type CustomerLists, countByPlan } from './customers.ts';

export interface CustomersWithoutPlan {
  readonly customers: number;
  /** The names of the plans in their records: the first 10. */
  readonly plans: readonly string[];
}

const MAX_PLANS = 10;
/** Counted again so long after a count that found some: they may have been moved. */
const RECOUNT_MS = 60_000;
/** Counted again so long after the store failed. */
const RETRY_MS = 10_000;

/** Rejects with StoreUnavailableError, or when `signal` aborts. */
export async function countCustomersWithoutPlan(
  policy: LimitPolicy,
  records: CustomerLists,
  signal?: AbortSignal,
): Promise<CustomersWithoutPlan> {
  const counts = await countByPlan((plan) => planOf(plan, policy) === undefined, records, signal);
  const customers = [...counts.values()].reduce((sum, count) => sum + count, 0);
  return { customers, plans: [...counts.keys()].toSorted().slice(0, MAX_PLANS) };
}

interface CounterOptions {
  readonly records: CustomerLists;
  readonly counted: (customers: number) => void;
  readonly logger: Logger;
  readonly scheduler: Pick<Scheduler, 'after'>;
}

/** Keeps the count for the running config, and logs when it changes. */
export class CustomersWithoutPlanCounter {
  readonly #options: CounterOptions;
  #running = new AbortController();
  #counting: Periodic | undefined;
  #last: CustomersWithoutPlan | undefined;

  constructor(options: CounterOptions) {
    this.#options = options;
  }

  /** The last count; undefined before the first one. */
  get last(): CustomersWithoutPlan | undefined {
    return this.#last;
  }

  /** Counts in the background, for this config from now on. */
  start(policy: LimitPolicy): void {
    this.close();
    this.#running = new AbortController();
    const { signal } = this.#running;
    this.#counting = new Periodic(this.#options.scheduler, () => this.#count(policy, signal));
    void this.#counting.run();
  }

  close(): void {
    this.#running.abort();
    void this.#counting?.close();
  }

  /** Resolves to the ms until the next count; undefined when no customer was found. */
  async #count(policy: LimitPolicy, signal: AbortSignal): Promise<number | undefined> {
    // The store's metrics count the failure.
    const result = await countCustomersWithoutPlan(policy, this.#options.records, signal).catch(() => undefined);
    if (signal.aborted) return undefined;
    if (result === undefined) return RETRY_MS;
    this.#report(result);
    return result.customers === 0 ? undefined : RECOUNT_MS;
  }

  #report(result: CustomersWithoutPlan): void {
    const { counted, logger } = this.#options;
    const before = this.#last?.customers ?? 0;
    this.#last = result;
    counted(result.customers);
    if (result.customers === before) return;
    if (result.customers === 0) logger.info('the plans of all customers are configured again');
    else {
      logger.error(
        { ...result },
        'customers are on plans that are not configured, so all their requests get 403: configure the plans, list their names under "formerly" of others, or move the customers',
      );
    }
  }
}
