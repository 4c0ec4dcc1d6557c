import type { Clock, Scheduler } from '../clock.ts';

export interface Exposition {
  /** In Prometheus' text format, to be sent as `contentType`. */
  text(): Promise<string>;
  readonly contentType: string;
}

/** Expositions that may be made at once after a quiet while, such as for a pair of Prometheus servers and a script. */
const BURST = 20;
const INTERVAL_MS = 1000;
/** Scrapes that wait at once. Well below the connections of the ops listener, so that scrapes keep no probe out. */
const MOST_WAITING = 64;

/**
 * Limits what scrapes cost the process that serves requests: at most one exposition is under way, and beyond a burst one
 * begins per second. A scrape gets no older exposition than the one under way when it came: it shares that one, or
 * waits up to a second for the next one together with other scrapes. With too many of them waiting it gets the last one.
 */
export function limitExpositions(
  exposition: Exposition,
  clock: Pick<Clock, 'monotonicMs'>,
  scheduler: Pick<Scheduler, 'after'>,
): Exposition {
  let shared: Promise<string> | undefined;
  let waiting = 0;
  let last: string | undefined;
  /** When all of the burst is available again. */
  let fullAtMs = 0;

  async function make(): Promise<string> {
    const nowMs = clock.monotonicMs();
    const waitMs = fullAtMs - nowMs - (BURST - 1) * INTERVAL_MS;
    fullAtMs = Math.max(nowMs, fullAtMs) + INTERVAL_MS;
    if (waitMs > 0) await new Promise<void>((resolve) => void scheduler.after(waitMs, resolve));
    last = await exposition.text();
    return last;
  }

  return {
    contentType: exposition.contentType,
    async text() {
      if (waiting >= MOST_WAITING && last !== undefined) return last;
      shared ??= make().finally(() => {
        shared = undefined;
      });
      waiting++;
      try {
        return await shared;
      } finally {
        waiting--;
      }
    },
  };
}
