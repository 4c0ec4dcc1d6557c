import type { Clock } from '../base/clock.ts';

/** Has a deadline, which may change. */
export interface Timed {
  /** Monotonic time. */
  readonly deadlineMs: number;
  /** Index in the array of watched objects; undefined while not watched. Set by {@link Deadlines}. */
  watchedAt: number | undefined;
  /** Called once, at the first check after the deadline. The object is no longer watched by then. */
  onDeadline(): void;
}

/** The interval between checks, and so how late a deadline may be noticed. */
const CHECK_INTERVAL_MS = 10;

/**
 * Watches the deadlines of many requests with one timer, which checks all of them periodically: a timer per request
 * would cost more. Sockets are read before each check: in a busy process, the response may already be in the socket, and
 * the gateway's own delay must not be taken for the upstream's.
 *
 * The watched objects are in an array, and each knows its index. A Set with constant insertions and deletions leaves
 * replaced hash tables behind, each with a reference to the next. Once one of these tables is in the old generation,
 * all later ones keep the requests of their time alive until a full collection. With a Set, half of all requests were
 * copied to the old generation, which took a fifth of all CPU time.
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
    this.#timer ??= setInterval(this.#tick, CHECK_INTERVAL_MS).unref();
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
      setImmediate(this.#check); // Node.js runs timers, then reads sockets, then runs immediates
      return;
    }
    clearInterval(this.#timer);
    this.#timer = undefined;
  };

  readonly #check = (): void => {
    const nowMs = this.#clock.monotonicMs();
    // Backwards: `unwatch` moves the last element, which is already checked, to the freed index.
    for (let at = this.#watched.length - 1; at >= 0; at -= 1) {
      const timed = this.#watched[at];
      if (timed === undefined || nowMs < timed.deadlineMs) continue;
      this.unwatch(timed);
      timed.onDeadline();
    }
  };
}
