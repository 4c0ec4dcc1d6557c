/**
 * The levels of a customer's hourly limit for which a notice was made. Making the notice claims the level: while the
 * claim lasts, no further notice is made for it. The claim ends an hour later if usage fell to ten percentage points below the
 * level meanwhile, or at once when the limit changes. So usage that oscillates around a level makes one notice. A limit
 * that changes back within the hour ends no claim: gateways with different config files would claim in turns.
 *
 * A claim of a level also claims all lower levels: after the notice of 95 %, there is none of 80 %.
 *
 * redis/notices/claim-level.lua and rearm.lua are the same algorithm in Redis; a test compares the two.
 */

export interface LevelsReached {
  /** The highest level that usage has reached, in percent of the limit: one of `levels`. */
  readonly level: number;
  readonly levels: readonly number[];
  readonly limit: number;
}

export interface ClaimedLevel {
  /** The limit of which the level was reached. */
  readonly limit: number;
  /** The last other limit of which it was reached; 0: none. */
  readonly formerLimit: number;
  readonly claimedAtMs: number;
  /** Whether usage was seen ten points below the level since. */
  readonly fell: boolean;
}

export const REARM_MS = 3_600_000;
const REARM_POINTS = 10;
/** Interval between two checks of a customer's usage against its claimed levels. */
export const WATCH_MS = 60_000;

/** Claims the reached level and all lower ones whose claims have ended. Returns whether the reached one is among them. */
export function claimLevels(
  claims: Map<number, ClaimedLevel>,
  { level: reached, levels, limit }: LevelsReached,
  nowMs: number,
): boolean {
  let isNew = false;
  for (const level of levels) {
    const claim = claims.get(level);
    if (level > reached || !isArmed(claim, limit, nowMs)) continue;
    const formerLimit = (claim?.limit === limit ? claim.formerLimit : claim?.limit) ?? 0;
    claims.set(level, { limit, formerLimit, claimedAtMs: nowMs, fell: false });
    isNew ||= level === reached;
  }
  return isNew;
}

/**
 * Records which levels usage fell below, and deletes the claims that ended. Returns the ms until the next check;
 * undefined if no claim is left.
 */
export function rearmLevels(
  claims: Map<number, ClaimedLevel>,
  { used, limit }: { readonly used: number; readonly limit: number },
  nowMs: number,
): number | undefined {
  const waits: number[] = [];
  for (const [level, claim] of [...claims]) {
    const fell = claim.fell || used * 100 <= Math.max(0, level - REARM_POINTS) * limit;
    const ageMs = ageOf(claim, nowMs);
    if (fell && ageMs >= REARM_MS) {
      claims.delete(level);
      continue;
    }
    claims.set(level, { ...claim, fell });
    waits.push(fell ? REARM_MS - ageMs : WATCH_MS);
  }
  return waits.length > 0 ? Math.min(...waits) : undefined;
}

function isArmed(claim: ClaimedLevel | undefined, limit: number, nowMs: number): boolean {
  if (claim === undefined) return true;
  const isOld = ageOf(claim, nowMs) >= REARM_MS;
  return claim.limit === limit ? claim.fell && isOld : claim.formerLimit !== limit || isOld;
}

/** Absolute, so that a claim does not last forever after the store's clock was set back far. */
function ageOf({ claimedAtMs }: ClaimedLevel, nowMs: number): number {
  return Math.abs(nowMs - claimedAtMs);
}
