/**
 * Decides hourly quotas while the store is unavailable (`store.on_error: local`): each instance limits a customer to its
 * share of the limit, counted in a window in its own memory. For the share and the bound see "While the store is unavailable" in
 * docs/quota.md.
 *
 * Local windows survive the end of an outage: if each outage began with an empty window, an unstable store would let
 * each instance admit a whole share per outage.
 *
 * When the store is available again, locally admitted units are charged to it, dated no earlier than their requests, and
 * removed here. A charge that is not answered is sent again with the same ids, so its units count once. Units that return
 * after their charge are refunded by the id under which they were charged.
 */
import { CLOCK_DRIFT, type Clock, type Scheduler, secondsUntil } from '../../base/clock.ts';
import { mapAll, type NonEmpty } from '../../base/non-empty.ts';
import { Periodic } from '../../base/periodic.ts';
import { uniqueIds } from '../../base/unique-ids.ts';
import { NotRunError } from '../../store/errors.ts';
import { MemoryHash } from '../../store/memory-hash.ts';
import { periodOf } from '../../store/period-counts.ts';
import { HOUR_MS } from '../../store/usage-history.ts';
import {
  charge,
  dropTimeMs,
  HOURLY,
  refund,
  reserve,
  type WindowRefund,
  type WindowRequest,
} from '../../store/window-arithmetic.ts';
import {
  GRANT_MS,
  type Grant,
  hourly,
  keyIn,
  type LimitCount,
  type PeriodLimit,
  type Policy,
  periodIn,
  type WindowLimit,
  type WindowRoot,
  type WindowStore,
  windowsIn,
} from '../../store/windows.ts';
import type { CustomerState } from './customer-state.ts';
import type { Admission, QuotaSettings, Violation } from './hourly-quota.ts';
import { type CustomerLeases, type LastReply, LONG_LEASE, moreAt, SHORT_LEASE } from './leases.ts';
import { OpenGrant, readInstant } from './open-grant.ts';

/** Delay before each attempt to charge units to the store, so charges begin about this soon after the store is available again. */
const CHARGE_INTERVAL_MS = 500;
/** The same while charges fail: the store may refuse them for hours. */
const REPEAT_INTERVAL_MS = 5000;
/**
 * An attempt to charge units is repeated for this long. Later, the store may have forgotten that it counted them: they stay
 * here until they expire.
 */
const REPEATED_MS = GRANT_MS / CLOCK_DRIFT;
const FORGET_INTERVAL_MS = 60_000;
/** The share is a guess: the store may have free units as soon as it is available again. */
const MAX_WAIT_SECONDS = 30;
/** A constant: each refund refers to its own local window, so no epoch is needed to tell windows apart. */
const EPOCH = 'local';

/** `main`: see {@link CustomerState.main}. */
type LimitedCustomer = Pick<CustomerState, 'customer' | 'settings' | 'lastReply'> & {
  readonly leases: Pick<CustomerLeases, 'refund'>;
  readonly main?: Pick<CustomerState, 'lastReply'> | undefined;
};

/** Units of one bucket that are charged together. */
interface LocalUnits {
  /** Those of the key by which they were admitted, if it has a limit. */
  readonly state: LimitedCustomer;
  /** 0: they count in the history alone, because their bucket has expired or the usage was reset. */
  bucket: number;
  units: number;
  /** From when they are charged. */
  grant?: OpenGrant;
  /** Units that return while they are charged. */
  returned: number;
  isCharged: boolean;
  /** What has its units, once expired buckets were added up. */
  mergedInto?: LocalUnits;
}

/** Is sent until it is answered. */
interface Charge {
  readonly charged: readonly (LocalUnits & { readonly grant: OpenGrant })[];
  /** Monotonic ms since which the store may have counted it. */
  sinceMs?: number;
}

/** What this instance admits of one day or month without the store, in all outages. */
interface LocalPeriod {
  readonly policy: Policy;
  readonly startHour: number;
  admitted: number;
  /** Units that would be free, at the store's last reply, if this instance had admitted none; undefined if unknown. */
  left?: number;
}

/** What is counted of a customer, or of one of its keys. */
interface LocalCounter {
  hash: MemoryHash;
  /** Usage from the store's last reply, counted at the end of its holds: until then, its requests may begin. */
  advance?: { readonly learntAt: number; readonly bucket: number; readonly units: number } | undefined;
}

interface LocalWindow extends LocalCounter {
  state: LimitedCustomer;
  /** With which the window began. */
  settings: QuotaSettings;
  /** By root. `resetAt`: of the last reset of a key. */
  readonly keys: Map<string, LocalCounter & { resetAt: string }>;
  /** In the order of their buckets. */
  uncharged: readonly LocalUnits[];
  charge: Charge | undefined;
  period?: LocalPeriod | undefined;
}

export interface LocalWindowsOptions {
  readonly windows: Pick<WindowStore, 'charge'>;
  readonly storeIsUp: (customer: string) => boolean;
  /** Returns the number of instances announced within the last hour, this one included. */
  readonly instances: () => number;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
}

export class LocalWindows {
  readonly #options: LocalWindowsOptions;
  readonly #windows = new Map<string, LocalWindow>();
  readonly #originMs: number;
  readonly #newGrantId = uniqueIds();
  /** Runs while there are units to charge. */
  readonly #charging: Periodic;
  /** Runs while there are windows. */
  readonly #forgetting: Periodic;

  constructor(options: LocalWindowsOptions) {
    this.#options = options;
    // Buckets are numbered from the Unix epoch, but local time must not jump: wall time is read only once.
    this.#originMs = options.clock.nowMs() - options.clock.monotonicMs();
    this.#charging = new Periodic(options.scheduler, async () => {
      const intervalMs = await this.#chargeAll();
      return [...this.#windows.values()].some(hasUncharged) ? intervalMs : undefined;
    });
    this.#forgetting = new Periodic(options.scheduler, async () => {
      this.#forgetEmpty();
      return this.#windows.size > 0 ? FORGET_INTERVAL_MS : undefined;
    });
  }

  admit(state: LimitedCustomer, units: number): Admission {
    const window = this.#windowOf(state);
    const nowMs = this.#nowMs();
    const instances = this.#options.instances();
    this.#chargeInAdvance(window, nowMs);
    const limit = periodIn(state.settings.limits);
    const period = limit && this.#periodOf(window, limit);
    // Without a minimum of one: a share that is none must not admit a request on each of many instances.
    const share =
      limit && period ? Math.max(0, Math.floor((period.left ?? limit.amount) / instances) - period.admitted) : 0;
    if (limit?.beyond === 'refuse' && units > share) {
      const violated = [{ ...limit, remaining: share }] as const;
      return { outcome: 'refused', mode: 'local', violated, resetSeconds: () => MAX_WAIT_SECONDS };
    }
    const shareOf = <Window extends WindowLimit>(limit: Window): Window => {
      return { ...limit, amount: Math.max(1, Math.floor(limit.amount / instances)) };
    };
    const shares = mapAll(windowsIn(state.settings.limits), shareOf);
    const grant = reserveIn(window, nowMs, units, shares, SHORT_LEASE.holdMs);
    if (grant.granted < units) return this.#refused(window, units, grant);
    if (period) period.admitted += units;
    return this.#admitted(window, units, grant, limit && period && { limit, left: share - units, period });
  }

  /** Returns the present period by the wall clock, with what the store's last reply said of it. */
  #periodOf(window: LocalWindow, limit: PeriodLimit): LocalPeriod {
    const { policy } = limit;
    const { startHour } = periodOf(limit, this.#options.clock.nowMs());
    const isKnown = window.period?.startHour === startHour && window.period.policy === policy;
    const period: LocalPeriod = isKnown && window.period ? window.period : { policy, startHour, admitted: 0 };
    window.period = period;
    const count = replyOf(window.state)?.counts.find((each) => each.policy === policy);
    // The reply counts the units that were charged before it.
    if (count?.period?.startHour === startHour) {
      const reported = Math.max(0, period.admitted - unitsUncharged(window));
      // Around its end, the store may have counted reported units in the period before.
      period.left = Math.min(limit.amount, Math.max(0, count.free) + reported);
    }
    return period;
  }

  #admitted(window: LocalWindow, units: number, grant: Grant, inPeriod?: AdmittedInPeriod): Admission {
    const { clock } = this.#options;
    const { bucket, counts } = grant;
    const { state } = window;
    let admitted = window.uncharged.find((each) => each.bucket === bucket && rootIn(each.state) === rootIn(state));
    if (admitted === undefined) {
      admitted = { state, bucket, units: 0, returned: 0, isCharged: false };
      window.uncharged = [...mergeExpired(window.uncharged, this.#nowMs()), admitted];
    }
    admitted.units += units;
    this.#charging.start(CHARGE_INTERVAL_MS);
    const countdowns = counts.map((count) => this.#countdown(count));
    return {
      outcome: 'admitted',
      mode: 'local',
      beginDeadlineMs: clock.monotonicMs() + SHORT_LEASE.usableHoldMs,
      beginDeadlineWallMs: clock.nowMs() + SHORT_LEASE.usableHoldMs,
      settle: (isUsed) => {
        if (isUsed) return;
        giveBack(window, admitted, units);
        if (inPeriod) inPeriod.period.admitted -= units;
      },
      // After the windows comes the period.
      remaining: (index) => counts[index]?.free ?? inPeriod?.left ?? 0,
      resetSeconds: (index) =>
        countdowns[index]?.() ?? (inPeriod ? secondsToEnd(inPeriod.limit, clock.nowMs()) : MAX_WAIT_SECONDS),
    };
  }

  #refused({ state }: LocalWindow, units: number, { counts }: Grant): Admission {
    const short = windowsIn(state.settings.limits).flatMap((limit, index) => {
      const count = counts[index];
      return count && count.free < units ? [{ violation: { ...limit, remaining: count.free }, count }] : [];
    });
    const countdowns = short.map(({ count }) => this.#countdown(count));
    // At least one: the grant was smaller than the need.
    const violated = short.map(({ violation }) => violation) as readonly Violation[] as NonEmpty<Violation>;
    const resetSeconds = (index: number) => countdowns[index]?.() ?? MAX_WAIT_SECONDS;
    return { outcome: 'refused', mode: 'local', violated, resetSeconds };
  }

  #countdown(count: LimitCount): () => number {
    const { clock } = this.#options;
    // Never, if a request takes more than the share: the store may have as many.
    const until = count.waitMs < 0 ? Number.POSITIVE_INFINITY : moreAt(count, clock.monotonicMs());
    return () => Math.min(MAX_WAIT_SECONDS, secondsUntil(until, clock.monotonicMs()));
  }

  #windowOf(state: LimitedCustomer): LocalWindow {
    const window = this.#windowOfCustomer(state);
    const { ceiling } = state.settings;
    if (ceiling === undefined) return window;
    const { limit, usageResetAt: resetAt } = ceiling;
    const known = window.keys.get(limit.root);
    // Keys with one root may disagree: only a later reset begins a new window.
    if (known === undefined || resetAt > known.resetAt)
      window.keys.set(limit.root, { hash: new MemoryHash(), resetAt });
    return window;
  }

  #windowOfCustomer(state: LimitedCustomer): LocalWindow {
    const { customer, settings } = state;
    const known = this.#windows.get(customer);
    if (known !== undefined && known.settings.createdAt === settings.createdAt) {
      if (known.settings.usageResetAt !== settings.usageResetAt) {
        // Units from before a usage reset count in the history and the period alone.
        for (const each of [...known.uncharged, ...(known.charge?.charged ?? [])]) each.bucket = 0;
        Object.assign(known, { hash: new MemoryHash(), advance: undefined });
      }
      if (known.settings.periodResetAt !== settings.periodResetAt) known.period = undefined;
      return Object.assign(known, { state, settings });
    }
    // Those of a deleted customer count nowhere.
    const hash = new MemoryHash();
    const window: LocalWindow = { state, settings, hash, keys: new Map(), uncharged: [], charge: undefined };
    this.#windows.set(customer, window);
    this.#forgetting.start(FORGET_INTERVAL_MS);
    return window;
  }

  #nowMs(): number {
    return this.#timeOf(this.#options.clock.monotonicMs());
  }

  /**
   * Returns Unix time in ms by a clock that never runs faster than true time. A faster one would make local hours
   * shorter, and units older, than by the store's clock.
   */
  #timeOf(monotonicMs: number): number {
    return Math.floor(this.#originMs + monotonicMs / CLOCK_DRIFT);
  }

  #chargeInAdvance(window: LocalWindow, nowMs: number): void {
    const { state } = window;
    const ofCustomer = replyOf(state);
    if (ofCustomer) this.#chargeUsed(window, ofCustomer.counts[0].used, ofCustomer.receivedAt, nowMs);
    const counter = window.keys.get(rootIn(state) ?? '');
    const count = state.lastReply?.counts.find(({ policy }) => policy === 'key');
    if (counter && count && state.lastReply) this.#chargeUsed(counter, count.used, state.lastReply.receivedAt, nowMs);
  }

  #chargeUsed(counter: LocalCounter, used: number, learntAt: number, nowMs: number): void {
    const { advance, hash } = counter;
    if (advance && advance.learntAt >= learntAt) return;
    if (advance) refund(hash, [{ epoch: EPOCH, bucket: advance.bucket, units: advance.units }]);
    const holdEndMs = this.#timeOf(learntAt) + LONG_LEASE.holdMs;
    const units = Math.ceil(used / this.#options.instances());
    charge(hash, HOURLY, nowMs, [{ ageMs: nowMs - holdEndMs, units }], EPOCH);
    const bucket = Math.floor(holdEndMs / HOURLY.bucketMs);
    counter.advance = { learntAt, bucket, units };
  }

  /** Charges one customer at a time, because the store has only just recovered. Resolves to the ms until the next round. */
  async #chargeAll(): Promise<number> {
    let isAnswered = true;
    for (const window of [...this.#windows.values()].filter(hasUncharged)) {
      if (this.#options.storeIsUp(window.state.customer) && !(await this.#charge(window))) isAnswered = false;
    }
    return isAnswered ? CHARGE_INTERVAL_MS : REPEAT_INTERVAL_MS;
  }

  /** Resolves to false if the store did not answer the charge, or refused it. */
  async #charge(window: LocalWindow): Promise<boolean> {
    const { clock, windows } = this.#options;
    const { state } = window;
    const sentAt = clock.monotonicMs();
    const nowMs = this.#timeOf(sentAt);
    const charge = this.#nextCharge(window, sentAt);
    window.charge = charge;
    if (charge === undefined) return true;
    try {
      const { limits } = state.settings;
      const { used, usedOfKeys, period } = await windows.charge(
        state.customer,
        // A unit's request begins upstream before its bucket ends, so that end is the latest possible time.
        charge.charged.map(({ state, bucket, units, grant: { id: grant } }) => {
          return { grant, ageMs: nowMs - (bucket + 1) * HOURLY.bucketMs, units, root: rootIn(state) };
        }),
        periodIn(limits),
      );
      window.charge = undefined;
      const receivedAt = clock.monotonicMs();
      const countOf = ({ policy, amount }: WindowLimit, counted: number): LimitCount => {
        return { policy, free: Math.max(0, amount - counted), used: counted, waitMs: 0, epoch: '', holdEndMs: 0 };
      };
      const ofPeriod = period ? [period] : [];
      const hour = countOf(limits[0], used);
      (state.main ?? state).lastReply = { counts: [hour, ...ofPeriod], receivedAt };
      for (const each of charge.charged) {
        const key = keyIn(each.state.settings.limits);
        const usedOfKey = key && usedOfKeys.get(key.root);
        // What a damaged window of the key does not count goes on counting here.
        if (key && usedOfKey === undefined) refund(window.hash, [refundOf(each, each.units)]);
        else refundIn(window, each, each.units);
        if (key && usedOfKey !== undefined) {
          each.state.lastReply = { counts: [hour, countOf(key, usedOfKey), ...ofPeriod], receivedAt };
        }
        each.isCharged = true;
        each.state.leases.refund(each.grant, each.returned);
      }
      // Charged now, because the state may be evicted before the next outage.
      this.#chargeUsed(window, used, receivedAt, this.#nowMs());
      for (const [root, usedOfKey] of usedOfKeys) {
        const counter = window.keys.get(root);
        if (counter) this.#chargeUsed(counter, usedOfKey, receivedAt, this.#nowMs());
      }
      return true;
    } catch (error) {
      if (!(error instanceof NotRunError)) charge.sinceMs ??= sentAt;
      return false;
    }
  }

  /** Returns the charge that was not answered, or else takes all units that are not charged yet. */
  #nextCharge(window: LocalWindow, nowMs: number): Charge | undefined {
    const { charge, uncharged } = window;
    if (charge && nowMs - (charge.sinceMs ?? nowMs) <= REPEATED_MS) return charge;
    window.uncharged = [];
    // Never settled: the store must not forget the id while an earlier attempt of the charge may still arrive.
    const sentAt = readInstant(this.#options.clock);
    const newGrant = () => new OpenGrant(this.#newGrantId(), Number.POSITIVE_INFINITY, sentAt);
    const charged = uncharged
      .filter(({ units }) => units > 0)
      .map((each) => Object.assign(each, { grant: newGrant() }));
    return charged.length > 0 ? { charged } : undefined;
  }

  #forgetEmpty(): void {
    const nowMs = this.#nowMs();
    for (const [customer, window] of this.#windows) {
      const used = usedIn(window.hash, nowMs);
      for (const [root, { hash }] of window.keys) if (usedIn(hash, nowMs) === 0) window.keys.delete(root);
      const { period } = window;
      const limit = periodIn(window.settings.limits);
      const isPresent = limit && period?.startHour === periodOf(limit, this.#options.clock.nowMs()).startHour;
      // Units that expired here still belong to the usage history, and to their period.
      if (used === 0 && !hasUncharged(window) && !(isPresent && period.admitted > 0)) this.#windows.delete(customer);
    }
  }
}

function reserveIn(
  window: LocalWindow,
  nowMs: number,
  need: number,
  limits: NonEmpty<WindowLimit>,
  holdMs: number,
): Grant {
  const request: WindowRequest = { need, heaviest: need, ahead: 0, limits, holdMs };
  return reserve((root) => window.keys.get(root ?? '')?.hash ?? window.hash, HOURLY, nowMs, request, EPOCH);
}

function usedIn(hash: MemoryHash, nowMs: number): number {
  const request: WindowRequest = { need: 0, ahead: 0, limits: hourly(1), holdMs: 0 };
  return reserve(() => hash, HOURLY, nowMs, request, EPOCH).counts[0].used;
}

/** Returns the root of the key by which a state's requests are admitted, if it has a limit. */
function rootIn({ settings }: LimitedCustomer): WindowRoot {
  return settings.ceiling?.limit.root;
}

/** Returns the last reply about the customer. */
function replyOf({ main, lastReply }: LimitedCustomer): LastReply | undefined {
  return main === undefined ? lastReply : main.lastReply;
}

function refundOf({ bucket }: LocalUnits, units: number): WindowRefund {
  return { epoch: EPOCH, bucket, units };
}

/** Takes units out of all windows that count them. */
function refundIn({ hash, keys }: LocalWindow, admitted: LocalUnits, units: number): void {
  refund(hash, [refundOf(admitted, units)]);
  const counter = keys.get(rootIn(admitted.state) ?? '');
  if (counter) refund(counter.hash, [refundOf(admitted, units)]);
}

function giveBack(window: LocalWindow, admitted: LocalUnits, units: number): void {
  const { state, grant, isCharged, mergedInto } = admitted;
  if (mergedInto) {
    giveBack(window, mergedInto, units);
  } else if (grant === undefined) {
    admitted.units -= units;
    refundIn(window, admitted, units);
  } else if (!isCharged) {
    // Refunded once the charge is answered: a refund that overtakes it would make it void.
    admitted.returned += units;
  } else {
    state.leases.refund(grant, units);
  }
}

/** An admission of the limit of a period, and what it leaves of the share. */
interface AdmittedInPeriod {
  readonly limit: PeriodLimit;
  readonly period: LocalPeriod;
  readonly left: number;
}

function secondsToEnd(limit: PeriodLimit, nowMs: number): number {
  return Math.max(1, Math.ceil((periodOf(limit, nowMs).endHour * HOUR_MS - nowMs) / 1000));
}

/** Returns the units that the store does not count, or may not count. */
function unitsUncharged({ uncharged, charge }: LocalWindow): number {
  return [...uncharged, ...(charge?.charged ?? [])].reduce((sum, { units }) => sum + units, 0);
}

function hasUncharged({ uncharged, charge }: LocalWindow): boolean {
  return charge !== undefined || uncharged.some(({ units }) => units > 0);
}

/** Adds up all expired buckets in bucket 0: the quota does not count them, and the history counts them when charged. */
function mergeExpired(uncharged: readonly LocalUnits[], nowMs: number): readonly LocalUnits[] {
  const isExpired = ({ bucket }: LocalUnits) => dropTimeMs(bucket, HOURLY) <= nowMs;
  const [first, ...others] = uncharged.filter(isExpired);
  if (first === undefined || others.length === 0) return uncharged;
  first.bucket = 0;
  for (const each of others) {
    first.units += each.units;
    // After a usage reset, requests of its bucket may still be waiting.
    each.mergedInto = first;
  }
  return [first, ...uncharged.filter((each) => !isExpired(each))];
}
