import type { Clock } from '../clock.ts';

/** A store at the edge of its memory takes some writes and refuses others: that is one refusal, not many. */
const SETTLED_MS = 10_000;

export interface WriteRefusalsOptions {
  readonly clock: Clock;
  /** Called once when refusals begin, with the first one's reason, and once when they have ended. */
  readonly changed: (reason: string | undefined) => void;
}

/**
 * Whether a store that can be reached refuses what quotas have to write: it is full, or does not permit it. Refusals have
 * ended when something was written and nothing was refused for 10 s.
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
