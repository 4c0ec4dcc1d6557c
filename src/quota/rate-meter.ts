/** Measures how often something happens: an average over about two slots, from two counters. */
export class RateMeter {
  readonly #slotMs: number;
  #slotStartMs = Number.NEGATIVE_INFINITY;
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
    const shareOfPrevious = 1 - (nowMs - this.#slotStartMs) / this.#slotMs;
    return (this.#previous * shareOfPrevious + this.#current) / this.#slotMs;
  }

  #turnTo(nowMs: number): void {
    const elapsedMs = nowMs - this.#slotStartMs;
    if (elapsedMs < this.#slotMs) return;
    const isNext = elapsedMs < 2 * this.#slotMs;
    this.#previous = isNext ? this.#current : 0;
    this.#current = 0;
    this.#slotStartMs = isNext ? this.#slotStartMs + this.#slotMs : nowMs;
  }
}
