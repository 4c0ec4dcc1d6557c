import type { Clock } from '../base/clock.ts';

/** A store near its memory limit accepts some writes and refuses others. Refusals within this time belong together. */
const SETTLED_MS = 10_000;

export interface WriteRefusalsOptions {
  readonly clock: Clock;
  /** Called once when refusals begin, with the first one's reason, and once without a reason when they have ended. */
  readonly changed: (reason: string | undefined) => void;
}

/**
 * Tracks whether a reachable store refuses quota writes, because it is full or does not permit them. Refusals have
 * ended when a write succeeds and no write was refused for 10 s.
 */
export class WriteRefusals {
  readonly #options: WriteRefusalsOptions;
  #lastMs: number | undefined;

  constructor(options: WriteRefusalsOptions) {
    this.#options = options;
  }

  get refusing(): boolean {
    return this.#lastMs !== undefined;
  }

  refused(reason: string): void {
    const isFirst = this.#lastMs === undefined;
    this.#lastMs = this.#options.clock.monotonicMs();
    if (isFirst) this.#options.changed(reason);
  }

  written(): void {
    if (this.#lastMs === undefined || this.#options.clock.monotonicMs() - this.#lastMs < SETTLED_MS) return;
    this.#lastMs = undefined;
    this.#options.changed(undefined);
  }
}
