/**
 * Limits each customer's requests within any second, per instance: N instances admit up to N times the limit. Counts
 * stay local, because the second is over before instances could share them through the store.
 *
 * Requests are counted in slots of 100 ms. A slot is dropped one second after its end, so no second exceeds the limit.
 */
import { type Clock, secondsUntil } from '../../base/clock.ts';
import { LruMap } from '../../base/lru-map.ts';

const SECOND_MS = 1000;
const SLOT_MS = 100;
/** A second that starts within a slot overlaps eleven slots of 100 ms. */
const SLOTS = SECOND_MS / SLOT_MS + 1;

interface Ring {
  /** Requests by slot number modulo SLOTS. */
  readonly counts: Uint32Array;
  total: number;
  newestSlot: number;
}

/** A counted request: where it is counted. */
export interface BurstTaken {
  readonly allowed: true;
  readonly remaining: number;
  readonly ring: Ring;
  readonly slot: number;
}

type BurstDecision =
  | BurstTaken
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
    return { allowed: true, remaining: limit - ring.total, ring, slot };
  }

  /** Removes a request that was counted, but not admitted, from its own slot, unless that was dropped. */
  uncount({ ring, slot }: BurstTaken): void {
    if (slot <= ring.newestSlot - SLOTS) return;
    ring.counts[slot % SLOTS] = (ring.counts[slot % SLOTS] ?? 0) - 1;
    ring.total--;
  }

  /** Returns the customer's ring, advanced to `slot`: expired slots are dropped. */
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

/** Returns the monotonic time in ms at which enough slots have been dropped to allow another request. */
function whenBelow(ring: Ring, limit: number): number {
  let total = ring.total;
  for (let slot = ring.newestSlot - SLOTS + 1; slot <= ring.newestSlot; slot++) {
    total -= ring.counts[slot % SLOTS] ?? 0;
    if (total < limit) return (slot + 1) * SLOT_MS + SECOND_MS;
  }
  return (ring.newestSlot + 1) * SLOT_MS + SECOND_MS;
}
