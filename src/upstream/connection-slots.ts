/**
 * Who may use one of the upstream's connections now, and who waits for one, first come, first served.
 *
 * The pool has a queue of its own, but what is in there cannot be taken out again: while the upstream hangs, requests
 * whose time is long over would pile up in it, and fresh ones would wait behind them after it has recovered. Here a
 * waiter that gives up is gone at once.
 */
export class ConnectionSlots {
  readonly #total: number;
  readonly #waiting = new Set<() => void>();
  #used = 0;
  #onIdle: (() => void)[] = [];

  constructor(total: number) {
    this.#total = total;
  }

  /** Calls `run` once a slot is its own: now, or when another one is released. */
  acquire(run: () => void): void {
    if (this.#used < this.#total) {
      this.#used++;
      run();
    } else {
      this.#waiting.add(run);
    }
  }

  /** Stops waiting. Not for one whose `run` was called: it releases. */
  withdraw(run: () => void): void {
    this.#waiting.delete(run);
  }

  /** Hands the slot to the next in line, in a turn of its own: the caller may be deep inside of undici. */
  release(): void {
    queueMicrotask(() => {
      for (const run of this.#waiting) {
        this.#waiting.delete(run);
        run();
        return;
      }
      this.#used--;
      if (this.#used === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    });
  }

  /** Resolves when no slot is in use and nobody waits. */
  idle(): Promise<void> {
    if (this.#used === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }
}
