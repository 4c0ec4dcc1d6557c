const MICROS_PER_BIN = 10;
const MAX_MICROS = 60_000_000;

/** Counts delays of up to a minute, exact to 10 µs, without an allocation for each. */
export class DelayHistogram {
  readonly #bins = new Uint32Array(MAX_MICROS / MICROS_PER_BIN + 1);
  count = 0;

  add(micros: number): void {
    const bin = Math.floor(Math.min(micros, MAX_MICROS) / MICROS_PER_BIN);
    this.#bins[bin] = (this.#bins[bin] ?? 0) + 1;
    this.count += 1;
  }

  clear(): void {
    this.#bins.fill(0);
    this.count = 0;
  }

  /** In µs. */
  percentiles(): { readonly p50: number; readonly p99: number; readonly p999: number } {
    return { p50: this.#percentile(50), p99: this.#percentile(99), p999: this.#percentile(99.9) };
  }

  #percentile(percent: number): number {
    let toPass = (this.count * percent) / 100;
    const bin = this.#bins.findIndex((delays) => {
      toPass -= delays;
      return toPass <= 0;
    });
    return bin * MICROS_PER_BIN;
  }
}
