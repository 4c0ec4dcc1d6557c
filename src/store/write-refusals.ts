import type { Clock } from '../base/clock.ts';

/** A store near its memory limit accepts some writes and refuses others. Refusals within this time belong together. */
const SETTLED_MS = 10_000;

/**
 * Tracks whether a reachable store refuses quota writes, because it is full or does not permit them. Refusals have
 * ended when a write succeeds and no write was refused for 10 s.
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
    if (this.#lastMs === undefined || this.#clock.monotonicMs() - this.#lastMs < SETTLED_MS) return;
    this.#lastMs = undefined;
    this.#changed(undefined);
  }
}
