/**
 * Decides whether one more request of a customer fits into its hour, mostly without asking the store.
 *
 * The store grants units in leases. A reservation asks for what waits now, and for as much ahead as the customer is
 * likely to need while the lease runs; until it ends, requests are admitted from memory. There is one reservation under
 * way per customer: what arrives meanwhile waits for the next, so a burst of a thousand costs two.
 *
 * Why no more than the limit reaches the backend: the store counts a unit at the last instant at which its request may
 * begin (LEASE_MS to be admitted, DISPATCH_MS to begin), and a request that has not begun by then must not. A unit
 * belongs to its lease. What is not used goes back to the bucket it was counted in, once, on the connection that granted
 * it, and is never moved to a newer lease.
 *
 * A usage reset or a lower limit ends the open leases at once. Units of a lease that ended are never handed out again,
 * also when the request that took one gives it back later.
 *
 * Refusals are remembered for as long as asking again cannot help, so a flood of refused requests costs nothing.
 *
 * The store is taken for absent while its connection is down, or a reservation has been waiting for more than
 * `timeoutMs`: then nobody waits for it, and `withoutStore` decides. A late grant is given back whole.
 */
import type { Clock, Scheduler } from '../clock.ts';
import { LruMap } from '../lru-map.ts';
import { type GiveBack, type Grant, StoreUnavailableError, type WindowStore } from '../store/store.ts';
import { Account, areSameTerms, type Call, type RememberedRefusal, type Terms, type Waiter } from './account.ts';
import { type Admission, CLOCK_DRIFT, moreAt, type QuotaMode, secondsUntil } from './admission.ts';
import { type CustomerUsage, highestUsage } from './highest-usage.ts';
import { HOLD_MS, type Instant, Lease } from './lease.ts';
import type { Usage } from './usage.ts';

/** Units that come back are held so long for others to join them. */
const REFUND_DELAY_MS = 250;
/** A refusal may be wrong once units of open leases have come back; so long after the last hold they have. */
const REFUND_GRACE_MS = 2 * REFUND_DELAY_MS;
const LONGEST_MEMORY_MS = 30_000;
/** The next lease is asked for so long before this one ends or runs dry. */
const REFILL_MS = 50;
/** A lease is asked for units for so long: less than it lasts, because what it does not use costs a call, too. */
const AHEAD_MS = 900;
/** Slower customers ask when they need. */
const REFILL_FROM_PER_SECOND = 10;
/** The store grants at most this share of what is free ahead of need. */
const AHEAD_DIVISOR = 8;
const WINDOW_SECONDS = 3600;

export interface HourlyQuota {
  /**
   * At once where memory knows the answer. Rejects or throws with StoreUnavailableError when the store is away and
   * nothing may be decided without it.
   */
  admit(customer: string, terms: Terms): Admission | Promise<Admission>;
  /** What enforcement would see now, without taking anything. Rejects with StoreUnavailableError. */
  usage(customer: string, limit: number): Promise<Usage>;
  /** Requests that this instance admitted since it knows the customer, for comparison with a later value. */
  admitted(customer: string): number;
  /** What this instance holds for a customer in memory. */
  held(customer: string): Held;
  /** The customers that have used most of their limits, as this instance knows it; asks nobody. */
  highestUsage(count: number): readonly CustomerUsage[];
  /** Gives back what no request will use any more; does not wait for an absent store. */
  close(): Promise<void>;
}

export interface Held {
  /** Open leases with units left to hand out. */
  readonly leases: readonly { readonly units: number; readonly endsInMs: number }[];
  /** How long requests are still refused without asking the store; undefined: they are not. */
  readonly refusedForMs: number | undefined;
}

/** Decides while the store is away. */
export interface QuotaWithoutStore {
  /** Throws StoreUnavailableError when it must not decide. */
  admit(account: Account): Admission;
}

export interface LeasedQuotaOptions {
  readonly windows: WindowStore;
  /** Whether calls about this customer's window are worth making now; cheap. */
  readonly storeIsUp: (customer: string) => boolean;
  readonly withoutStore: QuotaWithoutStore;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** How long a request waits for the store. */
  readonly timeoutMs: number;
  /** Customers held in memory; beyond it the least recently used idle ones are evicted. */
  readonly accounts: number;
}

export class LeasedQuota implements HourlyQuota {
  readonly #options: LeasedQuotaOptions;
  readonly #accounts: LruMap<string, Account>;
  #overdueCalls = 0;

  constructor(options: LeasedQuotaOptions) {
    this.#options = options;
    this.#accounts = new LruMap(options.accounts, (account) => account.isIdle);
  }

  admit(customer: string, terms: Terms): Admission | Promise<Admission> {
    const account = this.#accountOf(customer, terms);
    const now = this.#now();
    account.rate.note(now.monotonicMs);
    const fromLease = this.#admitFromLease(account, now, 'lease');
    if (fromLease) return fromLease;
    if (account.refusal && now.monotonicMs < account.refusal.until) return this.#refused(account.refusal, 'lease');
    if (!this.#storeAnswers(customer)) return this.#options.withoutStore.admit(account);
    return new Promise((resolve, reject) => {
      const since = now.monotonicMs;
      account.waiters.push({ since, until: since + this.#options.timeoutMs, resolve, reject });
      this.#reserve(account);
    });
  }

  async usage(customer: string, limit: number): Promise<Usage> {
    if (!this.#storeAnswers(customer)) throw new StoreUnavailableError('the store is away');
    const giveBacks = this.#accounts.get(customer)?.takeGiveBacks() ?? [];
    const request = { customer, need: 0, ahead: 0, limit, holdMs: HOLD_MS, giveBacks };
    const reading = this.#options.windows.reserve(request);
    const grant = await this.#withinTimeout(reading, () => this.#noteOverdue(reading));
    const now = this.#options.clock.monotonicMs();
    // Also of a lease that ended while the store was asked.
    const inHand = this.#accounts.get(customer)?.unitsInHand ?? 0;
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
    return this.#accounts.get(customer)?.admitted ?? 0;
  }

  held(customer: string): Held {
    const account = this.#accounts.get(customer);
    const nowMs = this.#options.clock.monotonicMs();
    const leases = account?.leases.map(({ units, endsAt }) => ({ units, endsInMs: Math.max(0, endsAt - nowMs) }));
    const until = account?.refusal?.until ?? nowMs;
    return { leases: leases ?? [], refusedForMs: until > nowMs ? until - nowMs : undefined };
  }

  highestUsage(count: number): readonly CustomerUsage[] {
    return highestUsage(this.#accounts.values(), count, this.#options.clock.monotonicMs());
  }

  async close(): Promise<void> {
    const calls = [...this.#accounts.values()].map(({ call }) => call?.answered);
    await this.#withinTimeout(Promise.all(calls)).catch(() => undefined);
    const refunds: Promise<unknown>[] = [];
    for (const account of this.#accounts.values()) {
      for (const lease of [...account.leases]) this.#endLease(account, lease);
      const giveBacks = account.takeGiveBacks();
      if (giveBacks.length > 0) refunds.push(this.#refund(account.customer, giveBacks));
    }
    await this.#withinTimeout(Promise.all(refunds)).catch(() => undefined);
  }

  /** What is known of the customer, under these terms. */
  #accountOf(customer: string, terms: Terms): Account {
    const account = this.#accounts.get(customer);
    if (account === undefined) return this.#openAccount(customer, terms);
    const before = account.terms;
    if (areSameTerms(before, terms)) return account;
    account.terms = terms;
    account.refusal = undefined;
    // After a reset the new window does not count the units of open leases; their refunds name the old epoch and change
    // nothing. After a lower limit all unused units are refunded, and the store decides the next request.
    if (endsLeases(before, terms)) for (const lease of [...account.leases]) this.#endLease(account, lease);
    if (before.usageResetAt === terms.usageResetAt && account.lastReply) {
      account.lastReply.free = Math.max(0, account.lastReply.free + terms.limit - before.limit);
    }
    return account;
  }

  #openAccount(customer: string, terms: Terms): Account {
    const account = new Account(customer, terms);
    this.#accounts.set(customer, account);
    return account;
  }

  #now(): Instant {
    const { clock } = this.#options;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() };
  }

  #storeAnswers(customer: string): boolean {
    return this.#overdueCalls === 0 && this.#options.storeIsUp(customer);
  }

  /** Check and hand-over in one turn. */
  #admitFromLease(account: Account, now: Instant, mode: QuotaMode): Admission | undefined {
    for (;;) {
      const lease = account.leases[0];
      if (lease === undefined) return undefined;
      if (!lease.runsAt(now)) {
        this.#endLease(account, lease);
        continue;
      }
      lease.units--;
      const unitsLeft = account.unitsInLeases;
      if (lease.units === 0) this.#dropLease(account, lease);
      // Not while waiters are served: they would be asked for again.
      const isDue = unitsLeft <= account.refillAtUnits || now.monotonicMs >= account.refillAfter;
      if (mode === 'lease' && isDue) this.#refill(account);
      return this.#admitted(account, lease, unitsLeft, mode);
    }
  }

  #admitted(account: Account, lease: Lease, unitsLeft: number, mode: QuotaMode): Admission {
    const { clock } = this.#options;
    const { lastReply: reply, terms } = account;
    account.admitted++;
    return {
      outcome: 'admitted',
      mode,
      remaining: (reply?.free ?? 0) + unitsLeft,
      beginBefore: lease.beginBefore,
      beginBeforeWallMs: lease.beginBeforeWallMs,
      giveBack: () => this.#takeBack(account, lease, terms),
      resetSeconds: () => secondsUntil(reply?.moreAt ?? 0, clock.monotonicMs()),
    };
  }

  #refused(refusal: RememberedRefusal, mode: QuotaMode): Admission {
    const { clock } = this.#options;
    return { outcome: 'refused', mode, resetSeconds: () => secondsUntil(refusal.moreAt, clock.monotonicMs()) };
  }

  #reserve(account: Account): void {
    if (account.call) return;
    const asked = this.#now();
    const need = account.waiters.length;
    const expected = Math.floor((account.rate.perSecond(asked.monotonicMs) * AHEAD_MS) / 1000);
    const call: Call = { asked, need, terms: account.terms, answered: undefined, timer: undefined, overdue: false };
    account.call = call;
    this.#watch(account, call);
    call.answered = this.#options.windows
      .reserve({
        customer: account.customer,
        need,
        ahead: Math.max(0, expected - need),
        limit: account.terms.limit,
        holdMs: HOLD_MS,
        giveBacks: account.takeGiveBacks(),
      })
      .then(
        (grant) => this.#received(account, call, grant),
        () => this.#failed(account, call),
      );
  }

  #refill(account: Account): void {
    account.refillAtUnits = -1;
    account.refillAfter = Number.POSITIVE_INFINITY;
    if (this.#storeAnswers(account.customer)) this.#reserve(account);
  }

  #received(account: Account, call: Call, grant: Grant): void {
    this.#endCall(account, call);
    if (!call.overdue) this.#forgiveStandstill(account, call);
    if (call.overdue || endsLeases(call.terms, account.terms)) {
      this.#giveBackLater(account, grant, grant.granted);
    } else {
      this.#use(account, call, grant);
    }
    if (account.waiters.length > 0) this.#reserve(account);
  }

  #use(account: Account, call: Call, grant: Grant): void {
    const now = this.#now();
    const { monotonicMs: receivedAt } = now;
    account.lastReply = { free: grant.free, used: grant.used, receivedAt, moreAt: moreAt(grant, receivedAt) };
    const lease = new Lease(grant, call.asked);
    if (!lease.runsAt(now)) {
      this.#giveBackLater(account, grant, grant.granted);
      return;
    }
    this.#openLease(account, lease);
    this.#planRefill(account, lease, now);
    this.#serve(account, now);
    if (grant.granted >= call.need) return;

    // Nothing is left for the waiters, nor for requests that arrive before this can change.
    if (call.terms.limit !== account.terms.limit) return;
    const refusal = rememberRefusal(call, grant, receivedAt);
    account.refusal = refusal;
    // Requests that arrived while the call was under way, but after that instant, are not refused by this reply.
    const { monotonicMs: askedAt } = call.asked;
    const undecided = account.waiters.findIndex(({ since }) => since > askedAt && since >= refusal.until);
    const refused = account.waiters.splice(0, undecided < 0 ? account.waiters.length : undecided);
    for (const waiter of refused) waiter.resolve(this.#refused(refusal, 'store'));
  }

  /**
   * A reply that is read after the call's time-out, though the call is not overdue, had arrived in time: the process stood
   * still. Requests that need another call get a whole time-out for it.
   */
  #forgiveStandstill(account: Account, { asked }: Call): void {
    const { clock, timeoutMs } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs < asked.monotonicMs + timeoutMs) return;
    for (const waiter of account.waiters) waiter.until = nowMs + timeoutMs;
  }

  #serve(account: Account, now: Instant): void {
    while (account.waiters.length > 0) {
      const admission = this.#admitFromLease(account, now, 'store');
      if (admission === undefined) return;
      account.waiters.shift()?.resolve(admission);
    }
  }

  /** Near the limit nothing is asked for ahead: there every request is decided by the store. */
  #planRefill(account: Account, lease: Lease, { monotonicMs }: Instant): void {
    const perSecond = account.rate.perSecond(monotonicMs);
    const neededWhileAsking = (perSecond * REFILL_MS) / 1000;
    const worthIt = perSecond >= REFILL_FROM_PER_SECOND && lease.grant.free / AHEAD_DIVISOR > neededWhileAsking;
    account.refillAtUnits = worthIt ? neededWhileAsking : -1;
    account.refillAfter = worthIt ? lease.endsAt - REFILL_MS : Number.POSITIVE_INFINITY;
  }

  #failed(account: Account, call: Call): void {
    this.#endCall(account, call);
    this.#settleWithoutStore(account, account.waiters.splice(0));
  }

  /** Those who wait were there before the call or came since, so the first of them is the next to run out of time. */
  #watch(account: Account, call: Call): void {
    const { clock, scheduler, timeoutMs } = this.#options;
    const callUntil = call.asked.monotonicMs + timeoutMs;
    const until = Math.min(callUntil, account.waiters[0]?.until ?? callUntil);
    call.timer = scheduler.deadline(until - clock.monotonicMs(), () => {
      const nowMs = clock.monotonicMs();
      if (nowMs >= callUntil) {
        call.overdue = true;
        this.#overdueCalls++;
        this.#settleWithoutStore(account, account.waiters.splice(0));
        return;
      }
      const stillWaiting = account.waiters.findIndex((waiter) => waiter.until > nowMs);
      const late = account.waiters.splice(0, stillWaiting < 0 ? account.waiters.length : stillWaiting);
      this.#settleWithoutStore(account, late);
      this.#watch(account, call);
    });
  }

  #settleWithoutStore(account: Account, waiters: readonly Waiter[]): void {
    for (const waiter of waiters) {
      try {
        waiter.resolve(this.#options.withoutStore.admit(account));
      } catch (error) {
        waiter.reject(error);
      }
    }
  }

  /** Until the call settles, nobody waits for the store. */
  #noteOverdue(call: Promise<unknown>): void {
    this.#overdueCalls++;
    const settled = () => {
      this.#overdueCalls--;
    };
    call.then(settled, settled);
  }

  #endCall(account: Account, call: Call): void {
    call.timer?.cancel();
    if (call.overdue) this.#overdueCalls--;
    account.call = undefined;
  }

  #openLease(account: Account, lease: Lease): void {
    if (lease.units === 0) return;
    account.leases.push(lease);
    const delayMs = lease.endsAt - this.#options.clock.monotonicMs();
    lease.timer = this.#options.scheduler.after(delayMs, () => this.#endLease(account, lease));
  }

  #dropLease(account: Account, lease: Lease): void {
    lease.timer?.cancel();
    const at = account.leases.indexOf(lease);
    if (at >= 0) account.leases.splice(at, 1);
  }

  #endLease(account: Account, lease: Lease): void {
    this.#dropLease(account, lease);
    const { units } = lease;
    lease.units = 0;
    this.#giveBackLater(account, lease.grant, units);
  }

  /** A unit whose request did not begin: for the next request on the same lease, while that runs. */
  #takeBack(account: Account, lease: Lease, terms: Terms): void {
    account.admitted--;
    if (!lease.runsAt(this.#now()) || endsLeases(terms, account.terms)) {
      this.#giveBackLater(account, lease.grant, 1);
      return;
    }
    lease.units++;
    if (lease.units === 1) this.#openLease(account, lease);
  }

  #giveBackLater(account: Account, grant: Grant, units: number): void {
    if (units === 0) return;
    account.addGiveBack(grant, units);
    account.refundTimer ??= this.#options.scheduler.after(REFUND_DELAY_MS, () => {
      void this.#refund(account.customer, account.takeGiveBacks());
    });
  }

  /** Sent once: a refund whose fate is unknown is forgone, because one that ran twice would admit too many. */
  async #refund(customer: string, giveBacks: readonly GiveBack[]): Promise<void> {
    await this.#options.windows.refund(customer, giveBacks).catch(() => undefined);
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

/** Whether a change of terms ends the leases that were granted before it. */
function endsLeases(before: Terms, now: Terms): boolean {
  return before.usageResetAt !== now.usageResetAt || before.limit > now.limit;
}

/**
 * Until the first instant at which asking again may help: units drop out of the window, or come back from a lease that
 * some gateway still holds. That instant is never later than by the store's clock: it counts from when the store was
 * asked, by a clock that may run slow. What clients are told to wait is never shorter: it counts from when the reply was
 * received (monotonic ms). So a client that was told to wait by one gateway meets no older refusal at another.
 */
function rememberRefusal({ terms, asked }: Call, grant: Grant, receivedAt: number): RememberedRefusal {
  const openHoldMs = grant.holdEndMs - grant.storeTimeMs;
  const refundsEndMs = openHoldMs + REFUND_GRACE_MS;
  const unitsMayReturnMs = refundsEndMs > 0 ? refundsEndMs : Number.POSITIVE_INFINITY;
  const until = asked.monotonicMs + Math.min(grant.waitMs, unitsMayReturnMs, LONGEST_MEMORY_MS) / CLOCK_DRIFT;
  return { terms, until, moreAt: moreAt(grant, receivedAt) };
}
