/**
 * How many requests begin within any hour, by remembering when: as many instants as the limit allows, for each customer.
 * It knows nothing of how a decision comes about.
 */
import { WINDOW_MS } from '../../src/store/window-arithmetic.ts';

/** For customers that may reach their limit. Instants are given in their order. */
export class HourlyCount {
  readonly #limit: number;
  readonly #rings = new Map<number, { readonly instants: Float64Array; begun: number }>();
  /** Begun although as many as the limit had begun less than an hour before. */
  tooMany = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  begins(customer: number, atMs: number): void {
    let ring = this.#rings.get(customer);
    if (ring === undefined) {
      ring = { instants: new Float64Array(this.#limit).fill(Number.NEGATIVE_INFINITY), begun: 0 };
      this.#rings.set(customer, ring);
    }
    const at = ring.begun % this.#limit;
    if (atMs - (ring.instants[at] ?? 0) < WINDOW_MS) this.tooMany++;
    ring.instants[at] = atMs;
    ring.begun++;
  }
}

/** For customers so far from their limit that all they began in the whole run is within it. */
export class WholeCount {
  readonly #limit: number;
  readonly #begun: Uint32Array;

  constructor(limit: number, customers: number) {
    this.#limit = limit;
    this.#begun = new Uint32Array(customers);
  }

  begins(customer: number): void {
    this.#begun[customer] = (this.#begun[customer] ?? 0) + 1;
  }

  /** Beyond what the limit allows in an hour, as if the run had been one. */
  get tooMany(): number {
    let tooMany = 0;
    for (const begun of this.#begun) tooMany += Math.max(0, begun - this.#limit);
    return tooMany;
  }
}
