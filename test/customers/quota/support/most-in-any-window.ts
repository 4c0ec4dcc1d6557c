/** The brute-force oracle: how many of these instants lie in the fullest half-open interval of `windowMs`. */
export function mostInAnyWindow(instantsMs: readonly number[], windowMs: number): number {
  const sorted = instantsMs.toSorted((a, b) => a - b);
  let most = 0;
  let first = 0;
  for (const [last, atMs] of sorted.entries()) {
    while ((sorted[first] ?? atMs) <= atMs - windowMs) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}
