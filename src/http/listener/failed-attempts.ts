/**
 * Counts failed authentication attempts by client address, in windows of a minute that begin with a failure. Counts are
 * per process; `learn` adds those of others.
 *
 * Only failures are counted, after the credentials were checked, so they never keep out valid credentials from the same
 * address (docs/dev/decisions/0006-failed-keys-are-looked-up.md). Only the addresses that failed last are kept, because the
 * owner of an IPv6 /32 has four billion /64 blocks. An evicted address starts from zero.
 */
import { type Clock, secondsUntil } from '../../base/clock.ts';
import { LruMap } from '../../base/lru-map.ts';
import { addressBlock } from '../../formats/address-block.ts';

const WINDOW_MS = 60_000;
/** Maximum number of address blocks in memory, of about 200 bytes each. */
const MAX_ADDRESSES = 10_000;

interface Window {
  readonly endsAtMs: number;
  failures: number;
}

export class FailedAttempts {
  readonly #clock: Clock;
  readonly #perMinute: number;
  readonly #onFailure: (block: string) => void;
  readonly #windows = new LruMap<string, Window>(MAX_ADDRESSES);

  /**
   * `perMinute`, at least 1: failures of an address before {@link count} returns a wait.
   * `onFailure` receives the block of each failure counted here, up to the first above `perMinute`, so that other
   * processes can count it, too.
   */
  constructor(clock: Clock, perMinute: number, onFailure: (block: string) => void = () => {}) {
    this.#clock = clock;
    this.#perMinute = perMinute;
    this.#onFailure = onFailure;
  }

  /**
   * Counts a failure of an address, or of another identifier. Above `perMinute` failures, returns the whole seconds
   * until another is allowed, at least 1.
   */
  count(address: string): number | undefined {
    const nowMs = this.#clock.monotonicMs();
    const block = addressBlock(address);
    const window = this.#add(block, 1, nowMs);
    if (window.failures <= this.#perMinute + 1) this.#onFailure(block);
    return window.failures > this.#perMinute ? secondsUntil(window.endsAtMs, nowMs) : undefined;
  }

  /** Adds failures of an address block that another process counted. */
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
