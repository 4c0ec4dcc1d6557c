/**
 * The hourly window: how units are counted, dropped and refunded.
 *
 * A customer's window is a set of buckets of `bucketMs` each and a head that sums them up. Bucket `b` covers the store
 * times from `b * bucketMs` up to `(b + 1) * bucketMs`.
 *
 * `reserve` counts its units in the bucket of `now + holdMs`: the last instant at which a request on this grant may
 * reach the upstream. The bucket is dropped one window after its own end. Units granted from then on reach the upstream
 * at least one whole window after all units of the dropped bucket. So no interval of `windowMs` sees more than the
 * limit.
 *
 * `granted` is `need`, as far as units are free, plus at most an eighth of the units that are still free then, for
 * `ahead`: far from the limit this saves calls, near it every request is decided alone. With a long hold it is at most a
 * 64th, because others may need the units meanwhile. When too few are free, only whole requests of the heaviest kind are
 * granted, so a refused request keeps no units from lighter ones. A reservation of several limits takes the same units from each of
 * their windows: as many as the one with the fewest free units gives. So a refusal by one uses nothing of the others.
 *
 * `charge` counts units that were admitted while the store was unavailable, so it applies no limit. It counts each unit
 * in the bucket of the last instant at which it may have reached the upstream.
 *
 * The store's clock may step back. Buckets up to a minute ahead stay unchanged and are dropped that much later. Buckets
 * further ahead would lock the customer out, so they are folded into the latest bucket that can be written now, and the
 * window begins its next epoch. Otherwise a refund for a folded bucket could take units out of a later bucket with the
 * same index. A usage reset begins the next epoch for the same reason.
 *
 * All epochs of a window share its lineage. The usage history lasts as long: a deletion, or a loss of the store's data,
 * begins another lineage. So a refund of any epoch of the lineage is subtracted from the history.
 *
 * redis/*.lua is the same algorithm inside Redis. A test feeds both the same histories.
 */
import { mapAll, type NonEmpty } from '../base/non-empty.ts';
import type { ChargedUnits, Grant, LimitCount, ReserveRequest, WindowLimit, WindowRoot } from './windows.ts';

export const WINDOW_MS = 3_600_000;
const BUCKET_MS = 10_000;
/** The longest hold a reservation may ask for; the latest bucket that can be written follows from it. */
const MAX_HOLD_MS = 10_000;

/** By then after the end of a hold, the unused units of its lease are refunded, unless the gateway or its connection failed. */
export const REFUNDED_MS = 1000;

const CLOCK_STEP_TOLERANCE_MS = 60_000;
const MAX_STEPS = 16;
/** Ahead of need, at most this fraction (1/8) of the free units is granted. */
export const AHEAD_DIVISOR = 8;
/** The same (1/64) for a hold of at least `LONG_HOLD_MS`. */
export const LONG_AHEAD_DIVISOR = 64;
const LONG_HOLD_MS = 5000;

/** Length and resolution. Constants of the stored format: a window must not be read with another shape. */
export interface WindowShape {
  readonly windowMs: number;
  readonly bucketMs: number;
}

export const HOURLY: WindowShape = { windowMs: WINDOW_MS, bucketMs: BUCKET_MS };

export interface WindowHead {
  /** `<lineage>` or `<lineage>:<number>`. The lineage is drawn when the window is created. A refund must name the epoch. */
  readonly epoch: string;
  /** The sum of all buckets. */
  readonly used: number;
  /** Index of the oldest bucket, 0 when unknown. */
  readonly oldest: number;
  /** No bucket has a higher index. */
  readonly newest: number;
  readonly holdEndMs: number;
}

/** One customer's window as stored. The caller makes each operation atomic. */
export interface WindowHash {
  head(): WindowHead | undefined;
  setHead(head: WindowHead): void;
  /** Units counted in a bucket; undefined when there is no such bucket. */
  units(bucket: number): number | undefined;
  /** Adds units, which may be negative, to a bucket, which may not exist yet. */
  add(bucket: number, units: number): void;
  delete(bucket: number): void;
  buckets(): readonly (readonly [bucket: number, units: number])[];
}

/** Units that return to the bucket of one window. */
export interface WindowRefund {
  readonly epoch: string;
  readonly bucket: number;
  readonly units: number;
}
export type WindowRequest = Omit<ReserveRequest, 'customer' | 'grant' | 'refunds' | 'limits'> & {
  readonly limits: NonEmpty<WindowLimit>;
};
export type WindowCharge = Omit<ChargedUnits, 'grant' | 'root'>;

type Ledger = { -readonly [field in keyof WindowHead]: WindowHead[field] };

/**
 * Checks a reservation's numbers.
 * @throws RangeError when one is not an integer of at least 0, or `holdMs` exceeds {@link MAX_HOLD_MS}.
 */
export function checkRequest({ need, heaviest = 1, ahead, limits, holdMs }: Omit<ReserveRequest, 'customer'>): void {
  const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0;
  if (!isCount(need) || !isCount(ahead) || !isCount(holdMs) || !limits.every(({ amount }) => isCount(amount))) {
    throw new RangeError('need, ahead, limits and holdMs must be integers of at least 0');
  }
  if (!isCount(heaviest) || heaviest === 0) throw new RangeError('heaviest must be an integer of at least 1');
  if (holdMs > MAX_HOLD_MS) throw new RangeError(`holdMs must be at most ${MAX_HOLD_MS}`);
}

/**
 * Checks the units of a charge.
 * @throws RangeError when an age is not finite, or units are not an integer of at least 0.
 */
export function checkCharge(charged: readonly WindowCharge[]): void {
  if (!charged.every(({ ageMs, units }) => Number.isFinite(ageMs) && Number.isSafeInteger(units) && units >= 0)) {
    throw new RangeError('ageMs must be finite, and units an integer of at least 0');
  }
}

/** Returns how many units a reservation gets when its limits leave `available`. */
function unitsToGrant({ need, heaviest = 1, ahead, holdMs }: WindowRequest, available: number): number {
  if (available < need) return available - (available % heaviest);
  const divisor = holdMs >= LONG_HOLD_MS ? LONG_AHEAD_DIVISOR : AHEAD_DIVISOR;
  return need + Math.min(ahead, Math.floor((available - need) / divisor));
}

/**
 * Checks the limits and counts the granted units in the window of each. `nowMs`: the store's time. `freshEpoch`: of new
 * windows, without `:`. `mostUnits`: what other limits leave.
 */
export function reserve(
  windowOf: (root: WindowRoot) => WindowHash,
  shape: WindowShape,
  nowMs: number,
  request: WindowRequest,
  freshEpoch: string,
  mostUnits = Number.POSITIVE_INFINITY,
): Grant {
  const { need, heaviest = 1, holdMs, limits } = request;
  const opened = mapAll(limits, ({ policy, amount, root }) => {
    const hash = windowOf(root);
    const ledger = openLedger(hash, freshEpoch);
    const changed = dropExpired(hash, ledger, shape, nowMs);
    return { hash, ledger, policy, amount, available: Math.max(0, amount - ledger.used), changed };
  });

  const granted = unitsToGrant(request, Math.min(mostUnits, ...opened.map(({ available }) => available)));
  const wanted = need > 0 && granted >= need ? 1 : heaviest;
  const bucket = Math.floor((nowMs + holdMs) / shape.bucketMs);
  const counts = mapAll(opened, ({ hash, ledger, policy, amount, available, changed }): LimitCount => {
    if (granted > 0) {
      hash.add(bucket, granted);
      count(ledger, bucket, granted);
      ledger.holdEndMs = Math.max(ledger.holdEndMs, nowMs + holdMs);
    }
    if (granted > 0 || changed) hash.setHead(ledger);
    const { used, epoch, holdEndMs } = ledger;
    const waitMs = waitUntilFree(hash, ledger, shape, nowMs, amount, wanted);
    return { policy, free: available - granted, used, waitMs, epoch, holdEndMs };
  });
  return { granted, counts, bucket, storeTimeMs: nowMs };
}

/** Counts units regardless of the limit. `used` in the result includes them; `buckets` are in their order. */
export function charge(
  hash: WindowHash,
  shape: WindowShape,
  nowMs: number,
  charged: readonly WindowCharge[],
  freshEpoch: string,
): { readonly used: number; readonly epoch: string; readonly buckets: readonly number[] } {
  const ledger = openLedger(hash, freshEpoch);
  let changed = dropExpired(hash, ledger, shape, nowMs);
  const buckets = charged.map(({ ageMs, units }) => {
    const bucket = Math.min(Math.floor((nowMs - ageMs) / shape.bucketMs), latestBucket(shape, nowMs));
    if (units > 0 && dropTimeMs(bucket, shape) > nowMs) {
      hash.add(bucket, units);
      count(ledger, bucket, units);
      changed = true;
    }
    return bucket;
  });
  if (changed) hash.setHead(ledger);
  return { used: ledger.used, epoch: ledger.epoch, buckets };
}

/**
 * Refunds units and returns their number: at most what each bucket holds, none for another epoch or a dropped bucket.
 */
export function refund(hash: WindowHash, refunds: readonly WindowRefund[]): number {
  const stored = hash.head();
  if (!stored) return 0;
  const ledger: Ledger = { ...stored };
  let returned = 0;
  for (const { epoch, bucket, units } of refunds) {
    const counted = epoch === ledger.epoch && units > 0 ? hash.units(bucket) : undefined;
    if (counted === undefined) continue;
    if (units < counted) {
      hash.add(bucket, -units);
    } else {
      hash.delete(bucket);
      if (bucket === ledger.oldest) ledger.oldest = 0;
    }
    returned += Math.min(units, counted);
  }
  ledger.used -= returned;
  if (ledger.used <= 0) ledger.oldest = 0;
  if (returned > 0) hash.setHead(ledger);
  return returned;
}

/** Empties the window, and begins its next epoch: refunds of earlier grants leave it alone. */
export function reset(hash: WindowHash): void {
  const stored = hash.head();
  if (!stored) return;
  for (const [bucket] of hash.buckets()) hash.delete(bucket);
  hash.setHead({ ...stored, epoch: nextEpoch(stored.epoch), used: 0, oldest: 0, holdEndMs: 0 });
}

/** Returns what all epochs of one window have in common. */
export function lineageOf(epoch: string): string {
  return epoch.replace(/:.*/s, '');
}

function nextEpoch(epoch: string): string {
  const lineage = lineageOf(epoch);
  return `${lineage}:${Number(epoch.slice(lineage.length + 1)) + 1}`;
}

function openLedger(hash: WindowHash, freshEpoch: string): Ledger {
  const stored = hash.head();
  return stored ? { ...stored } : { epoch: freshEpoch, used: 0, oldest: 0, newest: 0, holdEndMs: 0 };
}

function count(ledger: Ledger, bucket: number, units: number): void {
  ledger.used += units;
  if (ledger.oldest === 0 || bucket < ledger.oldest) ledger.oldest = bucket;
  ledger.newest = Math.max(ledger.newest, bucket);
}

/** Drops expired buckets. Returns whether the head may have changed. */
function dropExpired(hash: WindowHash, ledger: Ledger, shape: WindowShape, nowMs: number): boolean {
  const isTooFarAhead = ledger.newest > farthestBucket(shape, nowMs);
  if (isTooFarAhead) recount(hash, ledger, shape, nowMs);
  const isDue = ledger.used > 0 && (ledger.oldest === 0 || dropTimeMs(ledger.oldest, shape) <= nowMs);
  if (isDue) dropOldest(hash, ledger, shape, nowMs);
  if (ledger.used <= 0) {
    ledger.used = 0;
    ledger.oldest = 0;
  }
  return isTooFarAhead || isDue;
}

function dropOldest(hash: WindowHash, ledger: Ledger, shape: WindowShape, nowMs: number): void {
  let steps = 0;
  while (ledger.oldest > 0 && ledger.used > 0 && steps < MAX_STEPS) {
    const units = hash.units(ledger.oldest);
    if (units !== undefined) {
      if (dropTimeMs(ledger.oldest, shape) > nowMs) break;
      hash.delete(ledger.oldest);
      ledger.used -= units;
    }
    ledger.oldest += 1;
    steps += 1;
  }
  if (ledger.used > 0 && (ledger.oldest === 0 || steps >= MAX_STEPS)) recount(hash, ledger, shape, nowMs);
}

/** Recomputes the head from the buckets. Drops expired buckets and folds those too far ahead. */
function recount(hash: WindowHash, ledger: Ledger, shape: WindowShape, nowMs: number): void {
  ledger.used = 0;
  ledger.oldest = 0;
  ledger.newest = 0;
  let folded = 0;
  for (const [bucket, units] of hash.buckets()) {
    if (dropTimeMs(bucket, shape) <= nowMs) {
      hash.delete(bucket);
    } else if (bucket > farthestBucket(shape, nowMs)) {
      hash.delete(bucket);
      folded += units;
    } else {
      count(ledger, bucket, units);
    }
  }
  if (folded === 0) return;
  const latest = latestBucket(shape, nowMs);
  hash.add(latest, folded);
  count(ledger, latest, folded);
  ledger.epoch = nextEpoch(ledger.epoch);
  ledger.holdEndMs = Math.min(ledger.holdEndMs, nowMs + MAX_HOLD_MS);
}

/** Returns the ms until `wanted` units are free, and more than now; -1 if they never are. */
function waitUntilFree(
  hash: WindowHash,
  head: WindowHead,
  shape: WindowShape,
  nowMs: number,
  limit: number,
  wanted: number,
): number {
  if (head.used === 0 || limit === 0) return -1;
  let toDrop = Math.max(1, head.used - limit + wanted);
  // Every bucket holds at least one unit. So all buckets are read only for a heavy request, or when `used` exceeds the
  // limit: after the limit was lowered, or after a charge.
  if (toDrop === 1 || toDrop <= (hash.units(head.oldest) ?? 0)) return dropTimeMs(head.oldest, shape) - nowMs;
  for (const [bucket, units] of hash.buckets().toSorted(([a], [b]) => a - b)) {
    toDrop -= units;
    if (toDrop <= 0) return dropTimeMs(bucket, shape) - nowMs;
  }
  return -1;
}

/** Returns the units of all buckets that have not expired. */
export function unitsCounted(
  buckets: Iterable<readonly [bucket: number, units: number]>,
  shape: WindowShape,
  nowMs: number,
): number {
  let counted = 0;
  for (const [bucket, units] of buckets) if (dropTimeMs(bucket, shape) > nowMs) counted += units;
  return counted;
}

/**
 * Returns the units of all buckets that have not expired, without those of leases that may still be refunded: no lease
 * can make it smaller. `holdEndMs`: of the window's head.
 */
export function unitsSettled(
  buckets: Iterable<readonly [bucket: number, units: number]>,
  shape: WindowShape,
  nowMs: number,
  holdEndMs: number,
): number {
  const settledMs = nowMs - REFUNDED_MS;
  const isSettled = (bucket: number) => holdEndMs <= settledMs || (bucket + 1) * shape.bucketMs <= settledMs;
  return unitsCounted(
    [...buckets].filter(([bucket]) => isSettled(bucket)),
    shape,
    nowMs,
  );
}

/** Returns the store time at which a bucket expires and its units are free again. */
export function dropTimeMs(bucket: number, { windowMs, bucketMs }: WindowShape): number {
  return (bucket + 1) * bucketMs + windowMs;
}

/** Returns the latest bucket in which a reservation made now can be counted. */
function latestBucket({ bucketMs }: WindowShape, nowMs: number): number {
  return Math.floor((nowMs + MAX_HOLD_MS) / bucketMs);
}

function farthestBucket(shape: WindowShape, nowMs: number): number {
  return latestBucket(shape, nowMs) + Math.ceil(CLOCK_STEP_TOLERANCE_MS / shape.bucketMs);
}
