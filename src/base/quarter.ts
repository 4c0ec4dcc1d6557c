/** Returns a quarter of a count, rounded down, but at least 1. */
export function quarterOf(count: number): number {
  return Math.max(1, Math.floor(count / 4));
}
