import type { Scheduler } from '../clock.ts';

/** Between two checks for one address block. */
const INTERVAL_MS = 500;
/** Requests of one address block that wait for their check. */
const MOST_WAITING = 4;

/**
 * Paces the checks of guessed tokens: at most two per second and address block. A small queue, so that a valid token that
 * comes between guesses is checked after two seconds at the latest.
 */
export class PacedChecks {
  readonly #scheduler: Pick<Scheduler, 'after'>;
  /** By address block, from its check until nothing was waiting for an interval. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(scheduler: Pick<Scheduler, 'after'>) {
    this.#scheduler = scheduler;
  }

  /** Resolves to true when it is this request's turn to be checked, to false at once when too many wait. */
  async turn(block: string): Promise<boolean> {
    const waiting = this.#waiting.get(block);
    if (waiting === undefined) {
      this.#waiting.set(block, []);
      this.#scheduleNext(block);
      return true;
    }
    if (waiting.length >= MOST_WAITING) return false;
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
