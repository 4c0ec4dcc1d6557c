/**
 * Limits each customer's requests in progress, per instance: N instances admit up to N times the limit. A request is
 * counted from before its hourly quota is checked until it ends.
 */
export class ConcurrencyLimiter {
  /** Customers without a counted request have no entry, so memory is bounded by the requests in progress. */
  readonly #inProgress = new Map<string, number>();

  /** Counts one request if `limit` allows it. Returns how to end the count, to be called exactly once; else undefined. */
  take(customer: string, limit: number): (() => void) | undefined {
    const count = this.#inProgress.get(customer) ?? 0;
    if (count >= limit) return undefined;
    this.#inProgress.set(customer, count + 1);
    return () => this.#release(customer);
  }

  #release(customer: string): void {
    const count = this.#inProgress.get(customer) ?? 0;
    if (count > 1) this.#inProgress.set(customer, count - 1);
    else this.#inProgress.delete(customer);
  }
}
