/** Time that a busy machine does not lengthen, for tests that say how long something may take at most. */

const TICK_MS = 10;

let ticks = 0;
setInterval(() => ticks++, TICK_MS).unref();

/** Milliseconds in which this process could run: while it stands still because others run, no tick comes. */
export const awakeMs = (): number => ticks * TICK_MS;
