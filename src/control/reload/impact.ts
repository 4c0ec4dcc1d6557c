/**
 * Shows which customers new limits affect: compares each customer's limit before and after with its usage in the last
 * hour. Reads in pages, so that other store calls are not delayed for long. The result is bounded, however many customers
 * there are.
 */
import type { Clock } from '../../base/clock.ts';
import {
  effectiveLimit,
  type LimitPolicy,
  type PlanPolicy,
  planNameOf,
} from '../../customers/quota/effective-limit.ts';
import type { CustomerRecord } from '../../store/record-fields.ts';
import type { UsageReader } from '../../store/windows.ts';
import { type CustomerLists, everyCustomer } from './customers.ts';

/** From this fraction of its limit on, a customer counts as near it. */
const NEAR_RATIO = 0.8;
/** Maximum number of customers in each list. */
const MAX_LISTED = 100;

export interface LimitChange {
  /** The current name; undefined in a group of customers on different plans. */
  readonly plan: string | undefined;
  /** Undefined without a limit: every request is refused. */
  readonly before: number | undefined;
  readonly after: number | undefined;
}

interface CustomerImpact extends LimitChange {
  readonly customer: string;
  readonly customerName: string | undefined;
  /** As named in the customer's record. */
  readonly plan: string;
  readonly used: number;
  readonly state: 'refused' | 'near';
}

/** A customer whose limit changes, and is set by an override before or after the change. */
interface OverrideChange extends LimitChange {
  readonly customer: string;
  readonly used: number;
}

/** Customers whose limits change in the same way, or all whose limit is set by an override before or after. */
interface ImpactGroup extends LimitChange {
  /** `starter 1000 → 800`, or `overrides`, which has neither plan nor limits. */
  readonly label: string;
  readonly customers: number;
  /** Customers of the group that have used up the new limit, or have none. */
  readonly refused: number;
}

const NO_CUSTOMERS = {
  total: 0,
  raised: 0,
  lowered: 0,
  /** Without a limit before, and with one after. */
  gained: 0,
  /** With a limit before, and without one after. */
  lost: 0,
  /** The limits after would refuse them now. */
  refused: 0,
  /** The limits after would refuse them now, and the limits before would not. */
  newlyRefused: 0,
  /** They have used at least 80 % of the limit after, but not all of it. */
  near: 0,
};

export interface Impact {
  /** Numbers of customers. */
  readonly customers: Readonly<typeof NO_CUSTOMERS>;
  readonly groups: readonly ImpactGroup[];
  /** The first 100. */
  readonly overrides: readonly OverrideChange[];
  /**
   * At most 100 refused and near customers: first those whose limit changes, each part by falling share of the limit used,
   * those without a limit first.
   */
  readonly closest: readonly CustomerImpact[];
}

export interface ImpactParts {
  readonly records: CustomerLists;
  readonly usages: UsageReader;
  /** Wall time by which temporary limits end. */
  readonly limitClock: Pick<Clock, 'nowMs'>;
}

interface ImpactOptions {
  /** Assesses only customers whose limits change; `total` still counts all. */
  readonly changedOnly?: boolean;
  readonly signal?: AbortSignal;
}

interface CustomerLimits extends Pick<LimitChange, 'before' | 'after'> {
  readonly record: CustomerRecord;
  /** Whether one of the limits is set by an override. */
  readonly byOverride: boolean;
}

/** Compares two sets of limits. Rejects with StoreUnavailableError, or when `signal` aborts. */
export async function assessImpact(
  before: LimitPolicy,
  after: LimitPolicy,
  { records, usages, limitClock }: ImpactParts,
  { changedOnly = false, signal }: ImpactOptions = {},
): Promise<Impact> {
  const tally = new Tally(before, after);
  for await (const page of everyCustomer(records, signal)) {
    tally.counts.total += page.length;
    const all = page.map((record) => limitsOf(record, before, after, limitClock));
    const assessed = changedOnly ? all.filter((limits) => limits.before !== limits.after) : all;
    const used = await usages.usedOf(
      assessed.map((limits) => ({
        customer: limits.record.id,
        from: Math.floor(NEAR_RATIO * Math.min(limits.before ?? 0, limits.after ?? 0)),
      })),
    );
    for (const [index, limits] of assessed.entries()) tally.add(limits, used[index] ?? 0);
  }
  return tally.result();
}

function limitsOf(
  record: CustomerRecord,
  before: LimitPolicy,
  after: LimitPolicy,
  clock: Pick<Clock, 'nowMs'>,
): CustomerLimits {
  const [old, next] = [effectiveLimit(record, before, clock), effectiveLimit(record, after, clock)];
  return {
    record,
    before: old.found ? old.requestsPerHour : undefined,
    after: next.found ? next.requestsPerHour : undefined,
    byOverride: [old, next].some((limit) => limit.found && limit.source === 'override'),
  };
}

class Tally {
  readonly #after: LimitPolicy;
  readonly counts = { ...NO_CUSTOMERS };
  readonly #groups = new Map<string, LimitChange & { customers: number; refused: number }>();
  readonly #overrides: OverrideChange[] = [];
  #closest: CustomerImpact[] = [];

  constructor(before: LimitPolicy, after: LimitPolicy) {
    this.#after = after;
    // Plans whose limits change are reported even if they have no customers.
    for (const [name, plan] of before.plans) {
      const current = planNameOf(name, after);
      const [old, next] = [numberOf(plan), current === undefined ? undefined : numberOf(after.plans.get(current))];
      if (old === undefined || next === undefined || old === next) continue;
      const change = { plan: current, before: old, after: next };
      this.#groups.set(labelOf(change), { ...change, customers: 0, refused: 0 });
    }
  }

  add(limits: CustomerLimits, used: number): void {
    const { counts } = this;
    const { before, after } = limits;
    const isRefused = after === undefined || used >= after;
    if (before !== after) {
      if (before === undefined) counts.gained++;
      else if (after === undefined) counts.lost++;
      else if (after > before) counts.raised++;
      else counts.lowered++;
      this.#group(limits, used, isRefused);
    }
    if (isRefused) {
      counts.refused++;
      if (before !== undefined && used < before) counts.newlyRefused++;
    }
    const isNear = !isRefused && used >= NEAR_RATIO * after;
    if (isNear) counts.near++;
    if (!isRefused && !isNear) return;
    const { id: customer, name: customerName, plan } = limits.record;
    this.#closest.push({ customer, customerName, plan, before, after, used, state: isRefused ? 'refused' : 'near' });
    if (this.#closest.length >= 4 * MAX_LISTED) this.#trimClosest();
  }

  result(): Impact {
    this.#trimClosest();
    const groups = [...this.#groups].map(([label, group]) => ({ label, ...group }));
    return { customers: this.counts, groups, overrides: this.#overrides, closest: this.#closest };
  }

  #group({ record, before, after, byOverride }: CustomerLimits, used: number, isRefused: boolean): void {
    const change = { plan: planNameOf(record.plan, this.#after) ?? record.plan, before, after };
    if (byOverride && this.#overrides.length < MAX_LISTED) {
      this.#overrides.push({ customer: record.id, ...change, used });
    }
    const label = byOverride ? 'overrides' : labelOf(change);
    const shared = byOverride ? { plan: undefined, before: undefined, after: undefined } : change;
    const group = this.#groups.get(label) ?? { ...shared, customers: 0, refused: 0 };
    group.customers++;
    if (isRefused) group.refused++;
    this.#groups.set(label, group);
  }

  #trimClosest(): void {
    this.#closest = this.#closest
      .toSorted((a, b) => Number(isChanged(b)) - Number(isChanged(a)) || ratioOf(b) - ratioOf(a))
      .slice(0, MAX_LISTED);
  }
}

/** Returns text such as `1000 → 800`. */
export function limitChange({ before, after }: LimitChange): string {
  return `${before ?? 'none'} → ${after ?? 'none'}`;
}

function labelOf(change: LimitChange): string {
  return `${change.plan} ${limitChange(change)}`;
}

/** Returns the limit of a plan; undefined if each of its customers has its own. */
function numberOf(plan: PlanPolicy | undefined): number | undefined {
  return typeof plan?.requestsPerHour === 'number' ? plan.requestsPerHour : undefined;
}

const isChanged = ({ before, after }: CustomerImpact) => before !== after;

function ratioOf({ after, used }: CustomerImpact): number {
  return after === undefined ? Number.MAX_VALUE : used / after;
}
