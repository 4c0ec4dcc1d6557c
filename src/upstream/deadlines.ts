import type { Clock } from '../clock.ts';

/** Something that must be over by a time, which may move. */
export interface Timed {
  /** Monotonic. */
  readonly deadlineMs: number;
  /** Where it stands among those that are watched; undefined while it is not. Kept by {@link Deadlines}. */
  watchedAt: number | undefined;
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
 *
 * They stand in an array, each knowing where. A Set that is added to and deleted from all the time leaves outgrown tables
 * behind, each with a reference to the next. Once one of them is in the old generation, all that follow keep what was
 * under way in their time, until a full collection: half of all requests were copied there, a fifth of all CPU time.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #watched: Timed[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  watch(timed: Timed): void {
    if (timed.watchedAt !== undefined) return;
    timed.watchedAt = this.#watched.push(timed) - 1;
    this.#timer ??= setInterval(this.#tick, LOOK_MS).unref();
  }

  unwatch(timed: Timed): void {
    const at = timed.watchedAt;
    if (at === undefined) return;
    timed.watchedAt = undefined;
    const last = this.#watched.pop();
    if (last === undefined || last === timed) return;
    this.#watched[at] = last;
    last.watchedAt = at;
  }

  readonly #tick = (): void => {
    if (this.#watched.length > 0) {
      setImmediate(this.#look); // Node.js runs timers, then reads sockets, then runs immediates
      return;
    }
    clearInterval(this.#timer);
    this.#timer = undefined;
  };

  readonly #look = (): void => {
    const nowMs = this.#clock.monotonicMs();
    // From the end: what takes the place of one that goes has been looked at.
    for (let at = this.#watched.length - 1; at >= 0; at -= 1) {
      const timed = this.#watched[at];
      if (timed === undefined || nowMs < timed.deadlineMs) continue;
      this.unwatch(timed);
      timed.onDeadline();
    }
  };
}
