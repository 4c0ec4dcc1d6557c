import { type Balance, createBalancer } from './balancer.ts';
import { RetryBudget } from './retry-budget.ts';
import { type CommonUpstreamOptions, Upstream, type UpstreamStatus } from './upstream.ts';

/** The requests in progress of all backends with one name, before and after a reload. */
export interface BackendLoad {
  inFlight: number;
  /** Monotonic time of the latest request. */
  latestAtMs: number;
}

export interface BackendOptions extends CommonUpstreamOptions {
  readonly load: BackendLoad;
  /** Returns whether the requests in progress leave enough room for those of other backends. */
  isWithinShare(load: BackendLoad): boolean;
  /** Origins with an optional base path: at least one, no duplicates. */
  readonly urls: readonly URL[];
  readonly balance: Balance;
  readonly observer: BackendObserver;
}

/** Whether a request that could be retried was retried. */
export type RetryResult = 'sent' | 'over_budget';

export interface BackendObserver {
  /** An upstream was taken out of service or put back. */
  changed(status: UpstreamStatus): void;
  retry(backend: string, result: RetryResult): void;
}

/**
 * A group of servers, its upstreams, any of which can serve a request. An upstream that is only `failing` is ejected if at
 * most half of them are then out of service: a misjudgement must not overload the others. One that is unreachable, or
 * fails its health checks, goes out of service regardless. When none is in service, {@link choose} returns undefined.
 *
 * A reload that changes a backend closes it and opens another one. Requests that began before still use the closed one.
 */
export class Backend {
  readonly name: string;
  readonly #load: BackendLoad;
  readonly #isWithinShare: BackendOptions['isWithinShare'];
  readonly #upstreams: readonly Upstream[];
  readonly #budget: RetryBudget;
  readonly #observer: BackendObserver;
  #isClosed = false;
  /** Returns the upstream for a request; undefined if none is in service. */
  readonly choose: () => Upstream | undefined;
  /**
   * Returns an upstream other than `first` for a retry. It balances separately from {@link choose}: a retry that took
   * the next request's turn would send that request to the upstream that has just failed.
   */
  readonly chooseOther: (first: Upstream | undefined) => Upstream | undefined;

  constructor(options: BackendOptions) {
    const { backend, urls, balance, observer, clock } = options;
    this.name = backend;
    this.#load = options.load;
    this.#isWithinShare = options.isWithinShare;
    this.#observer = observer;
    this.#budget = new RetryBudget(clock);
    this.#upstreams = urls.map(
      (url) =>
        new Upstream({
          ...options,
          url,
          canBeSpared: () => this.#canSpareOne(),
          changed: (upstream) => this.#changed(upstream),
        }),
    );
    this.choose = createBalancer(balance, this.#upstreams);
    this.chooseOther = createBalancer(balance, this.#upstreams);
  }

  /** Returns the state of each upstream, in the order of the configuration. */
  status(): UpstreamStatus[] {
    return this.#upstreams.map((upstream) => upstream.status());
  }

  /** Counts a request in progress, until {@link ended}. Returns false if it must be refused (see `Backends`). */
  began(nowMs: number): boolean {
    this.#load.inFlight++;
    this.#load.latestAtMs = nowMs;
    return this.#isWithinShare(this.#load);
  }

  ended(): void {
    this.#load.inFlight--;
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
    this.#observer.retry(this.name, isAllowed ? 'sent' : 'over_budget');
    return isAllowed;
  }

  /** See {@link Upstream.close}. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#upstreams.map((upstream) => upstream.close()));
  }

  #canSpareOne(): boolean {
    const out = this.#upstreams.filter((upstream) => !upstream.isUp).length;
    return out + 1 <= this.#upstreams.length / 2;
  }

  #changed(changed: Upstream): void {
    if (!this.#isClosed) this.#observer.changed(changed.status());
    if (this.#upstreams.some((upstream) => upstream.isUp)) return;
    for (const upstream of this.#upstreams) upstream.readmitFailing();
  }
}
