/**
 * Time as a parameter, so that tests and simulations can hold it still.
 *
 * `nowMs` is wall time (milliseconds since the Unix epoch; may jump), `monotonicMs` counts up from an arbitrary
 * origin and never goes back: deadlines and durations use the latter only.
 */
export interface Clock {
  nowMs(): number;
  monotonicMs(): number;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** Delayed actions as a parameter, for the same reason. */
export interface Scheduler {
  /** Runs `action` once, not before `delayMs` have passed. */
  after(delayMs: number, action: () => void): Scheduled;
  /**
   * As `after`, for how long to wait for an answer. A busy process must not take its own delay for the other side's: the
   * time counts from the end of this turn of the event loop, when what is asked leaves, and what has arrived when it is
   * over is read first.
   */
  deadline(delayMs: number, action: () => void): Scheduled;
}

export interface Scheduled {
  cancel(): void;
}

/** Node.js's timers; none of them keeps the process alive. */
export const systemScheduler: Scheduler = {
  after(delayMs, action) {
    const timer = setTimeout(action, Math.max(0, delayMs)).unref();
    return { cancel: () => clearTimeout(timer) };
  },
  deadline(delayMs, action) {
    // Node.js runs timers, then reads sockets, then runs immediates.
    let timer: NodeJS.Timeout | undefined;
    let immediate = setImmediate(() => {
      timer = setTimeout(
        () => {
          immediate = setImmediate(action);
        },
        Math.max(0, delayMs),
      ).unref();
    });
    return {
      cancel() {
        clearImmediate(immediate);
        clearTimeout(timer);
      },
    };
  },
};
