import type { Clock, Scheduler } from '../base/clock.ts';

/** Expositions allowed in quick succession after an idle period: enough for two Prometheus servers and a script. */
const BURST = 20;
const INTERVAL_MS = 1000;
/** Maximum waiting scrapes. Well below the ops listener's connection limit, so that scrapes do not lock probes out. */
const MAX_WAITING = 64;

/**
 * Limits what scrapes cost the process that serves requests. `expose` returns the current metrics as text. Expositions
 * are built one at a time; after a burst of {@link BURST}, one per second. A scrape shares the exposition in progress or
 * the next one. While {@link MAX_WAITING} scrapes wait, a further one gets the previous exposition.
 */
export function limitExpositions(
  expose: () => Promise<string>,
  clock: Pick<Clock, 'monotonicMs'>,
  scheduler: Pick<Scheduler, 'after'>,
): () => Promise<string> {
  let shared: Promise<string> | undefined;
  let waiting = 0;
  let last: string | undefined;
  /** Monotonic ms at which the whole burst is available again. */
  let fullAtMs = 0;

  async function build(): Promise<string> {
    const nowMs = clock.monotonicMs();
    const waitMs = fullAtMs - nowMs - (BURST - 1) * INTERVAL_MS;
    fullAtMs = Math.max(nowMs, fullAtMs) + INTERVAL_MS;
    if (waitMs > 0) await new Promise<void>((resolve) => void scheduler.after(waitMs, resolve));
    last = await expose();
    return last;
  }

  return async () => {
    if (waiting >= MAX_WAITING && last !== undefined) return last;
    shared ??= build().finally(() => {
      shared = undefined;
    });
    waiting++;
    try {
      return await shared;
    } finally {
      waiting--;
    }
  };
}
