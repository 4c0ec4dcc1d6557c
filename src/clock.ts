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
