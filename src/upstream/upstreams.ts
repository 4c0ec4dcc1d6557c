import { type Balance, createBalancer } from './balancer.ts';
import { RetryBudget } from './retry-budget.ts';
import { type CommonUpstreamOptions, Upstream, type UpstreamStatus } from './upstream.ts';

export interface UpstreamsOptions extends CommonUpstreamOptions {
  /** Origins with an optional base path: at least one, no duplicates. */
  readonly urls: readonly URL[];
  readonly balance: Balance;
  readonly observer: UpstreamObserver;
}

/** Whether a request that could be retried was retried. */
export type RetryResult = 'sent' | 'over_budget';

export interface UpstreamObserver {
  /** An upstream was taken out of service or put back. */
  changed(status: UpstreamStatus): void;
  retry(result: RetryResult): void;
}

/**
 * All servers of the backend. An upstream that is only `failing` is ejected if at most half of the upstreams are then
 * out of service: a misjudgement must not overload the others. An upstream that is unreachable, or fails its health
 * checks, goes out of service regardless. When none is in service, requests fail at once: {@link choose} returns
 * undefined.
 */
export class Upstreams {
  readonly #members: readonly Upstream[];
  readonly #budget: RetryBudget;
  readonly #observer: UpstreamObserver;
  /** Returns the upstream for a request; undefined if none is in service. */
  readonly choose: () => Upstream | undefined;
  /**
   * Returns an upstream other than `first` for a retry. It balances separately from {@link choose}: a retry that took
   * the next request's turn would send that request to the upstream that has just failed.
   */
  readonly chooseOther: (first: Upstream | undefined) => Upstream | undefined;

  constructor(options: UpstreamsOptions) {
    const { urls, balance, observer, clock } = options;
    this.#observer = observer;
    this.#budget = new RetryBudget(clock);
    this.#members = urls.map(
      (url) =>
        new Upstream({
          ...options,
          url,
          canBeSpared: () => this.#canSpareOne(),
          changed: (upstream) => this.#changed(upstream),
        }),
    );
    this.choose = createBalancer(balance, this.#members);
    this.chooseOther = createBalancer(balance, this.#members);
  }

  /** Returns the state of each upstream, in the order of the configuration. */
  status(): UpstreamStatus[] {
    return this.#members.map((member) => member.status());
  }

  /** Counts a request that is sent for the first time. */
  countRequest(): void {
    this.#budget.request();
  }

  /**
   * Returns whether one more retry may be sent; if so, counts it as sent. `wasStale`: the upstream closed a kept
   * connection. Such a retry takes nothing from the budget: it says nothing about the upstream's health. Each such
   * retry needs a connection kept after a response, so there is at most one for each response.
   */
  mayRetry(wasStale: boolean): boolean {
    const isAllowed = wasStale || this.#budget.take();
    this.#observer.retry(isAllowed ? 'sent' : 'over_budget');
    return isAllowed;
  }

  /** Closes all upstreams. Resolves when the requests in progress have ended. */
  async close(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.close()));
  }

  #canSpareOne(): boolean {
    const out = this.#members.filter((member) => !member.isUp).length;
    return out + 1 <= this.#members.length / 2;
  }

  #changed(upstream: Upstream): void {
    this.#observer.changed(upstream.status());
    if (this.#members.some((member) => member.isUp)) return;
    for (const member of this.#members) member.readmitFailing();
  }
}
