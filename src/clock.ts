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
   * As `after`, for how long to wait for an answer: what has arrived by then is read first. A busy process may find a
   * timer due and the answer in its socket at the same moment, and must not take its own delay for the other side's.
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
    let afterReading: NodeJS.Immediate | undefined;
    const timer = setTimeout(
      () => {
        afterReading = setImmediate(action);
      },
      Math.max(0, delayMs),
    ).unref();
    return {
      cancel() {
        clearTimeout(timer);
        clearImmediate(afterReading);
      },
    };
  },
};
