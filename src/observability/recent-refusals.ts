import type { Clock } from '../base/clock.ts';
import { LruMap } from '../base/lru-map.ts';

/** A customer's refusals for one reason, on this instance. Times: wall time in ms. */
export interface RecentRefusal {
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
/** An entry without a refusal for this long is no longer returned, and the next refusal starts a new one. */
const FORGET_MS = 3_600_000;

/** Recent refusals by customer and code, on this instance. An entry ends after an hour without a further refusal. */
export class RecentRefusals {
  readonly #clock: Clock;
  readonly #byCustomer = new LruMap<
    string,
    Map<string, { -readonly [member in keyof RecentRefusal]: RecentRefusal[member] }>
  >(CUSTOMERS);

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
    if (noted === undefined || nowMs - noted.lastAtMs >= FORGET_MS) {
      codes.set(code, { code, count: 1, firstAtMs: nowMs, lastAtMs: nowMs, keyId });
      return;
    }
    noted.count++;
    noted.lastAtMs = nowMs;
    noted.keyId = keyId;
  }

  /** Returns the customer's refusals, the latest first. */
  of(customer: string): readonly RecentRefusal[] {
    const nowMs = this.#clock.nowMs();
    const noted = [...(this.#byCustomer.get(customer)?.values() ?? [])];
    return noted
      .filter(({ lastAtMs }) => nowMs - lastAtMs < FORGET_MS)
      .map((each) => ({ ...each }))
      .toSorted((a, b) => b.lastAtMs - a.lastAtMs);
  }
}
