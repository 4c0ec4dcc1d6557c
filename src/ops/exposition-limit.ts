import type { Clock, Scheduler } from '../clock.ts';
import type { OpsAppParts } from './ops-app.ts';

/** Expositions that may be made at once after a quiet while, such as for a pair of Prometheus servers and a script. */
const BURST = 20;
const INTERVAL_MS = 1000;

/**
 * Limits what scrapes cost the process that serves requests: at most one exposition is under way, and beyond a burst one
 * begins per second. A scrape never gets an older exposition than the one under way when it came: it shares that one, or
 * waits up to a second for the next one together with all other scrapes.
 */
export function limitExpositions(
  exposition: OpsAppParts['metrics'],
  clock: Pick<Clock, 'monotonicMs'>,
  scheduler: Pick<Scheduler, 'after'>,
): OpsAppParts['metrics'] {
  let shared: Promise<string> | undefined;
  /** When all of the burst is available again. */
  let fullAtMs = 0;

  async function make(): Promise<string> {
    const nowMs = clock.monotonicMs();
    const waitMs = fullAtMs - nowMs - (BURST - 1) * INTERVAL_MS;
    fullAtMs = Math.max(nowMs, fullAtMs) + INTERVAL_MS;
    if (waitMs > 0) await new Promise<void>((resolve) => void scheduler.after(waitMs, resolve));
    return await exposition.text();
  }

  return {
    contentType: exposition.contentType,
    text() {
      shared ??= make().finally(() => {
        shared = undefined;
      });
      return shared;
    },
  };
}
