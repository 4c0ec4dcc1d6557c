import type { LookupFunction } from 'node:net';
import type { Clock, Scheduler } from '../clock.ts';
import type { Lookup } from './addresses.ts';
import { type Balance, createBalancer } from './balancer.ts';
import type { Connect } from './connect.ts';
import type { HealthCheckConfig } from './health-checks.ts';
import { RetryBudget } from './retry-budget.ts';
import { Upstream, type UpstreamStatus } from './upstream.ts';

export interface UpstreamsOptions {
  /** Origins with an optional base path, at least one; none twice. */
  readonly urls: readonly URL[];
  readonly balance: Balance;
  readonly healthCheck?: HealthCheckConfig | undefined;
  /** How connections are made. `lookup`: left out where there is no name to look up. */
  connectTo(url: URL, lookup: LookupFunction | undefined): Connect;
  /** To each of them; the same holds for the two below. */
  readonly maxConnections: number;
  /** What one customer has for sure, at most `maxConnections`. */
  readonly maxConnectionsPerCustomer: number;
  /** Requests of one customer that wait because it uses its share up. */
  readonly maxWaitingPerCustomer: number;
  /** Of an answer's header fields. */
  readonly maxHeaderBytes: number;
  readonly observer: UpstreamObserver;
  readonly lookup: Lookup;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
}

/** Whether a request that could be sent a second time was. */
export type RetryResult = 'sent' | 'over_budget';

export interface UpstreamObserver {
  /** An upstream was taken out of service, or is back. */
  changed(status: UpstreamStatus): void;
  retry(result: RetryResult): void;
}

/**
 * All servers of the backend. What only seems to do badly is taken out of service as long as at most half of them are
 * out, so that the others are not crushed by a misjudgement; what cannot be reached is, whatever the others do. When
 * none is left, nobody waits: {@link choose} has none.
 */
export class Upstreams {
  readonly #members: readonly Upstream[];
  readonly #budget: RetryBudget;
  readonly #observer: UpstreamObserver;
  /** The one for a request; undefined if none is in service. */
  readonly choose: () => Upstream | undefined;
  /**
   * The one for a second attempt, other than that of the first. It has turns of its own: if it took the next request's,
   * that one would be sent to the upstream that has just failed.
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

  /** In the order of the configuration. */
  status(): UpstreamStatus[] {
    return this.#members.map((member) => member.status());
  }

  /** Counts a request that is sent for the first time. */
  countRequest(): void {
    this.#budget.request();
  }

  /**
   * Whether one more request may be sent a second time; if so, it counts as sent. `wasStale`: the upstream closed a kept
   * connection. Such a retry takes nothing from the budget: it says nothing about the upstream's health, and there is
   * at most one for each response.
   */
  mayRetry(wasStale: boolean): boolean {
    const isAllowed = wasStale || this.#budget.take();
    this.#observer.retry(isAllowed ? 'sent' : 'over_budget');
    return isAllowed;
  }

  /** Resolves when the exchanges under way are over. */
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
