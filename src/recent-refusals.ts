import type { Clock } from './clock.ts';
import { LruMap } from './lru-map.ts';

/** What this instance refused a customer for the same reason. Times: wall time in ms. */
export interface RecentRefusal {
  /** Of docs/errors.md. */
  readonly code: string;
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  /** Of the last one. */
  readonly keyId: string | undefined;
}

/** Customers in memory; each has an entry for each code at most. */
const CUSTOMERS = 10_000;
/** A reason that did not come up for so long begins anew, and is told no more. */
const FORGET_MS = 3_600_000;

/** The refusals of the last hour by customer and reason, on this instance; of those that were refused last. */
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

  /** The last ones first. */
  of(customer: string): readonly RecentRefusal[] {
    const nowMs = this.#clock.nowMs();
    const noted = [...(this.#byCustomer.get(customer)?.values() ?? [])];
    return noted
      .filter(({ lastAtMs }) => nowMs - lastAtMs < FORGET_MS)
      .map((each) => ({ ...each }))
      .toSorted((a, b) => b.lastAtMs - a.lastAtMs);
  }
}
