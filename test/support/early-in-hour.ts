import { setTimeout } from 'node:timers/promises';
import { HOUR_MS } from '../../src/store/usage-history.ts';

/** Waits for the next hour of the real clock if less of this one is left, for tests that say which hour or day it is. */
export async function earlyInHour(enoughMs = 10_000): Promise<void> {
  const leftMs = HOUR_MS - (Date.now() % HOUR_MS);
  if (leftMs < enoughMs) await setTimeout(leftMs);
}
