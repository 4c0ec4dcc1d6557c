import type { Clock } from '../base/clock.ts';

/** Long, because a store near its memory limit accepts some writes and refuses others. */
const QUIET_MS = 10_000;

/**
 * Tracks whether a reachable store refuses quota writes, because it is full or does not permit them. Refusals end with a
 * write that succeeds after {@link QUIET_MS} without a refusal.
 */
export class WriteRefusals {
  readonly #clock: Clock;
  readonly #changed: (reason: string | undefined) => void;
  #lastMs: number | undefined;

  /** `changed`: called once when refusals begin, with the first one's reason, and once without when they have ended. */
  constructor(clock: Clock, changed: (reason: string | undefined) => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  get refusing(): boolean {
    return this.#lastMs !== undefined;
  }

  refused(reason: string): void {
    const isFirst = this.#lastMs === undefined;
    this.#lastMs = this.#clock.monotonicMs();
    if (isFirst) this.#changed(reason);
  }

  written(): void {
    if (this.#lastMs === undefined || this.#clock.monotonicMs() - this.#lastMs < QUIET_MS) return;
    this.#lastMs = undefined;
    this.#changed(undefined);
  }
}
