import type { Scheduled, Scheduler } from './clock.ts';

/** Repeats work, one run at a time. The time until the next run counts from the end of the last one. */
export class Periodic {
  readonly #scheduler: Pick<Scheduler, 'after'>;
  readonly #work: () => Promise<number | undefined>;
  readonly #onEnd: (() => void) | undefined;
  #next: Scheduled | undefined;
  #running: Promise<void> | undefined;
  #isClosed = false;

  /**
   * `work` resolves to the ms until the next run; to undefined to stop until `start` or `run`. Must not reject. `onEnd` is
   * called after each run, and may begin another.
   */
  constructor(scheduler: Pick<Scheduler, 'after'>, work: () => Promise<number | undefined>, onEnd?: () => void) {
    this.#scheduler = scheduler;
    this.#work = work;
    this.#onEnd = onEnd;
  }

  get running(): Promise<void> | undefined {
    return this.#running;
  }

  get isPlanned(): boolean {
    return this.#next !== undefined;
  }

  /** Plans the first run. Does nothing while a run is planned or in progress. */
  start(delayMs: number): void {
    if (this.#isClosed || this.isPlanned || this.#running) return;
    this.#next = this.#scheduler.after(delayMs, () => void this.run());
  }

  /** Runs the work now, instead of the next planned time. Resolves when that run, or the one in progress, has ended. */
  run(): Promise<void> {
    if (!this.#isClosed) this.#running ??= this.#runOnce();
    return this.#running ?? Promise.resolve();
  }

  /** Like {@link run}, but starts another run after one in progress, which may have missed the latest change. */
  async runAgain(): Promise<void> {
    await this.#running;
    await this.run();
  }

  /** Begins no further run. Resolves when the one in progress has ended. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#next?.cancel();
    return this.#running ?? Promise.resolve();
  }

  async #runOnce(): Promise<void> {
    this.#next?.cancel();
    this.#next = undefined;
    const delayMs = await this.#work();
    this.#running = undefined;
    if (delayMs !== undefined) this.start(delayMs);
    this.#onEnd?.();
  }
}
