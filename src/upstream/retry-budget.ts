import type { Clock } from '../clock.ts';

/** A retry costs as much as so many requests bring in: at most a fifth of them are sent twice. */
const REQUESTS_PER_RETRY = 5;
/** So that rare requests are retried as well. */
const RETRIES_PER_SECOND = 10;
/** Saved up at most: an upstream that restarts ends many kept connections at once. */
const MOST_RETRIES_SAVED = 100;
const MOST_CREDIT = MOST_RETRIES_SAVED * REQUESTS_PER_RETRY;
const CREDIT_PER_MS = (RETRIES_PER_SECOND * REQUESTS_PER_RETRY) / 1000;

/**
 * How many requests may be sent a second time, so that an upstream in trouble gets a fifth more of them, not twice as
 * many. While R requests come within T seconds, at most R/5 + 10 T + 100 are retried.
 */
export class RetryBudget {
  readonly #clock: Clock;
  #credit = MOST_CREDIT;
  #countedAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#countedAtMs = clock.monotonicMs();
  }

  /** Counts a request that is sent for the first time. */
  request(): void {
    if (this.#credit < MOST_CREDIT) this.#credit = Math.min(MOST_CREDIT, this.#credit + 1);
  }

  /** Takes one retry, if there is one left. */
  take(): boolean {
    const nowMs = this.#clock.monotonicMs();
    this.#credit = Math.min(MOST_CREDIT, this.#credit + (nowMs - this.#countedAtMs) * CREDIT_PER_MS);
    this.#countedAtMs = nowMs;
    if (this.#credit < REQUESTS_PER_RETRY) return false;
    this.#credit -= REQUESTS_PER_RETRY;
    return true;
  }
}
