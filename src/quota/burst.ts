/**
 * Requests of a customer within any second, on this instance: several instances let through as many times more. The
 * store is not asked, since a second is over before its answer could be shared.
 *
 * Slots of 100 ms, each dropped a second after its end, so that no second sees more than the limit.
 */
import type { Clock } from '../clock.ts';
import { LruMap } from '../lru-map.ts';
import { secondsUntil } from './admission.ts';

const SECOND_MS = 1000;
const SLOT_MS = 100;
/** Those of a second, and the one that began before it and ended within it. */
const SLOTS = SECOND_MS / SLOT_MS + 1;

interface Ring {
  /** Requests by slot number modulo SLOTS. */
  readonly counts: Uint32Array;
  total: number;
  newestSlot: number;
}

export type BurstDecision =
  | { readonly allowed: true; readonly remaining: number }
  | { readonly allowed: false /** Whole seconds until one more is allowed. */; readonly resetSeconds: number };

export class BurstLimiter {
  readonly #clock: Clock;
  readonly #rings: LruMap<string, Ring>;

  constructor(clock: Clock, customers: number) {
    this.#clock = clock;
    this.#rings = new LruMap(customers);
  }

  /** Counts one request if `limit` allows it. */
  take(customer: string, limit: number): BurstDecision {
    const nowMs = this.#clock.monotonicMs();
    const slot = Math.floor(nowMs / SLOT_MS);
    const ring = this.#ringOf(customer, slot);
    if (ring.total >= limit) {
      return { allowed: false, resetSeconds: secondsUntil(whenBelow(ring, limit), nowMs) };
    }
    ring.counts[slot % SLOTS] = (ring.counts[slot % SLOTS] ?? 0) + 1;
    ring.total++;
    return { allowed: true, remaining: limit - ring.total };
  }

  /** Takes the newest request back, which went no further. */
  untake(customer: string): void {
    const ring = this.#rings.get(customer);
    const at = ring && ring.newestSlot % SLOTS;
    if (ring === undefined || at === undefined || (ring.counts[at] ?? 0) === 0) return;
    ring.counts[at] = (ring.counts[at] ?? 0) - 1;
    ring.total--;
  }

  /** The customer's ring, turned to `slot`. */
  #ringOf(customer: string, slot: number): Ring {
    const ring = this.#rings.get(customer);
    if (ring === undefined) {
      const fresh = { counts: new Uint32Array(SLOTS), total: 0, newestSlot: slot };
      this.#rings.set(customer, fresh);
      return fresh;
    }
    const steps = Math.min(slot - ring.newestSlot, SLOTS);
    for (let step = 1; step <= steps; step++) {
      const at = (ring.newestSlot + step) % SLOTS;
      ring.total -= ring.counts[at] ?? 0;
      ring.counts[at] = 0;
    }
    ring.newestSlot = slot;
    return ring;
  }
}

/** Monotonic ms at which enough slots have been dropped. */
function whenBelow(ring: Ring, limit: number): number {
  let total = ring.total;
  for (let slot = ring.newestSlot - SLOTS + 1; slot <= ring.newestSlot; slot++) {
    total -= ring.counts[slot % SLOTS] ?? 0;
    if (total < limit) return (slot + 1) * SLOT_MS + SECOND_MS;
  }
  return (ring.newestSlot + 1) * SLOT_MS + SECOND_MS;
}
