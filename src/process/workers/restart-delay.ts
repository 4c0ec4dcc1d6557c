const SHORTEST_MS = 1000;
const LONGEST_MS = 30_000;
/** A worker that ran this long did not exit because of how it starts. */
const STEADY_MS = 60_000;

/**
 * Returns the delay before a worker that exited is restarted. `lastDelayMs`: the delay before its own start; undefined for
 * the first worker of a slot.
 */
export function restartDelayMs(lastDelayMs: number | undefined, ranMs: number): number {
  if (lastDelayMs === undefined || ranMs >= STEADY_MS) return SHORTEST_MS;
  return Math.min(2 * lastDelayMs, LONGEST_MS);
}
