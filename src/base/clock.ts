/**
 * Time as a parameter, so that tests and simulations can control it.
 *
 * `nowMs` is wall time (milliseconds since the Unix epoch; may jump). `monotonicMs` counts up from an arbitrary origin
 * and never goes back: deadlines and durations use it.
 */
export interface Clock {
  nowMs(): number;
  monotonicMs(): number;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** Timers as a parameter, for the same reason. */
export interface Scheduler {
  /** Runs `action` once, after at least `delayMs`. */
  after(delayMs: number, action: () => void): Scheduled;
  /**
   * Like `after`, for the timeout of a reply. Delays of this process must not count as delays of the peer. So the time
   * starts at the end of this turn of the event loop, when the request is sent. When it has passed, replies that have
   * already arrived are read before `action` runs.
   */
  deadline(delayMs: number, action: () => void): Scheduled;
}

export interface Scheduled {
  cancel(): void;
}

/** Node.js's timers, set so that they do not keep the process alive. */
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

/** Bound on clock drift, by which waits are extended: of this clock against the store's, and of a client's against it. */
export const CLOCK_DRIFT = 1.0005;

/** Returns the whole seconds that a client has to wait from `nowMs` until `atMs`, both of one clock; at least 1. */
export function secondsUntil(atMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((CLOCK_DRIFT * (atMs - nowMs)) / 1000));
}
