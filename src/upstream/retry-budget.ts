import type { Clock } from '../base/clock.ts';

/** Credits that a retry costs. A request earns one credit, so at most a fifth of the requests are retried. */
const REQUESTS_PER_RETRY = 5;
/** Retries earned in addition, whatever the request rate, so that rare requests are retried as well. */
const RETRIES_PER_SECOND = 10;
/** Maximum retries that can be saved up: an upstream that restarts fails many requests at once. */
const MAX_RETRIES_SAVED = 100;
const MAX_CREDIT = MAX_RETRIES_SAVED * REQUESTS_PER_RETRY;
const CREDIT_PER_MS = (RETRIES_PER_SECOND * REQUESTS_PER_RETRY) / 1000;

/**
 * Limits retries, so that an upstream in trouble gets a fifth more requests, not twice as many. While R requests arrive
 * within T seconds, at most R/5 + 10 T + 100 are retried. Retries after the upstream closed a kept connection are not
 * limited (see `Backend.mayRetry`).
 */
export class RetryBudget {
  readonly #clock: Clock;
  #credit = MAX_CREDIT;
  #countedAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#countedAtMs = clock.monotonicMs();
  }

  /** Counts a request that is sent for the first time. */
  request(): void {
    if (this.#credit < MAX_CREDIT) this.#credit = Math.min(MAX_CREDIT, this.#credit + 1);
  }

  /** Takes one retry from the budget. Returns false if none is left. */
  take(): boolean {
    const nowMs = this.#clock.monotonicMs();
    this.#credit = Math.min(MAX_CREDIT, this.#credit + (nowMs - this.#countedAtMs) * CREDIT_PER_MS);
    this.#countedAtMs = nowMs;
    if (this.#credit < REQUESTS_PER_RETRY) return false;
    this.#credit -= REQUESTS_PER_RETRY;
    return true;
  }
}
