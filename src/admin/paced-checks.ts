import type { Scheduler } from '../base/clock.ts';

/** Time between two checks for one address block. */
const INTERVAL_MS = 500;
/** Maximum requests of one address block that wait for a check. */
const MAX_WAITING = 4;

/**
 * Paces the checks of guessed tokens: at most two per second and address block. The queue is small, so that a valid
 * token among guesses is checked within two seconds if it gets a place in the queue.
 */
export class PacedChecks {
  readonly #scheduler: Pick<Scheduler, 'after'>;
  /** Queue per address block; kept from its first check until an interval ends with an empty queue. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(scheduler: Pick<Scheduler, 'after'>) {
    this.#scheduler = scheduler;
  }

  /** Resolves to true when this request may be checked; to false at once if the queue is full. */
  async waitForTurn(block: string): Promise<boolean> {
    const waiting = this.#waiting.get(block);
    if (waiting === undefined) {
      this.#waiting.set(block, []);
      this.#scheduleNext(block);
      return true;
    }
    if (waiting.length >= MAX_WAITING) return false;
    await new Promise<void>((resolve) => void waiting.push(resolve));
    return true;
  }

  #scheduleNext(block: string): void {
    this.#scheduler.after(INTERVAL_MS, () => {
      const next = this.#waiting.get(block)?.shift();
      if (next === undefined) {
        this.#waiting.delete(block);
        return;
      }
      next();
      this.#scheduleNext(block);
    });
  }
}
