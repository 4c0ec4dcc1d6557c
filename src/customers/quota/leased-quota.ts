/**
 * Decides whether a customer's next request fits its limits, mostly without a store call.
 *
 * The store grants units in leases: for the requests that wait, and ahead of need for those that will probably come
 * during the lease. Until the lease ends, requests are admitted from memory. Each customer has at most one reservation
 * in flight. Requests that arrive meanwhile wait for the next one, so a burst of a thousand requests costs two calls.
 * docs/quota.md proves why no more requests than the limit reach the upstream.
 *
 * Refusals are remembered for as long as asking again cannot help, so a flood of refused requests costs few calls. Each
 * holds for requests of as many units: a lighter request may pass while a heavier one is refused.
 *
 * The store counts as unavailable while its connection is down, or while a reservation has been in flight for more than
 * `timeoutMs`. Then no request waits for it, and `withoutStore` decides. A late grant is refunded whole.
 */
import { CLOCK_DRIFT, type Clock, type Scheduler, secondsUntil } from '../../base/clock.ts';
import { LruEntries } from '../../base/lru-map.ts';
import { mapAll, type NonEmpty } from '../../base/non-empty.ts';
import { uniqueIds } from '../../base/unique-ids.ts';
import { NotRunError, StoreUnavailableError } from '../../store/errors.ts';
import { HOUR_MS } from '../../store/usage-history.ts';
import {
  type Grant,
  isPeriod,
  isSameCounter,
  keyIn,
  type Limit,
  type LimitCount,
  type Limits,
  periodIn,
  refusesBeyond,
  type WindowLimit,
  type WindowRoot,
  type WindowStore,
} from '../../store/windows.ts';
import {
  areSameLimits,
  areSameSettings,
  type Call,
  CustomerState,
  leastFree,
  type RememberedRefusal,
  type Waiter,
} from './customer-state.ts';
import { highestUsage } from './highest-usage.ts';
import {
  type Admission,
  type KeyUsage,
  type LeaseState,
  periodUsage,
  type QuotaMode,
  type QuotaSettings,
  type Usage,
  type UsageRatio,
  type Violation,
} from './hourly-quota.ts';
import type { KeyCeiling } from './key-ceiling.ts';
import {
  CustomerLeases,
  type LastReply,
  Lease,
  LeaseAdmission,
  LeaseTimers,
  moreAt,
  REFUND_GRACE_MS,
  secondsUntilMore,
} from './leases.ts';
import { type Instant, readInstant } from './open-grant.ts';
import type { QuotaWithoutStore } from './without-store.ts';

const MAX_REFUSAL_MS = 30_000;
const WINDOW_SECONDS = 3600;

/** Is told of high usage, as the store's replies to reservations say. Units of open leases count as used. */
export interface UsageLevels {
  /** In percent of a limit. Usage below it is not reported. */
  readonly lowestPercent: number;
  /** `ceiling`: set if the limit is that of a key. */
  reached(
    customer: string,
    limit: number,
    reply: LimitCount & Pick<Grant, 'storeTimeMs'>,
    ceiling: KeyCeiling | undefined,
  ): void;
}

interface LeasedQuotaOptions {
  readonly windows: WindowStore;
  /** Returns whether calls about this customer's window are worth making now. Must be cheap. */
  readonly storeIsUp: (customer: string) => boolean;
  readonly withoutStore: QuotaWithoutStore;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** Omitted: usage is reported to nobody. */
  readonly levels?: UsageLevels;
  /** How long a request waits for the store. */
  readonly timeoutMs: number;
  /** Maximum number of customers in memory. Above it, the least recently used idle customers are evicted. */
  readonly customers: number;
}

export class LeasedQuota {
  readonly #options: LeasedQuotaOptions;
  readonly #customers: LruEntries<string, CustomerState>;
  readonly #timers: LeaseTimers;
  readonly #newGrantId = uniqueIds();
  #overdueCalls = 0;
  /** Customers whose usage is read late. Their other reads fail at once; only reservations decide whether the store is away. */
  readonly #overdueReads = new Set<string>();

  constructor(options: LeasedQuotaOptions) {
    this.#options = options;
    this.#timers = new LeaseTimers(options);
    this.#customers = new LruEntries(options.customers);
  }

  /**
   * Admits or refuses one request, which takes `units` from every limit; without a promise if memory suffices to decide.
   * Rejects or throws with StoreUnavailableError when the store is unavailable and the config forbids deciding without it.
   */
  admit(customer: string, settings: QuotaSettings, units = 1): Admission | Promise<Admission> {
    const now = this.#now();
    const state = this.#stateOf(customer, settings, now);
    state.noteRequest(units, now);
    const fromLease = this.#admitFromLease(state, units, now, 'lease');
    if (fromLease) return fromLease;
    const refusal = state.refusalOf(units, now);
    if (refusal) return this.#refused(state, refusal, 'lease');
    if (!this.storeResponds(customer)) return this.#options.withoutStore.admit(state, units);
    return new Promise((resolve, reject) => {
      const since = now.monotonicMs;
      state.waiters.push({ units, since, until: since + this.#options.timeoutMs, resolve, reject });
      this.#reserve(state);
    });
  }

  /**
   * Returns the usage that enforcement sees now, without taking units. Rejects with StoreUnavailableError. `resetSeconds`
   * are until more units are available, and at least `units`.
   */
  async usage(customer: string, limits: Limits, units = 1): Promise<Usage> {
    if (this.#overdueReads.has(customer) || !this.storeResponds(customer))
      throw new StoreUnavailableError('the store is away');
    const key = keyIn(limits);
    // Refunds of other windows than these go alone.
    const leases = key === undefined ? this.#customers.get(customer)?.leases : undefined;
    const refunds = leases?.takeRefunds() ?? [];
    const nothing = { grant: '', need: 0, heaviest: units, ahead: 0, holdMs: 0 };
    const reading = this.#options.windows.reserve({ ...nothing, customer, limits, refunds });
    reading.then(
      () => leases?.answered(refunds, true),
      () => leases?.answered(refunds, false),
    );
    const grant = await this.#withinTimeout(reading, () => {
      this.#overdueReads.add(customer);
      const settled = () => void this.#overdueReads.delete(customer);
      reading.then(settled, settled);
    });
    const now = this.#options.clock.monotonicMs();
    // Read after the reply, to include units of leases that ended during the call.
    const state = this.#customers.get(customer);
    const unused = state?.unusedUnits() ?? 0;
    const usageOf = ({ amount: limit }: WindowLimit, count: LimitCount, unused: number): KeyUsage => {
      const used = Math.max(0, count.used - unused);
      const resetSeconds = used > 0 ? secondsUntil(moreAt(count, now), now) : 0;
      return { limit, used, remaining: Math.max(0, limit - used), resetSeconds };
    };
    const [hour, second] = grant.counts;
    const [period, ofPeriod] = [periodIn(limits), grant.counts.at(-1)];
    return {
      ...usageOf(limits[0], hour, unused),
      windowSeconds: WINDOW_SECONDS,
      period: period && ofPeriod && periodUsage(period, ofPeriod, unused),
      key: key && second && usageOf(key, second, state?.unusedUnits(key.root) ?? 0),
    };
  }

  /**
   * Returns how many units this instance has used since it added the customer to memory; with a root, those of its key. Only
   * the difference of two values is meaningful.
   */
  admitted(customer: string, root?: WindowRoot): number {
    return this.#customers.get(customer)?.admitted(root) ?? 0;
  }

  /** Returns the seconds until more units are available, if the store's last reply left fewer than `units`; else 0. */
  secondsWithoutUnits(customer: string, settings: QuotaSettings, units: number): number {
    const state = this.#customers.get(settings.ceiling?.leases ?? customer);
    if (!state?.lastReply || !areSameSettings(state.settings, settings) || !this.storeResponds(customer)) return 0;
    if (state.freeAtLastReply + state.leases.unitsLeft >= units) return 0;
    const { counts, receivedAt } = state.lastReply;
    const nowMs = this.#options.clock.monotonicMs();
    const waits = counts.map((count) => {
      const moreAtMs = moreAt(count, receivedAt);
      const isShort = refusesBeyond(count) && count.free < units && moreAtMs > nowMs;
      return isShort ? refusalSeconds(moreAtMs, nowMs, count.period !== undefined) : 0;
    });
    return Math.max(...waits);
  }

  /** Returns the customer's leases, those of its keys included, and remembered refusal in this instance's memory. */
  leaseState(customer: string): LeaseState {
    const states = this.#customers.get(customer)?.ofCustomer ?? [];
    const nowMs = this.#options.clock.monotonicMs();
    const open = states.flatMap(({ leases }) => leases.open);
    const leases = open.map(({ units, endsAt }) => ({ units, endsInMs: Math.max(0, endsAt - nowMs) }));
    // A key that is used up says nothing of the others.
    const refusals = states.flatMap((state) => state.refusals);
    const ofAll = refusals.filter(({ violated }) => violated.some(({ policy }) => policy !== 'key'));
    const until = Math.max(nowMs, ...ofAll.map((refusal) => refusal.until));
    return { leases, refusedForMs: until > nowMs ? until - nowMs : undefined };
  }

  /** Returns the customers with the highest usage relative to their limits, from this instance's memory alone. */
  highestUsage(count: number): readonly UsageRatio[] {
    return highestUsage(this.#customers.values(), count, this.#options.clock.monotonicMs());
  }

  /** Refunds unused units. Waits at most one store timeout for calls in flight, and one for the refunds. */
  async close(): Promise<void> {
    await this.#withinTimeout(this.#callsSettled()).catch(() => undefined);
    const now = this.#now();
    const sent = [...this.#customers.values()].map((state) => {
      state.leases.end(now);
      if (state.call) state.leases.refundAll(state.call.id, state.call.asked);
      return state.leases.sendRefunds();
    });
    await this.#withinTimeout(Promise.all(sent)).catch(() => undefined);
  }

  /** Resolves once no reservation is in flight, those included that follow another. */
  async #callsSettled(): Promise<void> {
    for (const state of this.#customers.values()) while (state.call !== undefined) await state.call.settled;
  }

  /** Returns the customer's state, updated to these settings. */
  #stateOf(customer: string, settings: QuotaSettings, now: Instant): CustomerState {
    const { ceiling } = settings;
    const state = this.#customers.get(ceiling === undefined ? customer : ceiling.leases);
    if (state === undefined) return this.#addState(customer, settings);
    const before = state.settings;
    if (areSameSettings(before, settings)) return state;
    state.settings = settings;
    state.refusals = [];
    // After a reset the new window does not count the units of open leases; their refunds name the old epoch and change
    // nothing. After a lower limit all unused units are refunded, and the store decides the next request.
    if (endsLeases(before, settings)) state.leases.end(now);
    const isReset = before.usageResetAt !== settings.usageResetAt;
    if (state.lastReply) state.lastReply = isReset ? undefined : recounted(state.lastReply, before, settings);
    return state;
  }

  #addState(customer: string, settings: QuotaSettings): CustomerState {
    const { ceiling } = settings;
    const main = ceiling && (this.#customers.get(customer) ?? this.#addState(customer, withoutKey(settings)));
    const leases = new CustomerLeases(customer, this.#timers, ceiling?.limit.root);
    const added = new CustomerState(ceiling?.leases ?? customer, settings, leases, main);
    this.#customers.add(added);
    return added;
  }

  #now(): Instant {
    return readInstant(this.#options.clock);
  }

  /** Returns whether a call about this customer's window would be worth waiting for. */
  storeResponds(customer: string): boolean {
    return this.#overdueCalls === 0 && this.#options.storeIsUp(customer);
  }

  /** Checks for a unit and takes it in one turn of the event loop, so that no other request can take it in between. */
  #admitFromLease(state: CustomerState, units: number, now: Instant, mode: QuotaMode): Admission | undefined {
    const { leases } = state;
    const lease = leases.take(units, now);
    if (lease === undefined) return undefined;
    // Not while waiting requests are being admitted: the reservation would ask for their units again.
    if (mode === 'lease' && state.isRefillDue(leases.unitsLeft, now)) this.#refill(state);
    return new LeaseAdmission(leases, lease, units, now, mode, state.lastReply);
  }

  #refused(state: CustomerState, { units, violated, moreAt }: RememberedRefusal, mode: QuotaMode): Admission {
    const { clock } = this.#options;
    const limits = units > 1 || state.settings.ceiling ? withRemaining(violated, state, units) : violated;
    const resetSeconds = (index: number) => {
      const limit = violated[index];
      return refusalSeconds(moreAt[index] ?? 0, clock.monotonicMs(), limit !== undefined && isPeriod(limit));
    };
    return { outcome: 'refused', mode, violated: limits, resetSeconds };
  }

  #reserve(state: CustomerState): void {
    if (state.call) return;
    const { customer, settings } = state;
    const sentAt = this.#now();
    let need = 0;
    let heaviest = 1;
    for (const { units } of state.waiters) {
      need += units;
      heaviest = Math.max(heaviest, units);
    }
    // No open lease has the units of a request that waits. Those of several may be enough once the store has them back.
    if (need > 0) state.leases.endOpen();
    const { length, ahead } = state.nextLease(need, sentAt);
    const id = this.#newGrantId();
    const call: Call = {
      id,
      asked: need + ahead,
      sentAt,
      length,
      need,
      heaviest,
      settings,
      settled: undefined,
      timer: undefined,
      overdue: false,
    };
    state.call = call;
    this.#watch(state, call);
    const { leases } = state;
    const refunds = leases.takeRefunds();
    const amounts = { need, heaviest, ahead, limits: settings.limits, holdMs: length.holdMs };
    const request = { customer, grant: id, ...amounts, refunds };
    call.settled = this.#options.windows.reserve(request).then(
      (grant) => {
        leases.answered(refunds, true);
        this.#received(state, call, grant);
      },
      (error) => {
        leases.answered(refunds, false);
        if (!(error instanceof NotRunError)) leases.refundAll(id, call.asked);
        this.#endCall(state, call);
        this.#settleWithoutStore(state, state.waiters.splice(0));
      },
    );
  }

  #refill(state: CustomerState): void {
    state.cancelRefill();
    if (this.storeResponds(state.customer)) this.#reserve(state);
  }

  #received(state: CustomerState, call: Call, grant: Grant): void {
    this.#endCall(state, call);
    if (!call.overdue) this.#forgiveStandstill(state, call);
    if (call.overdue || endsLeases(call.settings, state.settings)) {
      state.leases.refundAll(call.id, grant.granted);
    } else {
      this.#use(state, call, grant);
    }
    if (state.waiters.length > 0) this.#reserve(state);
  }

  #use(state: CustomerState, call: Call, grant: Grant): void {
    const now = this.#now();
    const { monotonicMs: receivedAt } = now;
    state.lastReply = { counts: grant.counts, receivedAt };
    if (state.main) state.main.lastReply = { counts: withoutCountOfKey(grant.counts), receivedAt };
    const lease = new Lease(call.id, grant, call.sentAt, call.length);
    if (!lease.runsAt(now)) {
      state.leases.refundAll(call.id, grant.granted);
      return;
    }
    this.#reportUsage(state.customer, call.settings, grant);
    state.leases.add(lease);
    state.planRefill(lease, now);
    if (state.refusals.length > 0) {
      state.refusals = state.refusals.filter(({ units }) => units > state.freeAtLastReply);
    }
    const isShort = grant.granted < call.need;
    if (isShort) this.#serve(state, now, call.heaviest);
    this.#serve(state, now);
    if (!isShort) return;

    // Too few units are left for the heaviest request. Requests of as many units are refused while the refusal is
    // remembered. For lighter ones that wait, the store is asked once more.
    if (!areSameLimits(call.settings.limits, state.settings.limits)) return;
    const refusal = rememberRefusal(call, grant, receivedAt);
    state.remember(refusal, now);
    const { monotonicMs: sentAtMs } = call.sentAt;
    for (const waiter of state.waiters.splice(0)) {
      const { units, since } = waiter;
      // This reply does not refuse requests that arrived during the call, but after `refusal.until`.
      const isRefused = units === refusal.units && (since <= sentAtMs || since < refusal.until);
      if (isRefused) waiter.resolve(this.#refused(state, refusal, 'store'));
      else state.waiters.push(waiter);
    }
  }

  #reportUsage(customer: string, { limits, ceiling }: QuotaSettings, { counts, storeTimeMs }: Grant): void {
    const { levels } = this.#options;
    if (levels === undefined) return;
    for (const [index, { policy, amount }] of limits.entries()) {
      const count = counts[index];
      if (count === undefined || 100 * count.used < levels.lowestPercent * amount) continue;
      levels.reached(customer, amount, { ...count, storeTimeMs }, policy === 'key' ? ceiling : undefined);
    }
  }

  /**
   * A reply that is read after the call's timeout, but before the call is marked overdue, arrived in time: the process
   * was blocked. Waiting requests that need another call get a full timeout for it.
   */
  #forgiveStandstill(state: CustomerState, { sentAt }: Call): void {
    const { clock, timeoutMs } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs < sentAt.monotonicMs + timeoutMs) return;
    for (const waiter of state.waiters) waiter.until = nowMs + timeoutMs;
  }

  /** Admits the waiting requests that leases have units for. `only`: those of so many units. */
  #serve(state: CustomerState, now: Instant, only?: number): void {
    for (const waiter of state.waiters.splice(0)) {
      const isServed = only === undefined || waiter.units === only;
      const admission = isServed ? this.#admitFromLease(state, waiter.units, now, 'store') : undefined;
      if (admission) waiter.resolve(admission);
      else state.waiters.push(waiter);
    }
  }

  /** Times out the call and waiting requests. These are in order of arrival, so the first has the earliest deadline. */
  #watch(state: CustomerState, call: Call): void {
    const { clock, scheduler, timeoutMs } = this.#options;
    const callUntil = call.sentAt.monotonicMs + timeoutMs;
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
        waiter.resolve(this.#options.withoutStore.admit(state, waiter.units));
      } catch (error) {
        waiter.reject(error);
      }
    }
  }

  #endCall(state: CustomerState, call: Call): void {
    call.timer?.cancel();
    if (call.overdue) this.#overdueCalls--;
    state.call = undefined;
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

/** Returns the settings of the customer's requests with keys that have no limit. */
function withoutKey({ limits: [hour, ...others], ...settings }: QuotaSettings): QuotaSettings {
  return { ...settings, limits: [hour, ...others.filter(({ policy }) => policy !== 'key')], ceiling: undefined };
}

function withoutCountOfKey([hour, ...others]: NonEmpty<LimitCount>): NonEmpty<LimitCount> {
  return [hour, ...others.filter(({ policy }) => policy !== 'key')];
}

/** Returns whether a change of settings ends the leases granted before it: one of the limits is new or stricter. */
function endsLeases(before: QuotaSettings, now: QuotaSettings): boolean {
  const isStricter = (limit: Limit) => {
    const former = before.limits.find((each) => isSameCounter(each, limit));
    return former === undefined || limit.amount < former.amount || (refuses(limit) && !refuses(former));
  };
  return before.usageResetAt !== now.usageResetAt || now.limits.some(isStricter);
}

function refuses(limit: Limit): boolean {
  return !isPeriod(limit) || limit.beyond === 'refuse';
}

/** Returns the last reply as the store would have given it by the limits of `now`, up to the first one that it knows nothing of. */
function recounted({ counts, receivedAt }: LastReply, before: QuotaSettings, now: QuotaSettings): LastReply {
  const [hour] = counts;
  const known: [LimitCount, ...LimitCount[]] = [{ ...hour, free: Math.max(0, now.limits[0].amount - hour.used) }];
  for (const [index, limit] of now.limits.entries()) {
    const [count, former] = [counts[index], before.limits[index]];
    if (index === 0) continue;
    if (count === undefined || former === undefined || !isSameCounter(former, limit)) break;
    if (isPeriod(limit) && before.periodResetAt !== now.periodResetAt) break;
    const left = limit.amount - count.used;
    const free = refuses(limit) ? Math.max(0, left) : left;
    known.push({
      ...count,
      free,
      ...(count.period && isPeriod(limit) && { period: { ...count.period, beyond: limit.beyond } }),
    });
  }
  return { counts: known, receivedAt };
}

/** Returns the seconds that a refused client has to wait. At the end of a period, one more: all clocks have passed it then. */
function refusalSeconds(moreAtMs: number, nowMs: number, isOfPeriod: boolean): number {
  return secondsUntilMore(moreAtMs, nowMs, isOfPeriod) + (isOfPeriod ? 1 : 0);
}

/** Returns the limits that refuse a request, each with what it has left for lighter ones, and that of a key for others. */
function withRemaining(
  violated: NonEmpty<Violation>,
  { lastReply, leases }: CustomerState,
  units: number,
): NonEmpty<Violation> {
  return mapAll(violated, (limit) => {
    const free = lastReply?.counts.find(({ policy }) => policy === limit.policy)?.free ?? 0;
    const remaining = Math.min(units - 1, free + leases.unitsLeft);
    const others = lastReply?.counts.filter(({ policy }) => policy !== 'key');
    const ofCustomer = limit.policy === 'key' && others ? leastFree(others) + leases.unitsLeft : undefined;
    return { ...limit, remaining, ofCustomer };
  });
}

/**
 * Returns a refusal of the heaviest requests of a call. It lasts until asking again may help: units expire from the
 * window, or are refunded from a lease that any instance still holds.
 *
 * `until` is never later than by the store's clock: it counts from when the store was asked, and allows for a slow
 * local clock. The wait reported to clients (`moreAt`) is never shorter than by the store's clock: it counts from
 * `receivedAt` (monotonic ms). So a client that waits for as long as one instance told it is not refused by an older
 * refusal that another remembers.
 */
function rememberRefusal(call: Call, grant: Grant, receivedAt: number): RememberedRefusal {
  const { sentAt, settings, heaviest: units } = call;
  const violated: Violation[] = [];
  const moreAtMs: number[] = [];
  let helpsInMs = 0;
  for (const [index, limit] of settings.limits.entries()) {
    const count = grant.counts[index];
    if (count === undefined || count.free >= units || !refusesBeyond(count)) continue;
    violated.push({ ...limit, used: count.used, endsAtMs: count.period && count.period.endHour * HOUR_MS });
    moreAtMs.push(moreAt(count, receivedAt));
    const refundsEndMs = count.holdEndMs - grant.storeTimeMs + REFUND_GRACE_MS;
    const unitsMayReturnMs = refundsEndMs > 0 ? refundsEndMs : Number.POSITIVE_INFINITY;
    // A request needs its units of every limit, so the last one to have them decides.
    helpsInMs = Math.max(helpsInMs, Math.min(count.waitMs, unitsMayReturnMs, MAX_REFUSAL_MS));
  }
  // At least one: the grant was smaller than the need.
  const all = violated as readonly Violation[] as NonEmpty<Violation>;
  return { units, violated: all, until: sentAt.monotonicMs + helpsInMs / CLOCK_DRIFT, moreAt: moreAtMs };
}
