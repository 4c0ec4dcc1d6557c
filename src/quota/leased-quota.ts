/**
 * Decides whether a customer's next request fits its hourly limit, mostly without a store call.
 *
 * The store grants units in leases. A reservation asks for the units that waiting requests need, and ahead of need for
 * those that the customer will probably use during the lease. Until the lease ends, requests are admitted from memory.
 * Each customer has at most one reservation in flight. Requests that arrive meanwhile wait for the next one, so a burst
 * of a thousand requests costs two calls.
 *
 * Why no more requests than the limit reach the upstream: a unit is counted at the last instant at which its request
 * may begin there. That is LEASE_MS (to be admitted) plus DISPATCH_MS (to begin) after the reservation. A request that
 * has not begun by then must not begin. A unit belongs to its lease and never moves to a newer one. Unused units are
 * refunded once, to the bucket in which they were counted, on the connection that granted them.
 *
 * A usage reset or a lower limit ends open leases at once. Units of an ended lease are never handed out again, even if
 * a request returns its unit later.
 *
 * Refusals are remembered for as long as asking again cannot help, so a flood of refused requests costs few calls.
 *
 * The store counts as unavailable while its connection is down, or while a reservation has been in flight for more than
 * `timeoutMs`. Then no request waits for it, and `withoutStore` decides. A late grant is refunded whole.
 */
import { CLOCK_DRIFT, type Clock, type Scheduler, secondsUntil } from '../base/clock.ts';
import { LruMap } from '../base/lru-map.ts';
import { type Grant, type Refund, StoreUnavailableError, type WindowStore } from '../store/store.ts';
import { type Call, CustomerState, type RememberedRefusal, type Waiter } from './customer-state.ts';
import { type CustomerUsage, highestUsage } from './highest-usage.ts';
import {
  type Admission,
  areSameSettings,
  type HourlyQuota,
  type LeaseState,
  moreAt,
  type QuotaMode,
  type QuotaSettings,
  type Usage,
} from './hourly-quota.ts';
import { HOLD_MS, type Instant, Lease } from './lease.ts';
import type { QuotaWithoutStore } from './without-store.ts';

/** How long unused units wait for others, to be refunded in one call. */
const REFUND_DELAY_MS = 250;
/** Unused units are refunded at most this long after the last hold; a remembered refusal may then be wrong. */
const REFUND_GRACE_MS = 2 * REFUND_DELAY_MS;
const MAX_REFUSAL_MS = 30_000;
/** The next lease is requested this long before the current one ends or runs out of units. */
const REFILL_MS = 50;
/** A lease gets units for this long. Shorter than the lease itself, because refunding unused units costs a call. */
const AHEAD_MS = 900;
/** Customers with a lower rate get a lease only when a request needs it. */
const REFILL_FROM_PER_SECOND = 10;
/** Ahead of need, the store grants at most this fraction (1/8) of the free units. */
const AHEAD_DIVISOR = 8;
const WINDOW_SECONDS = 3600;

export interface LeasedQuotaOptions {
  readonly windows: WindowStore;
  /** Returns whether calls about this customer's window are worth making now. Must be cheap. */
  readonly storeIsUp: (customer: string) => boolean;
  readonly withoutStore: QuotaWithoutStore;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** How long a request waits for the store. */
  readonly timeoutMs: number;
  /** Maximum number of customers in memory. Above it, the least recently used idle customers are evicted. */
  readonly customers: number;
}

export class LeasedQuota implements HourlyQuota {
  readonly #options: LeasedQuotaOptions;
  readonly #customers: LruMap<string, CustomerState>;
  #overdueCalls = 0;

  constructor(options: LeasedQuotaOptions) {
    this.#options = options;
    this.#customers = new LruMap(options.customers, (state) => state.isIdle);
  }

  admit(customer: string, settings: QuotaSettings): Admission | Promise<Admission> {
    const state = this.#stateOf(customer, settings);
    const now = this.#now();
    state.rate.note(now.monotonicMs);
    const fromLease = this.#admitFromLease(state, now, 'lease');
    if (fromLease) return fromLease;
    if (state.refusal && now.monotonicMs < state.refusal.until) return this.#refused(state.refusal, 'lease');
    if (!this.#storeAnswers(customer)) return this.#options.withoutStore.admit(state);
    return new Promise((resolve, reject) => {
      const since = now.monotonicMs;
      state.waiters.push({ since, until: since + this.#options.timeoutMs, resolve, reject });
      this.#reserve(state);
    });
  }

  async usage(customer: string, limit: number): Promise<Usage> {
    if (!this.#storeAnswers(customer)) throw new StoreUnavailableError('the store is away');
    const refunds = this.#customers.get(customer)?.takeRefunds() ?? [];
    const request = { customer, need: 0, ahead: 0, limit, holdMs: HOLD_MS, refunds };
    const reading = this.#options.windows.reserve(request);
    const grant = await this.#withinTimeout(reading, () => this.#noteOverdue(reading));
    const now = this.#options.clock.monotonicMs();
    // Read after the reply, to include units of leases that ended during the call.
    const inHand = this.#customers.get(customer)?.unitsInHand ?? 0;
    const used = Math.max(0, grant.used - inHand);
    return {
      limit,
      used,
      remaining: Math.max(0, limit - used),
      resetSeconds: used > 0 ? secondsUntil(moreAt(grant, now), now) : 0,
      windowSeconds: WINDOW_SECONDS,
    };
  }

  admitted(customer: string): number {
    return this.#customers.get(customer)?.admitted ?? 0;
  }

  leaseState(customer: string): LeaseState {
    const state = this.#customers.get(customer);
    const nowMs = this.#options.clock.monotonicMs();
    const leases = state?.leases.map(({ units, endsAt }) => ({ units, endsInMs: Math.max(0, endsAt - nowMs) }));
    const until = state?.refusal?.until ?? nowMs;
    return { leases: leases ?? [], refusedForMs: until > nowMs ? until - nowMs : undefined };
  }

  highestUsage(count: number): readonly CustomerUsage[] {
    return highestUsage(this.#customers.values(), count, this.#options.clock.monotonicMs());
  }

  async close(): Promise<void> {
    const calls = [...this.#customers.values()].map(({ call }) => call?.answered);
    await this.#withinTimeout(Promise.all(calls)).catch(() => undefined);
    const sent: Promise<unknown>[] = [];
    for (const state of this.#customers.values()) {
      for (const lease of [...state.leases]) this.#endLease(state, lease);
      const refunds = state.takeRefunds();
      if (refunds.length > 0) sent.push(this.#refund(state.customer, refunds));
    }
    await this.#withinTimeout(Promise.all(sent)).catch(() => undefined);
  }

  /** Returns the customer's state, updated to these settings. */
  #stateOf(customer: string, settings: QuotaSettings): CustomerState {
    const state = this.#customers.get(customer);
    if (state === undefined) return this.#openState(customer, settings);
    const before = state.settings;
    if (areSameSettings(before, settings)) return state;
    state.settings = settings;
    state.refusal = undefined;
    // After a reset the new window does not count the units of open leases; their refunds name the old epoch and change
    // nothing. After a lower limit all unused units are refunded, and the store decides the next request.
    if (endsLeases(before, settings)) for (const lease of [...state.leases]) this.#endLease(state, lease);
    if (before.usageResetAt === settings.usageResetAt && state.lastReply) {
      state.lastReply.free = Math.max(0, state.lastReply.free + settings.limit - before.limit);
    }
    return state;
  }

  #openState(customer: string, settings: QuotaSettings): CustomerState {
    const state = new CustomerState(customer, settings);
    this.#customers.set(customer, state);
    return state;
  }

  #now(): Instant {
    const { clock } = this.#options;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() };
  }

  #storeAnswers(customer: string): boolean {
    return this.#overdueCalls === 0 && this.#options.storeIsUp(customer);
  }

  /** Checks for a unit and takes it in one turn of the event loop, so that no other request can take it in between. */
  #admitFromLease(state: CustomerState, now: Instant, mode: QuotaMode): Admission | undefined {
    for (;;) {
      const lease = state.leases[0];
      if (lease === undefined) return undefined;
      if (!lease.runsAt(now)) {
        this.#endLease(state, lease);
        continue;
      }
      lease.units--;
      const unitsLeft = state.unitsInLeases;
      if (lease.units === 0) this.#dropLease(state, lease);
      // Not while waiting requests are being admitted: the reservation would ask for their units again.
      const isDue = unitsLeft <= state.refillAtUnits || now.monotonicMs >= state.refillAfter;
      if (mode === 'lease' && isDue) this.#refill(state);
      return this.#admitted(state, lease, unitsLeft, mode);
    }
  }

  #admitted(state: CustomerState, lease: Lease, unitsLeft: number, mode: QuotaMode): Admission {
    const { clock } = this.#options;
    const { lastReply: reply, settings } = state;
    state.admitted++;
    return {
      outcome: 'admitted',
      mode,
      remaining: (reply?.free ?? 0) + unitsLeft,
      beginDeadlineMs: lease.beginDeadlineMs,
      beginDeadlineWallMs: lease.beginDeadlineWallMs,
      refund: () => this.#returnUnit(state, lease, settings),
      resetSeconds: () => secondsUntil(reply?.moreAt ?? 0, clock.monotonicMs()),
    };
  }

  #refused(refusal: RememberedRefusal, mode: QuotaMode): Admission {
    const { clock } = this.#options;
    return { outcome: 'refused', mode, resetSeconds: () => secondsUntil(refusal.moreAt, clock.monotonicMs()) };
  }

  #reserve(state: CustomerState): void {
    if (state.call) return;
    const asked = this.#now();
    const need = state.waiters.length;
    const expected = Math.floor((state.rate.perSecond(asked.monotonicMs) * AHEAD_MS) / 1000);
    const call: Call = {
      asked,
      need,
      settings: state.settings,
      answered: undefined,
      timer: undefined,
      overdue: false,
    };
    state.call = call;
    this.#watch(state, call);
    call.answered = this.#options.windows
      .reserve({
        customer: state.customer,
        need,
        ahead: Math.max(0, expected - need),
        limit: state.settings.limit,
        holdMs: HOLD_MS,
        refunds: state.takeRefunds(),
      })
      .then(
        (grant) => this.#received(state, call, grant),
        () => this.#failed(state, call),
      );
  }

  #refill(state: CustomerState): void {
    state.refillAtUnits = -1;
    state.refillAfter = Number.POSITIVE_INFINITY;
    if (this.#storeAnswers(state.customer)) this.#reserve(state);
  }

  #received(state: CustomerState, call: Call, grant: Grant): void {
    this.#endCall(state, call);
    if (!call.overdue) this.#forgiveStandstill(state, call);
    if (call.overdue || endsLeases(call.settings, state.settings)) {
      this.#refundLater(state, grant, grant.granted);
    } else {
      this.#use(state, call, grant);
    }
    if (state.waiters.length > 0) this.#reserve(state);
  }

  #use(state: CustomerState, call: Call, grant: Grant): void {
    const now = this.#now();
    const { monotonicMs: receivedAt } = now;
    state.lastReply = { free: grant.free, used: grant.used, receivedAt, moreAt: moreAt(grant, receivedAt) };
    const lease = new Lease(grant, call.asked);
    if (!lease.runsAt(now)) {
      this.#refundLater(state, grant, grant.granted);
      return;
    }
    this.#openLease(state, lease);
    this.#planRefill(state, lease, now);
    this.#serve(state, now);
    if (grant.granted >= call.need) return;

    // No units are left, neither for waiting requests nor for those that arrive while the refusal is remembered.
    if (call.settings.limit !== state.settings.limit) return;
    const refusal = rememberRefusal(call, grant, receivedAt);
    state.refusal = refusal;
    // This reply does not refuse requests that arrived during the call, but after `refusal.until`.
    const { monotonicMs: askedAt } = call.asked;
    const undecided = state.waiters.findIndex(({ since }) => since > askedAt && since >= refusal.until);
    const refused = state.waiters.splice(0, undecided < 0 ? state.waiters.length : undecided);
    for (const waiter of refused) waiter.resolve(this.#refused(refusal, 'store'));
  }

  /**
   * A reply that is read after the call's timeout, but before the call is marked overdue, arrived in time: the process
   * was blocked. Waiting requests that need another call get a full timeout for it.
   */
  #forgiveStandstill(state: CustomerState, { asked }: Call): void {
    const { clock, timeoutMs } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs < asked.monotonicMs + timeoutMs) return;
    for (const waiter of state.waiters) waiter.until = nowMs + timeoutMs;
  }

  #serve(state: CustomerState, now: Instant): void {
    while (state.waiters.length > 0) {
      const admission = this.#admitFromLease(state, now, 'store');
      if (admission === undefined) return;
      state.waiters.shift()?.resolve(admission);
    }
  }

  /** Plans when to request the next lease. Near the limit it is not planned: there the store decides every request. */
  #planRefill(state: CustomerState, lease: Lease, { monotonicMs }: Instant): void {
    const perSecond = state.rate.perSecond(monotonicMs);
    const neededWhileAsking = (perSecond * REFILL_MS) / 1000;
    const worthIt = perSecond >= REFILL_FROM_PER_SECOND && lease.grant.free / AHEAD_DIVISOR > neededWhileAsking;
    state.refillAtUnits = worthIt ? neededWhileAsking : -1;
    state.refillAfter = worthIt ? lease.endsAt - REFILL_MS : Number.POSITIVE_INFINITY;
  }

  #failed(state: CustomerState, call: Call): void {
    this.#endCall(state, call);
    this.#settleWithoutStore(state, state.waiters.splice(0));
  }

  /** Times out the call and waiting requests. These are in order of arrival, so the first has the earliest deadline. */
  #watch(state: CustomerState, call: Call): void {
    const { clock, scheduler, timeoutMs } = this.#options;
    const callUntil = call.asked.monotonicMs + timeoutMs;
    const until = Math.min(callUntil, state.waiters[0]?.until ?? callUntil);
    call.timer = scheduler.deadline(until - clock.monotonicMs(), () => {
      const nowMs = clock.monotonicMs();
      if (nowMs >= callUntil) {
        call.overdue = true;
        this.#overdueCalls++;
        this.#settleWithoutStore(state, state.waiters.splice(0));
        return;
      }
      const stillWaiting = state.waiters.findIndex((waiter) => waiter.until > nowMs);
      const late = state.waiters.splice(0, stillWaiting < 0 ? state.waiters.length : stillWaiting);
      this.#settleWithoutStore(state, late);
      this.#watch(state, call);
    });
  }

  #settleWithoutStore(state: CustomerState, waiters: readonly Waiter[]): void {
    for (const waiter of waiters) {
      try {
        waiter.resolve(this.#options.withoutStore.admit(state));
      } catch (error) {
        waiter.reject(error);
      }
    }
  }

  /** Treats the store as unavailable until the call settles. */
  #noteOverdue(call: Promise<unknown>): void {
    this.#overdueCalls++;
    const settled = () => {
      this.#overdueCalls--;
    };
    call.then(settled, settled);
  }

  #endCall(state: CustomerState, call: Call): void {
    call.timer?.cancel();
    if (call.overdue) this.#overdueCalls--;
    state.call = undefined;
  }

  #openLease(state: CustomerState, lease: Lease): void {
    if (lease.units === 0) return;
    state.leases.push(lease);
    const delayMs = lease.endsAt - this.#options.clock.monotonicMs();
    lease.timer = this.#options.scheduler.after(delayMs, () => this.#endLease(state, lease));
  }

  #dropLease(state: CustomerState, lease: Lease): void {
    lease.timer?.cancel();
    const at = state.leases.indexOf(lease);
    if (at >= 0) state.leases.splice(at, 1);
  }

  #endLease(state: CustomerState, lease: Lease): void {
    this.#dropLease(state, lease);
    const { units } = lease;
    lease.units = 0;
    this.#refundLater(state, lease.grant, units);
  }

  /** Gives back the unit of a request that did not begin upstream: to its lease if that is open, else to the store. */
  #returnUnit(state: CustomerState, lease: Lease, settings: QuotaSettings): void {
    state.admitted--;
    if (!lease.runsAt(this.#now()) || endsLeases(settings, state.settings)) {
      this.#refundLater(state, lease.grant, 1);
      return;
    }
    lease.units++;
    if (lease.units === 1) this.#openLease(state, lease);
  }

  #refundLater(state: CustomerState, grant: Grant, units: number): void {
    if (units === 0) return;
    state.addRefund(grant, units);
    state.refundTimer ??= this.#options.scheduler.after(REFUND_DELAY_MS, () => {
      void this.#refund(state.customer, state.takeRefunds());
    });
  }

  /** Sends a refund once. It is not repeated if its outcome is unknown: running twice, it would admit too many. */
  async #refund(customer: string, refunds: readonly Refund[]): Promise<void> {
    await this.#options.windows.refund(customer, refunds).catch(() => undefined);
  }

  #withinTimeout<T>(call: Promise<T>, onOverdue = () => {}): Promise<T> {
    const { scheduler, timeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const timer = scheduler.deadline(timeoutMs, () => {
        onOverdue();
        reject(new StoreUnavailableError(`no reply from the store within ${timeoutMs} ms`));
      });
      call.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}

/** Returns whether a change of settings ends the leases granted before it. */
function endsLeases(before: QuotaSettings, now: QuotaSettings): boolean {
  return before.usageResetAt !== now.usageResetAt || before.limit > now.limit;
}

/**
 * Returns a refusal that lasts until asking again may help: units expire from the window, or are refunded from a lease
 * that any instance still holds.
 *
 * `until` is never later than by the store's clock: it counts from when the store was asked, and allows for a slow
 * local clock. The wait reported to clients (`moreAt`) is never shorter than by the store's clock: it counts from
 * `receivedAt` (monotonic ms). So a client that waits for as long as one instance told it is not refused by an older
 * refusal that another remembers.
 */
function rememberRefusal({ asked }: Call, grant: Grant, receivedAt: number): RememberedRefusal {
  const openHoldMs = grant.holdEndMs - grant.storeTimeMs;
  const refundsEndMs = openHoldMs + REFUND_GRACE_MS;
  const unitsMayReturnMs = refundsEndMs > 0 ? refundsEndMs : Number.POSITIVE_INFINITY;
  const until = asked.monotonicMs + Math.min(grant.waitMs, unitsMayReturnMs, MAX_REFUSAL_MS) / CLOCK_DRIFT;
  return { until, moreAt: moreAt(grant, receivedAt) };
}
