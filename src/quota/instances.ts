import type { Scheduled, Scheduler } from '../clock.ts';

/** Instances that start together know of each other after that, and whatever fails in between is made up for. */
const ANNOUNCE_INTERVAL_MS = 10_000;
const RETRY_MS = 1000;

export interface InstancesOptions {
  /** Says that this instance runs; resolves to how many said so within the last hour. */
  readonly announce: () => Promise<number>;
  readonly scheduler: Pick<Scheduler, 'after'>;
}

/**
 * How many instances share the quotas: the most of which any announcement within the last hour is known. Those that have
 * ended since are among them, which makes the share of each smaller and never larger.
 */
export class Instances {
  readonly #options: InstancesOptions;
  #count: number | undefined;
  #timer: Scheduled | undefined;
  #closed = false;

  constructor(options: InstancesOptions) {
    this.#options = options;
  }

  /** Announces this instance now and from time to time. Resolves after the first attempt, whatever came of it. */
  async start(): Promise<void> {
    try {
      this.#count = Math.max(1, await this.#options.announce());
      this.#startAfter(ANNOUNCE_INTERVAL_MS);
    } catch {
      this.#startAfter(RETRY_MS);
    }
  }

  /** True once the others can know of this instance; before that it must not take traffic. */
  get announced(): boolean {
    return this.#count !== undefined;
  }

  /** At least 1. */
  get count(): number {
    return this.#count ?? 1;
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  #startAfter(delayMs: number): void {
    if (this.#closed) return;
    this.#timer = this.#options.scheduler.after(delayMs, () => void this.start());
  }
}
