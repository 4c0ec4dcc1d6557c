import type { Scheduled } from '../../base/clock.ts';
import { LruEntry } from '../../base/lru-map.ts';
import type { NonEmpty } from '../../base/non-empty.ts';
import { AHEAD_DIVISOR, LONG_AHEAD_DIVISOR } from '../../store/window-arithmetic.ts';
import {
  isPeriod,
  isSameCounter,
  type Limit,
  type LimitCount,
  refusesBeyond,
  type WindowRoot,
} from '../../store/windows.ts';
import type { Admission, QuotaSettings, Violation } from './hourly-quota.ts';
import {
  type CustomerLeases,
  type LastReply,
  type Lease,
  type LeaseLength,
  LONG_LEASE,
  SHORT_LEASE,
} from './leases.ts';
import type { Instant } from './open-grant.ts';

/** The next lease is requested this long before the current one ends or runs out of units. */
const REFILL_MS = 50;
/** A short lease gets units for this long. Less than the lease lasts, because refunding unused units costs a call. */
const AHEAD_MS = 900;
/** Customers with a lower rate get long leases, and a lease only when a request needs it. */
const BUSY_PER_MS = 10 / 1000;
/** A lease for a single expected request costs about as many refunds as it saves reservations. */
const MIN_LONG_LEASE_REQUESTS = 2;

export function areSameSettings(a: QuotaSettings, b: QuotaSettings): boolean {
  return a.usageResetAt === b.usageResetAt && a.periodResetAt === b.periodResetAt && areSameLimits(a.limits, b.limits);
}

export function areSameLimits(a: readonly Limit[], b: readonly Limit[]): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (!areSame(a[index], b[index])) return false;
  return true;
}

function areSame(a: Limit | undefined, b: Limit | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (a.amount !== b.amount || !isSameCounter(a, b)) return false;
  return !isPeriod(a) || !isPeriod(b) || (a.beyond === b.beyond && a.plan === b.plan);
}

/** Returns how many units a request can take from all limits. */
export function leastFree(counts: readonly LimitCount[]): number {
  let least = Number.POSITIVE_INFINITY;
  for (const count of counts) if (refusesBeyond(count)) least = Math.min(least, count.free);
  return least;
}

/** A request that waits for a store reply. */
export interface Waiter {
  readonly units: number;
  /** Monotonic ms at which the request arrived. */
  readonly since: number;
  /** Monotonic ms at which the request stops waiting. */
  until: number;
  resolve(admission: Admission): void;
  reject(error: unknown): void;
}

/** A reservation that was sent to the store and has no reply yet. */
export interface Call {
  /** The id of its grant. */
  readonly id: string;
  /** In units: the most that it may be granted. */
  readonly asked: number;
  /** Read before the reservation was sent. */
  readonly sentAt: Instant;
  readonly length: LeaseLength;
  /** In units, as {@link heaviest}: those of the heaviest request that waits. */
  readonly need: number;
  readonly heaviest: number;
  readonly settings: QuotaSettings;
  /** Resolves once the reply or failure was handled. */
  settled: Promise<void> | undefined;
  /** Fires at the next deadline of the call or of a waiting request. */
  timer: Scheduled | undefined;
  /** The call timed out. Until it settles, the store counts as unavailable; a late grant is refunded whole. */
  overdue: boolean;
}

/**
 * A refusal by the store of requests of this many units, remembered because asking again before `until` would not help.
 * Lighter ones may pass, and heavier ones have to wait longer: the store is asked for them. Times: monotonic ms.
 */
export interface RememberedRefusal {
  readonly units: number;
  readonly violated: NonEmpty<Violation>;
  readonly until: number;
  /** When each of these limits has the units again, in their order. */
  readonly moreAt: readonly number[];
}

/** Shared by customers that have none: with many customers, each object is a cache miss. */
const NO_REFUSALS: readonly RememberedRefusal[] = [];
const NO_KEYS: readonly CustomerState[] = [];

/** Of one request in the mean of units, as a power of two: 1/16. */
const WEIGHT_SHIFT = 4;
/** Of the mean of one unit: it is kept as an integer. */
const MEAN_OF_ONE = 256;

/**
 * Measures how often something happens: an average over one to two slots of time, from two counters. All members are
 * small integers, which V8 keeps in the object itself: with many customers, each further object is a cache miss.
 */
class RateMeter {
  readonly #slotMs: number;
  /** Number of the current slot, since the clock's origin. */
  #slot = -2;
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
    const shareOfPrevious = 1 - (nowMs / this.#slotMs - this.#slot);
    return (this.#previous * shareOfPrevious + this.#current) / this.#slotMs;
  }

  #turnTo(nowMs: number): void {
    const slot = Math.floor(nowMs / this.#slotMs);
    if (slot === this.#slot) return;
    this.#previous = slot === this.#slot + 1 ? this.#current : 0;
    this.#current = 0;
    this.#slot = slot;
  }
}

/** All quota state that one instance keeps in memory for a customer, or for one of its keys that has a limit. */
export class CustomerState extends LruEntry<string> {
  /** That of the customer; undefined if this one is. It knows the last reply about the customer. */
  readonly main: CustomerState | undefined;
  /** Of the customer's keys that have a limit. */
  #keys = NO_KEYS;
  /** Follows bursts; see `#meanRate` for customers with few requests. */
  readonly #rate = new RateMeter(2000);
  /** Sees rates well below one request a second. */
  readonly #meanRate = new RateMeter(10_000);
  settings: QuotaSettings;
  readonly leases: CustomerLeases;
  readonly waiters: Waiter[] = [];
  call: Call | undefined;
  lastReply: LastReply | undefined;
  /** Of different units. */
  refusals = NO_REFUSALS;
  /** Of recent requests, times {@link MEAN_OF_ONE}: a small integer, like the members of a {@link RateMeter}. */
  #meanUnits = MEAN_OF_ONE;
  /** Request the next lease when at most `#refillAtUnits` units are left, or from `#refillAfter` (monotonic ms) on. */
  #refillAtUnits = -1;
  #refillAfter = Number.POSITIVE_INFINITY;

  /** `main`: the state of the customer, if this one is that of a key. */
  constructor(id: string, settings: QuotaSettings, leases: CustomerLeases, main?: CustomerState) {
    super(id);
    this.settings = settings;
    this.leases = leases;
    this.main = main;
    if (main) main.#keys = [...main.#keys, this];
  }

  get customer(): string {
    return this.main?.key ?? this.key;
  }

  /** The states of the customer: its own, then those of its keys. */
  get ofCustomer(): readonly CustomerState[] {
    const main = this.main ?? this;
    return [main, ...main.#keys];
  }

  /** Returns the units that the store counts in a window of the customer, and no request uses. */
  unusedUnits(root?: WindowRoot): number {
    let units = 0;
    for (const { leases } of this.#countedIn(root)) units += leases.unusedUnits;
    return units;
  }

  /** Returns the units that requests have taken from a window of the customer. */
  admitted(root?: WindowRoot): number {
    let units = 0;
    for (const { leases } of this.#countedIn(root)) units += leases.admitted;
    return units;
  }

  #countedIn(root: WindowRoot): readonly CustomerState[] {
    const states = this.ofCustomer;
    return root === undefined ? states : states.filter(({ settings }) => settings.ceiling?.limit.root === root);
  }

  get freeAtLastReply(): number {
    return this.lastReply === undefined ? 0 : leastFree(this.lastReply.counts);
  }

  noteRequest(units: number, { monotonicMs }: Instant): void {
    this.#rate.note(monotonicMs);
    this.#meanRate.note(monotonicMs);
    const above = units * MEAN_OF_ONE - this.#meanUnits;
    // Rounded away from 0, so that equal requests lead to their own number.
    this.#meanUnits += (above > 0 ? above + (1 << WEIGHT_SHIFT) - 1 : above) >> WEIGHT_SHIFT;
  }

  /** Returns the refusal that asking again for so many units would not change; undefined if there is none. */
  refusalOf(units: number, { monotonicMs }: Instant): RememberedRefusal | undefined {
    for (const refusal of this.refusals) {
      if (refusal.units === units && monotonicMs < refusal.until) return refusal;
    }
    return undefined;
  }

  /** Remembers a refusal, and forgets those of as many units and those that have ended. */
  remember(refusal: RememberedRefusal, { monotonicMs }: Instant): void {
    const others = this.refusals.filter(({ units, until }) => units !== refusal.units && monotonicMs < until);
    this.refusals = [...others, refusal];
  }

  /** Returns the units that so many requests probably take, without the last one if it is a part. */
  #unitsOf(requests: number): number {
    return Math.floor((Math.floor(requests) * this.#meanUnits) / MEAN_OF_ONE);
  }

  /**
   * Returns how long the next lease lasts, and how many units it should have beyond `need`. Long leases let a customer
   * with few requests use one reservation for several, far from its limit. Near it, for busy customers, and while nothing
   * is known of a customer's rate, leases are short.
   */
  nextLease(need: number, { monotonicMs }: Instant): { readonly length: LeaseLength; readonly ahead: number } {
    const perMs = this.#rate.perMs(monotonicMs);
    if (perMs < BUSY_PER_MS && this.#meanRate.hasHistory(monotonicMs)) {
      const meanPerMs = Math.min(BUSY_PER_MS, this.#meanRate.perMs(monotonicMs));
      const expected = this.#unitsOf(meanPerMs * LONG_LEASE.usableLeaseMs);
      const ahead = Math.min(expected, Math.floor(this.freeAtLastReply / LONG_AHEAD_DIVISOR) - need);
      if (ahead >= this.#unitsOf(MIN_LONG_LEASE_REQUESTS)) return { length: LONG_LEASE, ahead };
    }
    return { length: SHORT_LEASE, ahead: Math.max(0, this.#unitsOf(perMs * AHEAD_MS) - need) };
  }

  /** Plans when to request the next lease. Near the limit it is not planned: there the store decides every request. */
  planRefill(lease: Lease, { monotonicMs }: Instant): void {
    const perMs = this.#rate.perMs(monotonicMs);
    const neededWhileAsking = (perMs * REFILL_MS * this.#meanUnits) / MEAN_OF_ONE;
    const isWorthIt = perMs >= BUSY_PER_MS && leastFree(lease.grant.counts) / AHEAD_DIVISOR > neededWhileAsking;
    this.#refillAtUnits = isWorthIt ? neededWhileAsking : -1;
    this.#refillAfter = isWorthIt ? lease.endsAt - REFILL_MS : Number.POSITIVE_INFINITY;
  }

  cancelRefill(): void {
    this.#refillAtUnits = -1;
    this.#refillAfter = Number.POSITIVE_INFINITY;
  }

  isRefillDue(unitsLeft: number, { monotonicMs }: Instant): boolean {
    return unitsLeft <= this.#refillAtUnits || monotonicMs >= this.#refillAfter;
  }

  /** Evicting the state loses no unit if no waiting request, call or unused unit is left. */
  override get mayBeEvicted(): boolean {
    const isIdle = this.waiters.length === 0 && this.call === undefined && this.leases.unusedUnits === 0;
    return isIdle && this.#keys.length === 0;
  }

  override evicted(): void {
    if (this.main === undefined) return;
    this.main.leases.admitted += this.leases.admitted;
    this.main.#keys = this.main.#keys.filter((state) => state !== this);
  }
}
