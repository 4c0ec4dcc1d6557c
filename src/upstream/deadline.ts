import type { Clock } from '../clock.ts';

/**
 * A deadline that moves as an exchange goes on, with one timer. A later deadline lets the timer run and looks again
 * when it fires: so a fast exchange, which passes several deadlines, sets and clears one timer only.
 */
export class Deadline {
  readonly #clock: Clock;
  readonly #onPassed: () => void;
  #atMs = Infinity;
  #firesAtMs = Infinity;
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock, onPassed: () => void) {
    this.#clock = clock;
    this.#onPassed = onPassed;
  }

  /** `atMs`: monotonic. `onPassed` is called once, not before. */
  set(atMs: number): void {
    this.#atMs = atMs;
    if (atMs < this.#firesAtMs) this.#arm();
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#firesAtMs = Infinity;
  }

  #arm(): void {
    clearTimeout(this.#timer);
    this.#firesAtMs = this.#atMs;
    const remainingMs = this.#atMs - this.#clock.monotonicMs();
    this.#timer = setTimeout(() => this.#fire(), Math.max(0, Math.ceil(remainingMs)));
  }

  #fire(): void {
    this.#firesAtMs = Infinity;
    if (this.#clock.monotonicMs() < this.#atMs) this.#arm();
    else this.#onPassed();
  }
}
