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
  readonly #told: (block: string) => void;
  readonly #windows = new LruMap<string, Window>(ADDRESSES);

  /**
   * `perMinute`: failures of one address that are answered with what is wrong; at least 1. `told`: gets the block of each
   * failure that is counted here up to the first one beyond, for others who count the same addresses.
   */
  constructor(clock: Clock, perMinute: number, told: (block: string) => void = () => {}) {
    this.#clock = clock;
    this.#perMinute = perMinute;
    this.#told = told;
  }

  /**
   * Counts a failure of an address, or of what else is told apart by a name. Beyond `perMinute` of them: the whole
   * seconds, at least 1, until it may fail again.
   */
  count(address: string): number | undefined {
    const nowMs = this.#clock.monotonicMs();
    const block = addressBlock(address);
    const window = this.#add(block, 1, nowMs);
    if (window.failures <= this.#perMinute + 1) this.#told(block);
    return window.failures > this.#perMinute ? secondsUntil(window.endsAtMs, nowMs) : undefined;
  }

  /** As {@link count}, for one more failure that has not happened: counts nothing. */
  retrySeconds(address: string): number | undefined {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#windows.get(addressBlock(address));
    if (window === undefined || window.endsAtMs <= nowMs || window.failures < this.#perMinute) return undefined;
    return secondsUntil(window.endsAtMs, nowMs);
  }

  /** Failures of an address block that somebody else counted. */
  learn(block: string, failures: number): void {
    this.#add(block, failures, this.#clock.monotonicMs());
  }

  #add(block: string, failures: number, nowMs: number): Window {
    let window = this.#windows.get(block);
    if (window === undefined || window.endsAtMs <= nowMs) {
      window = { endsAtMs: nowMs + WINDOW_MS, failures: 0 };
      this.#windows.set(block, window);
    }
    window.failures += failures;
    return window;
  }
}
