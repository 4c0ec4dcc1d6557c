/**
 * Failed attempts to be let in by the address that they come from, on this instance, in windows of a minute that begin
 * with a failure.
 *
 * Only failures are counted, and they are counted after what was presented was looked at: so nothing here can keep out
 * whoever has the right to come in, known or never seen before, whoever shares the address.
 * docs/decisions/0006-failed-keys-are-looked-up.md says what that costs.
 *
 * The number of addresses is bounded, because whoever has an IPv6 /32 has four billion blocks of them. Those that failed
 * last are kept; one that is crowded out begins anew.
 */
import { addressBlock } from './address-block.ts';
import type { Clock } from './clock.ts';
import { LruMap } from './lru-map.ts';
import { secondsUntil } from './quota/admission.ts';

const WINDOW_MS = 60_000;
/** Those in memory, of about 200 bytes each. */
const ADDRESSES = 10_000;

interface Window {
  readonly endsAtMs: number;
  failures: number;
}

export class FailedAttempts {
  readonly #clock: Clock;
  readonly #perMinute: number;
  readonly #windows = new LruMap<string, Window>(ADDRESSES);

  /** `perMinute`: failures of one address that are answered with what is wrong; at least 1. */
  constructor(clock: Clock, perMinute: number) {
    this.#clock = clock;
    this.#perMinute = perMinute;
  }

  /**
   * Counts a failure of an address, or of what else is told apart by a name. Beyond `perMinute` of them: the whole
   * seconds, at least 1, until it may fail again.
   */
  count(address: string): number | undefined {
    const nowMs = this.#clock.monotonicMs();
    const block = addressBlock(address);
    const window = this.#windows.get(block);
    if (window === undefined || window.endsAtMs <= nowMs) {
      this.#windows.set(block, { endsAtMs: nowMs + WINDOW_MS, failures: 1 });
      return undefined;
    }
    window.failures++;
    return window.failures > this.#perMinute ? secondsUntil(window.endsAtMs, nowMs) : undefined;
  }
}
