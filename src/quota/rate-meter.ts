/**
 * Measures how often something happens: an average over one to two slots of time, from two counters. All members are
 * small integers, which V8 keeps in the object itself: with many customers, each further object is a cache miss.
 */
export class RateMeter {
  readonly #slotMs: number;
  /** Number of the current slot, since the clock's origin. */
  #slot = -2;
  #current = 0;
  #previous = 0;

  constructor(slotMs: number) {
    this.#slotMs = slotMs;
  }

  /** Counts one event. `nowMs`: monotonic. */
  note(nowMs: number): void {
    this.#turnTo(nowMs);
    this.#current++;
  }

  /** True if there were events in the slot before this one: the average then is of more than a moment. */
  hasHistory(nowMs: number): boolean {
    this.#turnTo(nowMs);
    return this.#previous > 0;
  }

  perMs(nowMs: number): number {
    this.#turnTo(nowMs);
    const shareOfPrevious = 1 - (nowMs / this.#slotMs - this.#slot);
    return (this.#previous * shareOfPrevious + this.#current) / this.#slotMs;
  }

  #turnTo(nowMs: number): void {
    const slot = Math.floor(nowMs / this.#slotMs);
    if (slot === this.#slot) return;
    this.#previous = slot === this.#slot + 1 ? this.#current : 0;
    this.#current = 0;
    this.#slot = slot;
  }
}
