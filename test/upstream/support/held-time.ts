import type { Clock, Scheduled, Scheduler } from '../../../src/base/clock.ts';

/** Time that passes when the test says so, and what is to happen in it. */
export class HeldTime implements Clock, Scheduler {
  #nowMs = 0;
  #planned: { readonly atMs: number; readonly action: () => void }[] = [];

  /** Actions that are to come. */
  get planned(): number {
    return this.#planned.length;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, action: () => void): Scheduled {
    const planned = { atMs: this.#nowMs + delayMs, action };
    this.#planned.push(planned);
    return {
      cancel: () => {
        this.#planned = this.#planned.filter((each) => each !== planned);
      },
    };
  }

  deadline(delayMs: number, action: () => void): Scheduled {
    return this.after(delayMs, action);
  }

  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const [next] = this.#planned.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs);
      if (next === undefined) break;
      this.#planned = this.#planned.filter((each) => each !== next);
      this.#nowMs = next.atMs;
      next.action();
    }
    this.#nowMs = endMs;
  }
}
