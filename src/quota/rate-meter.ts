const SLOT_MS = 2000;

/** Measures how often something happens: an average over about two seconds, from two counters. */
export class RateMeter {
  #slotStartMs = Number.NEGATIVE_INFINITY;
  #current = 0;
  #previous = 0;

  /** Counts one event. `nowMs`: monotonic. */
  note(nowMs: number): void {
    this.#turnTo(nowMs);
    this.#current++;
  }

  perSecond(nowMs: number): number {
    this.#turnTo(nowMs);
    const shareOfPrevious = 1 - (nowMs - this.#slotStartMs) / SLOT_MS;
    return ((this.#previous * shareOfPrevious + this.#current) * 1000) / SLOT_MS;
  }

  #turnTo(nowMs: number): void {
    const elapsedMs = nowMs - this.#slotStartMs;
    if (elapsedMs < SLOT_MS) return;
    const isNext = elapsedMs < 2 * SLOT_MS;
    this.#previous = isNext ? this.#current : 0;
    this.#current = 0;
    this.#slotStartMs = isNext ? this.#slotStartMs + SLOT_MS : nowMs;
  }
}
