/** Measures until a result is below `enough`, at most so many times, and returns the least: a busy machine only adds. */
export async function leastOf(times: number, enough: number, measure: () => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let time = 0; time < times && least >= enough; time++) least = Math.min(least, await measure());
  return least;
}
