/**
 * Decides hourly quotas while the store is unavailable (`store.on_error: local`): each instance limits a customer to its
 * share of the limit, counted in a window in its own memory. For the share and the bound see "While the store is unavailable" in
 * docs/quota.md.
 *
 * Local windows survive the end of an outage: if each outage began with an empty window, an unstable store would let
 * each instance admit a whole share per outage.
 *
 * When the store is available again, locally admitted units are charged to it once, dated no earlier than their
 * requests, and removed here. If the outcome of a charge is unknown, its units stay here until they expire, and are not
 * sent again: counting them twice costs the customer some requests, counting them nowhere would break the guarantee. A
 * charge that the store refused is sent again.
 */
import { CLOCK_DRIFT, type Clock, type Scheduler, secondsUntil } from '../../base/clock.ts';
import { Periodic } from '../../base/periodic.ts';
import { NotChargedError } from '../../store/errors.ts';
import { MemoryHash } from '../../store/memory-hash.ts';
import {
  charge,
  dropTimeMs,
  HOURLY,
  refund,
  reserve,
  type WindowGrant,
  type WindowRequest,
} from '../../store/window-arithmetic.ts';
import { hourly, type WindowStore } from '../../store/windows.ts';
import type { CustomerState } from './customer-state.ts';
import type { Admission, QuotaSettings } from './hourly-quota.ts';
import { LONG_LEASE, moreAt, SHORT_LEASE } from './leases.ts';

/** Delay before each attempt to charge units to the store, so charges begin about this soon after the store is available again. */
const CHARGE_INTERVAL_MS = 500;
/** The same while the store refuses charges: it may do so for hours. */
const REFUSED_INTERVAL_MS = 5000;
const FORGET_INTERVAL_MS = 60_000;
/** The share is a guess: the store may have free units as soon as it is available again. */
const MAX_WAIT_SECONDS = 30;
/** A constant: each refund refers to its own local window, so no epoch is needed to tell windows apart. */
const EPOCH = 'local';

type LimitedCustomer = Pick<CustomerState, 'customer' | 'settings' | 'lastReply'>;

interface LocalWindow {
  state: LimitedCustomer;
  /** With which the window began. */
  readonly settings: QuotaSettings;
  readonly hash: MemoryHash;
  /** Units admitted and not yet charged to the store, by bucket; those of all expired buckets may be in bucket 0. */
  uncharged: Map<number, number>;
  /** Usage from the store's last reply, counted at the end of its holds: until then, its requests may begin. */
  advance: { readonly learntAt: number; readonly bucket: number; readonly units: number } | undefined;
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
    this.#chargeInAdvance(window, state, nowMs);
    const amount = Math.max(1, Math.floor(state.settings.limits[0].amount / this.#options.instances()));
    const grant = reserveIn(window.hash, nowMs, units, amount, SHORT_LEASE.holdMs);
    return grant.granted === units ? this.#admitted(window, units, grant) : this.#refused(window, grant);
  }

  #admitted(window: LocalWindow, units: number, grant: WindowGrant): Admission {
    const { clock } = this.#options;
    const { bucket, counts } = grant;
    if (!window.uncharged.has(bucket)) mergeExpired(window.uncharged, this.#nowMs());
    addUnits(window.uncharged, bucket, units);
    this.#charging.start(CHARGE_INTERVAL_MS);
    return {
      outcome: 'admitted',
      mode: 'local',
      beginDeadlineMs: clock.monotonicMs() + SHORT_LEASE.usableHoldMs,
      beginDeadlineWallMs: clock.nowMs() + SHORT_LEASE.usableHoldMs,
      refund: () => {
        // Units that were already charged stay counted in the store.
        const returned = Math.min(units, window.uncharged.get(bucket) ?? 0);
        if (returned === 0) return;
        addUnits(window.uncharged, bucket, -returned);
        refund(window.hash, [{ epoch: EPOCH, bucket, units: returned }]);
      },
      remaining: () => counts[0].free,
      resetSeconds: this.#countdown(grant),
    };
  }

  #refused({ state }: LocalWindow, grant: WindowGrant): Admission {
    const [hour] = state.settings.limits;
    const violated = [{ ...hour, remaining: grant.counts[0].free }] as const;
    return { outcome: 'refused', mode: 'local', violated, resetSeconds: this.#countdown(grant) };
  }

  #countdown(grant: WindowGrant): () => number {
    const { clock } = this.#options;
    const [hour] = grant.counts;
    // Never, if a request takes more than the share: the store may have as many.
    const until = hour.waitMs < 0 ? Number.POSITIVE_INFINITY : moreAt(hour, clock.monotonicMs());
    return () => Math.min(MAX_WAIT_SECONDS, secondsUntil(until, clock.monotonicMs()));
  }

  #windowOf(state: LimitedCustomer): LocalWindow {
    const { customer, settings } = state;
    const known = this.#windows.get(customer);
    if (known?.settings.usageResetAt === settings.usageResetAt) {
      known.state = state;
      return known;
    }
    // Units from before a usage reset count in the history alone, and those of a deleted customer nowhere.
    const uncharged = new Map(known?.settings.createdAt === settings.createdAt ? known?.uncharged : []);
    mergeExpired(uncharged, Number.POSITIVE_INFINITY);
    const window: LocalWindow = { state, settings, hash: new MemoryHash(), uncharged, advance: undefined };
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

  #chargeInAdvance(window: LocalWindow, { lastReply }: LimitedCustomer, nowMs: number): void {
    const { advance } = window;
    if (lastReply === undefined || (advance && advance.learntAt >= lastReply.receivedAt)) return;
    if (advance) refund(window.hash, [{ epoch: EPOCH, bucket: advance.bucket, units: advance.units }]);
    const holdEndMs = this.#timeOf(lastReply.receivedAt) + LONG_LEASE.holdMs;
    const units = Math.ceil(lastReply.counts[0].used / this.#options.instances());
    charge(window.hash, HOURLY, nowMs, [{ ageMs: nowMs - holdEndMs, units }], EPOCH);
    const bucket = Math.floor(holdEndMs / HOURLY.bucketMs);
    window.advance = { learntAt: lastReply.receivedAt, bucket, units };
  }

  /** Charges one customer at a time, because the store has only just recovered. Resolves to the ms until the next round. */
  async #chargeAll(): Promise<number> {
    let isRefused = false;
    for (const window of [...this.#windows.values()].filter(hasUncharged)) {
      if (this.#options.storeIsUp(window.state.customer) && !(await this.#charge(window))) isRefused = true;
    }
    return isRefused ? REFUSED_INTERVAL_MS : CHARGE_INTERVAL_MS;
  }

  /** Resolves to false if the store refused the charge. */
  async #charge(window: LocalWindow): Promise<boolean> {
    const { state, hash, uncharged } = window;
    const nowMs = this.#nowMs();
    const units = [...uncharged];
    window.uncharged = new Map();
    try {
      const { used } = await this.#options.windows.charge(
        state.customer,
        // A unit's request begins upstream before its bucket ends, so that end is the latest possible time.
        units.map(([bucket, count]) => ({ ageMs: nowMs - (bucket + 1) * HOURLY.bucketMs, units: count })),
      );
      refund(
        hash,
        units.map(([bucket, count]) => ({ epoch: EPOCH, bucket, units: count })),
      );
      const receivedAt = this.#options.clock.monotonicMs();
      const free = Math.max(0, state.settings.limits[0].amount - used);
      const hour = { policy: 'hourly', free, used, waitMs: 0, epoch: '', holdEndMs: 0 } as const;
      state.lastReply = { counts: [hour], receivedAt };
      // Charged now, because the state may be evicted before the next outage.
      this.#chargeInAdvance(window, state, this.#nowMs());
      return true;
    } catch (error) {
      // Else the store may have counted the units: keep them here until they expire, and do not send them again.
      if (!(error instanceof NotChargedError)) return true;
      for (const [bucket, count] of units) addUnits(window.uncharged, bucket, count);
      return false;
    }
  }

  #forgetEmpty(): void {
    const nowMs = this.#nowMs();
    for (const [customer, window] of this.#windows) {
      const [{ used }] = reserveIn(window.hash, nowMs, 0, 1, 0).counts;
      // Units that expired here still belong to the usage history.
      if (used === 0 && !hasUncharged(window)) this.#windows.delete(customer);
    }
  }
}

function reserveIn(hash: MemoryHash, nowMs: number, need: number, amount: number, holdMs: number): WindowGrant {
  const request: WindowRequest = {
    need,
    heaviest: Math.max(1, need),
    ahead: 0,
    limits: hourly(amount),
    holdMs,
    refunds: [],
  };
  return reserve(() => hash, HOURLY, nowMs, request, EPOCH);
}

function hasUncharged({ uncharged }: LocalWindow): boolean {
  return uncharged.size > 0;
}

/** Adds up all expired buckets in bucket 0: the quota does not count them, and the history counts them when charged. */
function mergeExpired(byBucket: Map<number, number>, nowMs: number): void {
  let expired = 0;
  for (const [bucket, units] of byBucket) {
    if (dropTimeMs(bucket, HOURLY) > nowMs) continue;
    expired += units;
    byBucket.delete(bucket);
  }
  if (expired > 0) byBucket.set(0, expired);
}

function addUnits(byBucket: Map<number, number>, bucket: number, units: number): void {
  const sum = (byBucket.get(bucket) ?? 0) + units;
  if (sum === 0) byBucket.delete(bucket);
  else byBucket.set(bucket, sum);
}
