/**
 * Leases: units that the store has granted to this instance. Requests are admitted on them until they end; units that no
 * request used are refunded.
 */
import { CLOCK_DRIFT, type Clock, type Scheduler, secondsUntil } from '../../base/clock.ts';
import { DueQueue } from '../../base/due-queue.ts';
import type { NonEmpty } from '../../base/non-empty.ts';
import { GRANT_MS, type Grant, type LimitCount, type WindowRoot, type WindowStore } from '../../store/windows.ts';
import type { Admitted, QuotaMode } from './hourly-quota.ts';
import { type Instant, OpenGrant, readInstant, type SentRefund } from './open-grant.ts';

/** An admitted request may begin upstream for this long after its lease has ended. */
const DISPATCH_MS = 1000;
/** How long refunds wait for others. */
const REFUND_DELAY_MS = 250;
/** Refunds that were not answered are sent again after this. */
const REPEAT_REFUND_MS = 5000;
/** Unused units are refunded at most this long after the last hold; a remembered refusal may then be wrong. */
export const REFUND_GRACE_MS = 2 * REFUND_DELAY_MS;
/** Only this share of each period is used, so that a clock up to 1 % slower than the store's does no harm. */
const USABLE_SHARE = 0.99;

/** How long a lease lasts. Units are counted at the end of the hold: the last instant at which its requests may begin. */
export interface LeaseLength {
  /** For this long after the reservation was sent, the lease admits requests. */
  readonly usableLeaseMs: number;
  readonly holdMs: number;
  /** For this long after the reservation was sent, a request of the lease may begin. */
  readonly usableHoldMs: number;
  /** How long the units that are unused at the end wait for others, to be refunded in one call. */
  readonly refundDelayMs: number;
}

function lengthOf(leaseMs: number, refundDelayMs: number): LeaseLength {
  const holdMs = leaseMs + DISPATCH_MS;
  return { usableLeaseMs: leaseMs * USABLE_SHARE, holdMs, usableHoldMs: holdMs * USABLE_SHARE, refundDelayMs };
}

export const SHORT_LEASE: LeaseLength = lengthOf(1000, REFUND_DELAY_MS);
/**
 * For a customer with few requests, far from its limit. The hold is the longest one that the store permits. Unused units
 * wait about until its end: the next reservation may take them along.
 */
export const LONG_LEASE: LeaseLength = lengthOf(9000, DISPATCH_MS + REFUND_DELAY_MS);

/** The store's last reply. */
export interface LastReply {
  /** In the order of the customer's limits. */
  readonly counts: NonEmpty<LimitCount>;
  /** Monotonic ms. */
  readonly receivedAt: number;
}

/**
 * Returns the monotonic ms at which the store's wait is over, even if this clock runs faster than the store's. For the end
 * of a period, which may be weeks away, that would be much too late: replies are recent, so this clock is not off by much.
 */
export function moreAt({ waitMs, period }: Pick<LimitCount, 'waitMs' | 'period'>, receivedAt: number): number {
  return receivedAt + waitMs * (period ? 1 : CLOCK_DRIFT);
}

/** Returns the seconds until {@link moreAt}, at least 1. */
export function secondsUntilMore(atMs: number, nowMs: number, isOfPeriod: boolean): number {
  return isOfPeriod ? Math.max(1, Math.ceil((atMs - nowMs) / 1000)) : secondsUntil(atMs, nowMs);
}

/**
 * Units of one grant, handed out to requests until the lease ends. The grant and its lease are one object: with many
 * customers, each further one is a cache miss.
 */
export class Lease extends OpenGrant {
  /** Units left to hand out. */
  units: number;
  readonly grant: Grant;
  readonly length: LeaseLength;

  /** `id`: that of the reservation. `sentAt`: before it was sent, so that the lease ends before the store's hold does. */
  constructor(id: string, grant: Grant, sentAt: Instant, length: LeaseLength) {
    super(id, grant.granted, sentAt);
    this.units = grant.granted;
    this.grant = grant;
    this.length = length;
  }

  /** Monotonic ms. */
  get endsAt(): number {
    return this.sentAt.monotonicMs + this.length.usableLeaseMs;
  }

  /** Returns whether the lease admits requests now, by both clocks. */
  runsAt({ monotonicMs, wallMs }: Instant): boolean {
    const { usableLeaseMs } = this.length;
    return monotonicMs - this.sentAt.monotonicMs < usableLeaseMs && wallMs - this.sentAt.wallMs < usableLeaseMs;
  }

  /**
   * Returns how long a request that is admitted now may take to begin, as deadlines by both clocks. At most as long as
   * with a short lease: the effect of a usage reset or a lower limit must not wait for a request in a queue.
   */
  beginDeadline(now: Instant): Instant {
    const { usableHoldMs } = this.length;
    const { usableHoldMs: longestMs } = SHORT_LEASE;
    return {
      monotonicMs: Math.min(this.sentAt.monotonicMs + usableHoldMs, now.monotonicMs + longestMs),
      wallMs: Math.min(this.sentAt.wallMs + usableHoldMs, now.wallMs + longestMs),
    };
  }
}

/** Shared by customers that have none: with many customers, each object is a cache miss. */
const NO_LEASES: readonly Lease[] = [];
const NO_GRANTS: readonly OpenGrant[] = [];

interface OpenLease {
  readonly leases: CustomerLeases;
  readonly lease: Lease;
}

/** Ends the leases of all customers in time, and sends their refunds. */
export class LeaseTimers {
  readonly clock: Clock;
  readonly windows: Pick<WindowStore, 'refund'>;
  readonly #short: DueQueue<OpenLease>;
  readonly #long: DueQueue<OpenLease>;
  readonly #refunds: Readonly<Record<number, DueQueue<CustomerLeases>>>;

  constructor(parts: {
    readonly clock: Clock;
    readonly scheduler: Scheduler;
    readonly windows: Pick<WindowStore, 'refund'>;
  }) {
    this.clock = parts.clock;
    this.windows = parts.windows;
    const end = ({ leases, lease }: OpenLease) => leases.leaseIsOver(lease);
    const refund = (leases: CustomerLeases) => leases.refundsAreDue();
    this.#short = new DueQueue(parts, end);
    this.#long = new DueQueue(parts, end);
    const delays = [SHORT_LEASE.refundDelayMs, LONG_LEASE.refundDelayMs, REPEAT_REFUND_MS];
    this.#refunds = Object.fromEntries(delays.map((delayMs) => [delayMs, new DueQueue(parts, refund)]));
  }

  endLater(leases: CustomerLeases, lease: Lease): void {
    (lease.length === LONG_LEASE ? this.#long : this.#short).add({ leases, lease }, lease.endsAt);
  }

  refundLater(leases: CustomerLeases, delayMs: number, dueMs: number): void {
    this.#refunds[delayMs]?.add(leases, dueMs);
  }
}

/**
 * The units of one customer that the store counts and no request uses: in open leases, or waiting to be refunded.
 *
 * A unit belongs to its lease and never moves to a newer one. Units of an ended lease are never handed out again, even
 * if a request returns its unit later.
 */
export class CustomerLeases {
  readonly #customer: string;
  readonly #root: WindowRoot;
  readonly #timers: LeaseTimers;
  /** Those with units left, in the order in which they got their first unit. */
  #open = NO_LEASES;
  /** Those of which the store has to be told something. */
  #grants = NO_GRANTS;
  /** Monotonic ms; undefined while no refund waits. */
  #refundsDueMs: number | undefined;
  /** Monotonic ms. Leases that were requested until then admit no more requests. */
  #endedAtMs = Number.NEGATIVE_INFINITY;
  /** Units taken from these leases and not returned. */
  admitted = 0;

  /** `root`: of the key whose window counts the units, too. */
  constructor(customer: string, timers: LeaseTimers, root?: WindowRoot) {
    this.#customer = customer;
    this.#timers = timers;
    this.#root = root;
  }

  get clock(): Clock {
    return this.#timers.clock;
  }

  /** Open leases with units left, in the order in which {@link take} uses them. */
  get open(): readonly Lease[] {
    return this.#open;
  }

  get unitsLeft(): number {
    let units = 0;
    for (const lease of this.#open) units += lease.units;
    return units;
  }

  get unusedUnits(): number {
    let units = this.unitsLeft;
    for (const grant of this.#grants) units += grant.unconfirmed;
    return units;
  }

  add(lease: Lease): void {
    if (lease.units === 0) return;
    this.#open = [...this.#open, lease];
    this.#timers.endLater(this, lease);
  }

  leaseIsOver(lease: Lease): void {
    if (this.#open.includes(lease)) this.#end(lease);
  }

  /** Sends the refunds, unless they were sent meanwhile and others wait. */
  refundsAreDue(): void {
    if (this.#refundsDueMs !== undefined && this.#refundsDueMs <= this.#timers.clock.monotonicMs()) {
      void this.sendRefunds();
    }
  }

  /** Takes the units of a request from one lease. Returns it; undefined when no lease admits the request now. */
  take(units: number, now: Instant): Lease | undefined {
    for (const lease of this.#open) {
      if (!lease.runsAt(now)) {
        this.#end(lease);
      } else if (lease.units >= units) {
        lease.units -= units;
        if (lease.units === 0) this.#remove(lease);
        this.admitted += units;
        return lease;
      }
    }
    return undefined;
  }

  /** Units that were taken reached the upstream: nobody returns them. */
  use(lease: Lease, units: number): void {
    lease.use(units);
    // The next call tells it. Without one, the store forgets the id by itself.
    if (lease.isSettled) this.#queue(lease);
  }

  /** Returns units: to their lease if that still admits requests, else to the store. */
  return(lease: Lease, units: number, now: Instant): void {
    this.admitted -= units;
    if (lease.sentAt.monotonicMs <= this.#endedAtMs || !lease.runsAt(now)) {
      this.refund(lease, units);
      return;
    }
    if (lease.units === 0) this.#open = [...this.#open, lease];
    lease.units += units;
  }

  /** Ends all leases, those included that have no units left now and may get some back. */
  end(now: Instant): void {
    this.#endedAtMs = now.monotonicMs;
    this.endOpen();
  }

  /** Ends the leases that have units left. */
  endOpen(): void {
    for (const lease of this.#open) this.#end(lease);
  }

  /** Refunds all units that the store has granted, or may have granted, to a reservation that became no lease. */
  refundAll(id: string, units: number): void {
    this.refund(new OpenGrant(id, units, readInstant(this.clock)), units);
  }

  /** Refunds units soon, together with others. */
  refund(grant: OpenGrant, units: number, delayMs = REFUND_DELAY_MS): void {
    if (units === 0) return;
    grant.giveBack(units);
    this.#refundLater(grant, delayMs);
  }

  /** Removes and returns the refunds that wait, for the next call. {@link answered} must be told what became of it. */
  takeRefunds(): readonly SentRefund[] {
    const taken = this.#grants;
    this.#grants = NO_GRANTS;
    this.#refundsDueMs = undefined;
    return taken.map((grant) => grant.refund());
  }

  /** Refunds without an answer are sent again: they count once. After an hour the store may not know their ids. */
  answered(refunds: readonly SentRefund[], isAnswered: boolean): void {
    const nowMs = this.clock.monotonicMs();
    for (const refund of refunds) {
      const { of } = refund;
      of.isQueued = false;
      if (isAnswered ? !of.confirm(refund) : nowMs - of.sentAt.monotonicMs > GRANT_MS / CLOCK_DRIFT) continue;
      if (of.unconfirmed > 0) this.#refundLater(of, isAnswered ? REFUND_DELAY_MS : REPEAT_REFUND_MS);
      else this.#queue(of);
    }
  }

  async sendRefunds(): Promise<void> {
    const refunds = this.takeRefunds();
    if (refunds.length === 0) return;
    await this.#timers.windows.refund(this.#customer, refunds, this.#root).then(
      () => this.answered(refunds, true),
      () => this.answered(refunds, false),
    );
  }

  #refundLater(grant: OpenGrant, delayMs: number): void {
    this.#queue(grant);
    if (this.#refundsDueMs !== undefined) return;
    this.#refundsDueMs = this.clock.monotonicMs() + delayMs;
    this.#timers.refundLater(this, delayMs, this.#refundsDueMs);
  }

  #queue(grant: OpenGrant): void {
    if (grant.isQueued) return;
    grant.isQueued = true;
    this.#grants = [...this.#grants, grant];
  }

  #remove(lease: Lease): void {
    const open = this.#open.filter((each) => each !== lease);
    this.#open = open.length > 0 ? open : NO_LEASES;
  }

  #end(lease: Lease): void {
    this.#remove(lease);
    const { units } = lease;
    lease.units = 0;
    this.refund(lease, units, lease.length.refundDelayMs);
  }
}

/** An admission on units of a lease. Not an object literal: its two closures would be larger than all the rest. */
export class LeaseAdmission implements Admitted {
  readonly outcome = 'admitted';
  readonly mode: QuotaMode;
  readonly beginDeadlineMs: number;
  readonly beginDeadlineWallMs: number;
  readonly #leases: CustomerLeases;
  readonly #lease: Lease;
  readonly #units: number;
  readonly #reply: LastReply | undefined;
  readonly #unitsLeft: number;

  /** Takes `units` of the lease as taken already. `reply`: the store's last one to this instance. */
  constructor(
    leases: CustomerLeases,
    lease: Lease,
    units: number,
    now: Instant,
    mode: QuotaMode,
    reply: LastReply | undefined,
  ) {
    const deadline = lease.beginDeadline(now);
    this.mode = mode;
    this.beginDeadlineMs = deadline.monotonicMs;
    this.beginDeadlineWallMs = deadline.wallMs;
    this.#leases = leases;
    this.#lease = lease;
    this.#units = units;
    this.#reply = reply;
    this.#unitsLeft = leases.unitsLeft;
  }

  settle(isUsed: boolean): void {
    if (isUsed) this.#leases.use(this.#lease, this.#units);
    else this.#leases.return(this.#lease, this.#units, readInstant(this.#leases.clock));
  }

  remaining(limit: number): number {
    return (this.#reply?.counts[limit]?.free ?? 0) + this.#unitsLeft;
  }

  resetSeconds(limit: number): number {
    const count = this.#reply?.counts[limit];
    const moreAtMs = this.#reply && count ? moreAt(count, this.#reply.receivedAt) : 0;
    return secondsUntilMore(moreAtMs, this.#leases.clock.monotonicMs(), count?.period !== undefined);
  }
}
