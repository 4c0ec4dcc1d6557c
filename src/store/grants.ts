/**
 * The ids of grants: what makes a refund, and a report of units, safe to repeat.
 *
 * With each reservation the gateway sends an id that no other has, and the store notes what it granted under it. A refund
 * says how many units of that grant are back in total, and the store gives back the difference to what it noted. So a
 * gateway repeats a refund until it is answered, even if an earlier one ran and only its reply was lost. If the reply to a
 * reservation was lost, the gateway refunds all that it asked for; if that refund overtakes the reservation, its id is
 * noted as void, and the reservation grants nothing.
 *
 * redis/window/*.lua is the same inside Redis. A test feeds both the same histories.
 */
import { mapAll, type NonEmpty } from '../base/non-empty.ts';
import { anchorText, countInPeriod, type PeriodHash, refundInPeriod } from './period-counts.ts';
import { HOUR_MS, unlessClosed } from './usage-history.ts';
import { charge, lineageOf, refund, reserve, type WindowHash, type WindowShape } from './window-arithmetic.ts';
import {
  type ChargedCounts,
  type ChargedUnits,
  type Grant,
  type PeriodLimit,
  periodIn,
  type Refund,
  type ReserveRequest,
  refusesBeyond,
  type WindowRoot,
  windowsIn,
} from './windows.ts';

/** What the store notes of a grant or report. Without `granted` units it is void. */
export interface StoredGrant {
  readonly granted: number;
  /** So far. */
  readonly returned: number;
  /** Of the grant in the store's time, as the number of hours since 1970. */
  readonly hour: number;
  readonly bucket: number;
  /** Of the windows that counted it, in the order of its limits. */
  readonly epochs: readonly string[];
  /** Of the periods that counted it: see {@link anchorText}. */
  readonly anchor: string | undefined;
}

/** The grants of one customer as stored. The caller makes each operation atomic, and drops ids that are too old. */
export interface GrantNotes {
  get(id: string): StoredGrant | undefined;
  set(id: string, grant: StoredGrant): void;
  delete(id: string): void;
}

/** Units of one grant that return to its windows now. */
type ReturnedUnits = Omit<StoredGrant, 'granted' | 'returned'> & { readonly units: number };

/** Notes refunds, and returns what they give back. `hour`: now, as that of a grant. */
function noteRefunds(notes: GrantNotes, refunds: readonly Refund[], hour: number): readonly ReturnedUnits[] {
  const returned: ReturnedUnits[] = [];
  const settled: string[] = [];
  for (const { grant: id, units: total, isFinal } of refunds) {
    const stored = total > 0 ? notes.get(id) : undefined;
    if (total > 0 && stored === undefined) {
      notes.set(id, { granted: 0, returned: 0, hour, bucket: 0, epochs: [], anchor: undefined });
      continue;
    }
    const isVoid = stored?.granted === 0;
    const units = stored && !isVoid ? Math.min(total, stored.granted) - stored.returned : 0;
    if (stored && units > 0) {
      returned.push({ ...stored, units });
      notes.set(id, { ...stored, returned: stored.returned + units });
    }
    if (isFinal && !isVoid) settled.push(id);
  }
  for (const id of settled) notes.delete(id);
  return returned;
}

/** What is stored of one customer. The caller makes each operation atomic. */
export interface CustomerCounters {
  windowOf(root: WindowRoot): WindowHash;
  readonly periods: PeriodHash;
  readonly notes: GrantNotes;
  /**
   * Adds units to the usage history, and returns how many. Of negative ones, it adds as many as the hour has. `hour`: as
   * that of a grant.
   */
  addToHistory(hour: number, units: number): number;
}

/** Applies refunds, and returns how many units returned to the first window. */
export function refundOnce(
  { windowOf, periods, notes, addToHistory }: CustomerCounters,
  roots: NonEmpty<WindowRoot>,
  nowMs: number,
  refunds: readonly Refund[],
): number {
  const returned = noteRefunds(notes, refunds, hourOf(nowMs));
  if (returned.length === 0) return 0;
  const head = windowOf(roots[0]).head();
  for (const { hour, units, epochs, anchor } of returned) {
    // The history has what any epoch of this lineage granted. A deletion and a loss of data begin another lineage.
    if (head === undefined || lineageOf(epochs[0] ?? '') !== lineageOf(head.epoch)) continue;
    const openHour = unlessClosed(hour, nowMs);
    const fromHistory = -addToHistory(openHour, -units);
    if (anchor !== undefined && fromHistory > 0) refundInPeriod(periods, anchor, openHour, fromHistory);
  }
  const [refunded] = mapAll(roots, (root, index) =>
    refund(
      windowOf(root),
      returned.map(({ epochs, bucket, units }) => ({ epoch: epochs[index] ?? '', bucket, units })),
    ),
  );
  return refunded;
}

/** Applies refunds, then reserves units, and notes the grant. */
export function reserveOnce(
  counters: CustomerCounters,
  shape: WindowShape,
  nowMs: number,
  { grant: id, refunds, ...request }: Omit<ReserveRequest, 'customer'>,
  freshEpoch: string,
): Grant & { readonly refunded: number } {
  const { windowOf, periods, notes, addToHistory } = counters;
  const [windows, period] = [windowsIn(request.limits), periodIn(request.limits)];
  const roots = mapAll(windows, ({ root }) => root);
  const refunded = refundOnce(counters, roots, nowMs, refunds);
  const isVoid = notes.get(id) !== undefined;
  const inPeriod = (units: number) => period && countInPeriod(periods, period, nowMs, units);
  const left = inPeriod(0);
  const available = left && refusesBeyond(left) ? left.free : Number.POSITIVE_INFINITY;
  const asked = { ...request, limits: windows, ...(isVoid && { need: 0, ahead: 0 }) };
  const grant = reserve(windowOf, shape, nowMs, asked, freshEpoch, available);
  const { granted, bucket, counts } = grant;
  if (granted > 0) {
    const epochs = counts.map(({ epoch }) => epoch);
    const anchor = period && anchorText(period);
    notes.set(id, { granted, returned: 0, hour: hourOf(nowMs), bucket, epochs, anchor });
    addToHistory(hourOf(nowMs), granted);
  }
  const counted = inPeriod(granted);
  const [{ holdEndMs }] = counts;
  return { ...grant, ...(counted && { counts: [...counts, { ...counted, holdEndMs }] }), refunded };
}

/** Counts the units of those ids that are not known. */
export function chargeOnce(
  { windowOf, periods, notes, addToHistory }: CustomerCounters,
  shape: WindowShape,
  nowMs: number,
  charged: readonly ChargedUnits[],
  freshEpoch: string,
  period: PeriodLimit | undefined,
): ChargedCounts {
  const hour = hourOf(nowMs);
  const fresh = charged.filter(({ grant }) => notes.get(grant) === undefined);
  const chargedTo = (root: WindowRoot, units: readonly ChargedUnits[]) =>
    charge(windowOf(root), shape, nowMs, units, freshEpoch);
  const { used, epoch, buckets } = chargedTo(undefined, fresh);
  const ofKeys = new Map(
    rootsIn(charged).map((root) => [
      root,
      chargedTo(
        root,
        fresh.filter((each) => each.root === root),
      ),
    ]),
  );
  const anchor = period && anchorText(period);
  for (const [index, { grant, units, root = '' }] of fresh.entries()) {
    const epochs = [epoch, ...(ofKeys.has(root) ? [ofKeys.get(root)?.epoch ?? ''] : [])];
    notes.set(grant, { granted: units, returned: 0, hour, bucket: buckets[index] ?? 0, epochs, anchor });
    // Not in the hour and the period in which they were admitted: they may be closed.
    addToHistory(hour, units);
    if (period) countInPeriod(periods, period, nowMs, units);
  }
  const usedOfKeys = new Map([...ofKeys].map(([root, counts]) => [root, counts.used]));
  return { used, usedOfKeys, period: period && countInPeriod(periods, period, nowMs, 0) };
}

/** Returns the roots of the keys that are charged, each once. */
export function rootsIn(charged: readonly ChargedUnits[]): readonly string[] {
  return [...new Set(charged.flatMap(({ root }) => root ?? []))];
}

function hourOf(nowMs: number): number {
  return Math.floor(nowMs / HOUR_MS);
}
