import type { Clock } from '../base/clock.ts';
import { LruMap } from '../base/lru-map.ts';

/** A customer's refusals for one reason, on this instance. Times: wall time in ms. */
export interface RecentRefusal {
  readonly customer: string;
  /** The problem code, as in docs/errors.md. */
  readonly code: string;
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  /** Of the last refusal. */
  readonly keyId: string | undefined;
}

/** Maximum number of customers in memory: those refused last, each with at most one entry per code. */
const CUSTOMERS = 10_000;
/** Maximum number of entries that are returned. */
const LISTED = 1000;
/** An entry without a refusal for this long is no longer returned, and the next refusal starts a new one. */
const FORGET_MS = 3_600_000;

/** Recent refusals by customer and code, on this instance. An entry ends after an hour without a further refusal. */
export class RecentRefusals {
  readonly #clock: Clock;
  readonly #byCustomer = new LruMap<string, Map<string, RecentRefusal>>(CUSTOMERS);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(customer: string, code: string, keyId: string | undefined): void {
    const nowMs = this.#clock.nowMs();
    let codes = this.#byCustomer.get(customer);
    if (codes === undefined) {
      codes = new Map();
      this.#byCustomer.set(customer, codes);
    }
    const noted = codes.get(code);
    const isKnown = noted !== undefined && nowMs - noted.lastAtMs < FORGET_MS;
    const { count, firstAtMs } = isKnown ? noted : { count: 0, firstAtMs: nowMs };
    codes.set(code, { customer, code, count: count + 1, firstAtMs, lastAtMs: nowMs, keyId });
  }

  /** Returns the refusals of one customer, or if undefined of all, the latest first; at most `LISTED` of them. */
  of(customer: string | undefined): readonly RecentRefusal[] {
    const nowMs = this.#clock.nowMs();
    const customers = customer === undefined ? [...this.#byCustomer.values()] : [this.#byCustomer.get(customer)];
    return customers
      .flatMap((codes) => [...(codes?.values() ?? [])])
      .filter(({ lastAtMs }) => nowMs - lastAtMs < FORGET_MS)
      .toSorted((a, b) => b.lastAtMs - a.lastAtMs)
      .slice(0, LISTED);
  }
}
