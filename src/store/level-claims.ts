/**
 * Which levels of its hourly limit a customer was told of. A level that was told is claimed. It is armed again after an
 * hour, if usage fell to ten points below the level meanwhile, or at once when the limit changes. So usage that teeters
 * at a level is told once.
 *
 * A reached level claims those below it, too: a customer that was told of 95 % is not told of 80 % afterwards.
 *
 * redis/notices/claim-level.lua and rearm.lua do the same in Redis.
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
  readonly claimedAtMs: number;
  /** Whether usage was seen ten points below the level since. */
  readonly fell: boolean;
}

export const REARM_MS = 3_600_000;
const REARM_POINTS = 10;
/** Interval between two looks at the usage of a customer with claimed levels. */
export const WATCH_MS = 60_000;

/** Claims the reached level and all below it that are armed. Returns whether the reached one was armed. */
export function claimLevels(
  claims: Map<number, ClaimedLevel>,
  { level: reached, levels, limit }: LevelsReached,
  nowMs: number,
): boolean {
  let isNew = false;
  for (const level of levels) {
    if (level > reached || !isArmed(claims.get(level), limit, nowMs)) continue;
    claims.set(level, { limit, claimedAtMs: nowMs, fell: false });
    isNew ||= level === reached;
  }
  return isNew;
}

/** Notes which levels usage fell below, and removes the claims that are over. Returns the ms until the next look, if any. */
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
  return claim === undefined || claim.limit !== limit || (claim.fell && ageOf(claim, nowMs) >= REARM_MS);
}

/** The store's clock may have been set back far: such a claim must not last forever. */
function ageOf({ claimedAtMs }: ClaimedLevel, nowMs: number): number {
  return Math.abs(nowMs - claimedAtMs);
}
