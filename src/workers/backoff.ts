const SHORTEST_MS = 1000;
const LONGEST_MS = 30_000;
/** A worker that lived so long did not end because of how it starts. */
const STEADY_MS = 60_000;

/**
 * How long to wait before the next worker takes the place of one that ended. `lastMs`: how long that was the last time;
 * undefined when it was the first worker of its place.
 */
export function restartDelayMs(lastMs: number | undefined, livedMs: number): number {
  if (lastMs === undefined || livedMs >= STEADY_MS) return SHORTEST_MS;
  return Math.min(2 * lastMs, LONGEST_MS);
}
