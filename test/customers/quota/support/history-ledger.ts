/**
 * What should be in the usage history, by what gateways did with each grant: it knows of every unit whether a request
 * used it or why it was stranded. Hours are those of the store's clock when it granted a unit. Only of a refund that the
 * store never heard of the hour is taken from the refund.
 */
import { vi } from 'vitest';
import { CustomerLeases } from '../../../../src/customers/quota/leases.ts';
import { HOUR_MS } from '../../../../src/store/usage-history.ts';
import type { Grant, Refund } from '../../../../src/store/windows.ts';
import type { LinkObserver } from '../../../../tools/simulator/simulated-store.ts';

interface GrantedUnits {
  readonly hour: number;
  readonly units: number;
  isDelivered: boolean;
  /** By requests that did not return their unit. */
  taken: number;
  /** Meant to be refunded. */
  returned: number;
}

/** Units by hour since 1970. */
export class ByHour extends Map<number, number> {
  addTo(hour: number, units: number): void {
    this.set(hour, (this.get(hour) ?? 0) + units);
  }

  add(other: ByHour): this {
    for (const [hour, units] of other) this.addTo(hour, units);
    return this;
  }

  subtract(other: ByHour): this {
    for (const [hour, units] of other) this.addTo(hour, -units);
    return this;
  }

  sum(): number {
    return [...this.values()].reduce((sum, units) => sum + units, 0);
  }

  /** Without hours of 0, oldest first. */
  inOrder(): [hour: number, units: number][] {
    return [...this].filter(([, units]) => units !== 0).toSorted(([a], [b]) => a - b);
  }
}

/** An hour is closed this long after its end. */
const CLOSES_MS = 30_000;

/** What the history must have: a model of the rules for late units, told of everything in the order of the store. */
export class HistoryModel {
  readonly hours = new ByHour();
  /** Units of reports, by the hour of the report. */
  readonly reported = new ByHour();
  /** What refunds of closed hours changed: they are subtracted in the hour of the refund, as far as that has units. */
  readonly moved = new ByHour();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  granted({ storeTimeMs, granted }: Grant): void {
    this.hours.addTo(Math.floor(storeTimeMs / HOUR_MS), granted);
  }

  refunded({ hour, units }: Refund): void {
    const nowMs = this.#nowMs();
    const isClosed = (hour + 1) * HOUR_MS + CLOSES_MS <= nowMs;
    const countedIn = isClosed ? Math.floor(nowMs / HOUR_MS) : hour;
    const subtracted = Math.min(units, this.hours.get(countedIn) ?? 0);
    this.hours.addTo(countedIn, -subtracted);
    this.moved.addTo(hour, units);
    this.moved.addTo(countedIn, -subtracted);
  }

  reportedUnits(units: number): void {
    const hour = Math.floor(this.#nowMs() / HOUR_MS);
    this.hours.addTo(hour, units);
    this.reported.addTo(hour, units);
  }
}

/** Of one gateway. */
export class GatewayLedger implements LinkObserver {
  readonly #model: HistoryModel;
  readonly #granted: GrantedUnits[] = [];
  readonly #handedBack = new ByHour();
  readonly #refunded = new ByHour();
  reportedUnits = 0;

  constructor(model: HistoryModel) {
    this.#model = model;
  }

  granted(grant: Grant): void {
    this.#model.granted(grant);
    const hour = Math.floor(grant.storeTimeMs / HOUR_MS);
    const granted = { hour, units: grant.granted, isDelivered: false, taken: 0, returned: 0 };
    grants.set(grant, granted);
    this.#granted.push(granted);
  }

  delivered(grant: Grant): void {
    const granted = grants.get(grant);
    if (granted) granted.isDelivered = true;
  }

  handedBack({ hour, units }: Refund): void {
    this.#handedBack.addTo(hour, units);
  }

  refunded(refund: Refund): void {
    this.#model.refunded(refund);
    const { hour, units } = refund;
    this.#refunded.addTo(hour, units);
  }

  reported(units: number): void {
    this.#model.reportedUnits(units);
    this.reportedUnits += units;
  }

  /** Units that requests took and did not return. */
  taken(): ByHour {
    return this.#byHour(({ taken }) => taken);
  }

  /** Units whose refund was not sent yet. 0 for each hour in the end, unless the gateway crashed. */
  waitingForRefund(): ByHour {
    return this.#byHour(({ returned }) => returned).subtract(this.#handedBack);
  }

  /** Units that are left in leases. None in the end, unless the gateway crashed. */
  unused(): ByHour {
    return this.#byHour(({ isDelivered, units, taken, returned }) => (isDelivered ? units - taken - returned : 0));
  }

  /** Units of lost replies, and of refunds that the store never heard of. */
  lost(): ByHour {
    const undelivered = this.#byHour(({ isDelivered, units }) => (isDelivered ? 0 : units));
    return undelivered.add(this.#handedBack).subtract(this.#refunded);
  }

  #byHour(unitsOf: (granted: GrantedUnits) => number): ByHour {
    const sums = new ByHour();
    for (const granted of this.#granted) sums.addTo(granted.hour, unitsOf(granted));
    return sums;
  }
}

/** By the object that the gateway got. */
const grants = new WeakMap<Grant, GrantedUnits>();

/** Lets ledgers know what gateways do with their leases, until all mocks are restored. */
export function watchLeases(): void {
  const { take, return: giveBack, refund } = CustomerLeases.prototype;
  const of = (grant: Grant): GrantedUnits => {
    const granted = grants.get(grant);
    if (granted === undefined) throw new Error('units of an unknown grant');
    return granted;
  };
  vi.spyOn(CustomerLeases.prototype, 'take').mockImplementation(function (this: CustomerLeases, units, now) {
    const lease = take.call(this, units, now);
    if (lease) of(lease.grant).taken += units;
    return lease;
  });
  vi.spyOn(CustomerLeases.prototype, 'return').mockImplementation(function (this: CustomerLeases, lease, units, now) {
    of(lease.grant).taken -= units;
    giveBack.call(this, lease, units, now);
  });
  vi.spyOn(CustomerLeases.prototype, 'refund').mockImplementation(function (this: CustomerLeases, grant, ...args) {
    of(grant).returned += args[0];
    refund.call(this, grant, ...args);
  });
}
