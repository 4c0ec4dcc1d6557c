import type { Clock } from '../clock.ts';

/** Something that must be over by a time, which may move. */
export interface Timed {
  /** Monotonic. */
  readonly deadlineMs: number;
  /** Called once, not before the deadline and at most a look later; it is not watched any more then. */
  onDeadline(): void;
}

/** How late a deadline may be noticed. */
const LOOK_MS = 10;

/**
 * The deadlines of many exchanges with one timer: they are looked through now and then, instead of each setting and
 * clearing a timer of its own, which costs more than all else that a fast exchange does with its deadlines.
 *
 * What has arrived is read before the look: a busy process may find the time over and the answer in its socket at the
 * same moment, and must not take its own delay for the other side's.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #watched = new Set<Timed>();
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  watch(timed: Timed): void {
    this.#watched.add(timed);
    this.#timer ??= setInterval(this.#tick, LOOK_MS).unref();
  }

  unwatch(timed: Timed): void {
    this.#watched.delete(timed);
  }

  readonly #tick = (): void => {
    if (this.#watched.size > 0) {
      setImmediate(this.#look); // Node.js runs timers, then reads sockets, then runs immediates
      return;
    }
    clearInterval(this.#timer);
    this.#timer = undefined;
  };

  readonly #look = (): void => {
    const nowMs = this.#clock.monotonicMs();
    for (const timed of this.#watched) {
      if (nowMs < timed.deadlineMs) continue;
      this.#watched.delete(timed);
      timed.onDeadline();
    }
  };
}
