import type { Clock, Scheduled, Scheduler } from '../clock.ts';

/** Instances that start together know of each other after that, and whatever fails in between is made up for. */
const ANNOUNCE_INTERVAL_MS = 10_000;
const RETRY_MS = 1000;
/** An admission on a share counts against the limit for so long. */
const SHARE_MS = 3_600_000;

export interface InstancesOptions {
  /** Says that this instance runs; resolves to how many said so within the last hour. */
  readonly announce: () => Promise<number>;
  /** Takes that back. */
  readonly withdraw: () => Promise<void>;
  /** How long closing waits for that. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly scheduler: Pick<Scheduler, 'after'>;
}

/**
 * How many instances share the quotas: those that announced themselves within the last hour. An instance that ends withdraws
 * its announcement, unless it used its share within that hour: then the others must go on counting it. So they do with one
 * that crashed.
 */
export class Instances {
  readonly #options: InstancesOptions;
  #count: number | undefined;
  #timer: Scheduled | undefined;
  #closed = false;
  #shareUsedMs = Number.NEGATIVE_INFINITY;

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

  /** {@link count}, for the share of a limit on which this instance admits requests now. */
  countForShare(): number {
    this.#shareUsedMs = this.#options.clock.monotonicMs();
    return this.count;
  }

  /** Never rejects. */
  async close(): Promise<void> {
    const { withdraw, timeoutMs, clock, scheduler } = this.#options;
    this.#closed = true;
    this.#timer?.cancel();
    if (!this.announced || clock.monotonicMs() - this.#shareUsedMs < SHARE_MS) return;
    await new Promise<void>((resolve) => {
      const late = scheduler.after(timeoutMs, resolve);
      withdraw()
        .catch(() => undefined)
        .finally(() => {
          late.cancel();
          resolve();
        });
    });
  }

  #startAfter(delayMs: number): void {
    if (this.#closed) return;
    this.#timer = this.#options.scheduler.after(delayMs, () => void this.start());
  }
}
