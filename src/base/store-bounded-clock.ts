/**
 * Wall time for moments that all instances must apply together, such as the end of a suspension: the clock of this
 * machine, held between the bounds that the last reading of the store's clock gives. Without a reading, the clock of this
 * machine.
 */
import { CLOCK_DRIFT, type Clock } from './clock.ts';

export class StoreBoundedClock {
  readonly #clock: Clock;
  /** The store read its clock between these two instants (monotonic ms). */
  #reading: { readonly storeTimeMs: number; readonly sentAtMs: number; readonly receivedAtMs: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Must be called when a reply of the store is received. `sentAtMs`: monotonic ms, before the call was sent. */
  learn(storeTimeMs: number, sentAtMs: number): void {
    this.#reading = { storeTimeMs, sentAtMs, receivedAtMs: this.#clock.monotonicMs() };
  }

  nowMs(): number {
    const ownMs = this.#clock.nowMs();
    if (this.#reading === undefined) return ownMs;
    const { storeTimeMs, sentAtMs, receivedAtMs } = this.#reading;
    const monotonicMs = this.#clock.monotonicMs();
    const earliestMs = storeTimeMs + (monotonicMs - receivedAtMs) / CLOCK_DRIFT;
    const latestMs = storeTimeMs + (monotonicMs - sentAtMs) * CLOCK_DRIFT;
    return Math.min(Math.max(ownMs, earliestMs), latestMs);
  }
}
