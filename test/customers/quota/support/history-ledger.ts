/**
 * What should be in the usage history, by what gateways did with each grant: it knows of every unit whether a request
 * used it or why it was stranded. Hours are those of the store's clock when it granted a unit.
 */
import { vi } from 'vitest';
import { CustomerLeases } from '../../../../src/customers/quota/leases.ts';
import { HOUR_MS } from '../../../../src/store/usage-history.ts';
import { type ChargedUnits, GRANT_MS, type Grant, type Refund } from '../../../../src/store/windows.ts';
import type { LinkObserver } from '../../../../tools/simulator/simulated-store.ts';

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
/** Refunds that arrive this much before the end of the hour for which an id is known may be too late. */
const UNCERTAIN_MS = 60_000;

/** What the history must have: a model of the rules for late units, told of everything in the order of the store. */
export class HistoryModel {
  readonly hours = new ByHour();
  /** What refunds of closed hours changed: they are subtracted in the hour of the refund, as far as that has units. */
  readonly moved = new ByHour();
  /** The same, one by one: the hours from which and to which units were refunded. */
  readonly late: { readonly from: number; readonly to: number; readonly units: number }[] = [];
  /** A refund came so late that the store may have forgotten its id. */
  isUncertain = false;
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get nowMs(): number {
    return this.#nowMs();
  }

  get hour(): number {
    return Math.floor(this.nowMs / HOUR_MS);
  }

  granted({ hour, units }: GrantedUnits): void {
    this.hours.addTo(hour, units);
  }

  refunded(hour: number, units: number): void {
    const isClosed = (hour + 1) * HOUR_MS + CLOSES_MS <= this.nowMs;
    const countedIn = isClosed ? this.hour : hour;
    const subtracted = Math.min(units, this.hours.get(countedIn) ?? 0);
    this.hours.addTo(countedIn, -subtracted);
    if (isClosed) this.late.push({ from: hour, to: countedIn, units: subtracted });
    this.moved.addTo(hour, units);
    this.moved.addTo(countedIn, -subtracted);
  }
}

/** Of one grant or report. */
interface GrantedUnits {
  readonly isReport: boolean;
  readonly hour: number;
  readonly atMs: number;
  /** 0: a refund came before. */
  readonly units: number;
  /** To the store. */
  returned: number;
  /** By requests that did not return their unit. */
  taken: number;
}

/** Of one gateway. */
export class GatewayLedger implements LinkObserver {
  readonly #model: HistoryModel;
  readonly #grants = new Map<string, GrantedUnits>();

  constructor(model: HistoryModel) {
    this.#model = model;
  }

  /** @throws Error when units are granted of which a refund has come before. */
  granted(id: string, { granted }: Grant): void {
    if (granted === 0) return;
    if (this.#grants.has(id)) throw new Error('units of a known id were granted');
    this.#add(id, granted, false);
  }

  reported({ grant: id, units }: ChargedUnits): void {
    if (!this.#grants.has(id)) this.#add(id, units, true);
  }

  refunded({ grant: id, units: total }: Refund): void {
    const grant = this.#grants.get(id);
    if (grant === undefined) {
      if (total > 0) this.#add(id, 0, false);
      return;
    }
    if (this.#model.nowMs > grant.atMs + GRANT_MS - UNCERTAIN_MS) this.#model.isUncertain = true;
    const units = Math.min(total, grant.units) - grant.returned;
    if (units <= 0) return;
    grant.returned += units;
    this.#model.refunded(grant.hour, units);
  }

  /** Units of leases that requests took and did not return. */
  taken(): ByHour {
    return this.#byHour(({ taken }) => taken);
  }

  /** Units that no request took, and that did not return to the store. */
  stranded(): ByHour {
    return this.#byHour(({ isReport, units, returned, taken }) => (isReport ? 0 : units - returned - taken));
  }

  /** Units of reports, less those that returned. */
  reports(): ByHour {
    return this.#byHour(({ isReport, units, returned }) => (isReport ? units - returned : 0));
  }

  #add(id: string, units: number, isReport: boolean): void {
    const { hour, nowMs: atMs } = this.#model;
    const grant = { isReport, hour, atMs, units, returned: 0, taken: 0 };
    this.#grants.set(id, grant);
    grants.set(id, grant);
    this.#model.granted(grant);
  }

  #byHour(unitsOf: (granted: GrantedUnits) => number): ByHour {
    const sums = new ByHour();
    for (const granted of this.#grants.values()) sums.addTo(granted.hour, unitsOf(granted));
    return sums;
  }
}

/** Of all gateways, by id. */
const grants = new Map<string, GrantedUnits>();

/** Lets ledgers know what gateways do with their leases, until all mocks are restored. */
export function watchLeases(): void {
  const { take, return: giveBack } = CustomerLeases.prototype;
  const note = (id: string, taken: number) => {
    const granted = grants.get(id);
    if (granted === undefined) throw new Error('units of an unknown grant');
    granted.taken += taken;
  };
  vi.spyOn(CustomerLeases.prototype, 'take').mockImplementation(function (this: CustomerLeases, units, now) {
    const lease = take.call(this, units, now);
    if (lease) note(lease.id, units);
    return lease;
  });
  vi.spyOn(CustomerLeases.prototype, 'return').mockImplementation(function (this: CustomerLeases, lease, units, now) {
    note(lease.id, -units);
    giveBack.call(this, lease, units, now);
  });
}
