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
}

export interface Scheduled {
  cancel(): void;
}

/** Node.js's timers; none of them keeps the process alive. */
export const systemScheduler: Scheduler = {
  after(delayMs, action) {
    const timer = setTimeout(action, delayMs).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
