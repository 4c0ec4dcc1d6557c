import type { Grant } from '../store/store.ts';

/** How a request was decided: from a lease in memory, by the store for this request, or without the store. */
export type QuotaMode = 'lease' | 'store' | 'local';

export interface Admitted {
  readonly outcome: 'admitted';
  readonly mode: QuotaMode;
  /**
   * What was left at the store's last reply to this instance, at most one lease ago, less what this instance used since.
   * Other instances may have used more, or given units back.
   */
  readonly remaining: number;
  /** Monotonic ms: from then on the request must not begin upstream. */
  readonly beginBefore: number;
  /** The same by the wall clock, in case the machine stopped the other one. */
  readonly beginBeforeWallMs: number;
  /** Gives the unit back. Call it at most once, and only if the request did not begin upstream. */
  giveBack(): void;
  /** Seconds until more than `remaining` become available, at least 1. */
  resetSeconds(): number;
}

export interface Refused {
  readonly outcome: 'refused';
  readonly mode: QuotaMode;
  /** Whoever waits that long, alone, is admitted. */
  resetSeconds(): number;
}

export type Admission = Admitted | Refused;

/** How much faster than the store's clock ours may run, and a caller's than ours. Waits are told that much longer. */
export const CLOCK_DRIFT = 1.0005;

/** Whole seconds from `nowMs` until `atMs`, both monotonic, for a caller to wait. */
export function secondsUntil(atMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((CLOCK_DRIFT * (atMs - nowMs)) / 1000));
}

/** Monotonic ms at which the store's wait is over, however much faster than its clock ours runs. */
export function moreAt({ waitMs }: Pick<Grant, 'waitMs'>, receivedAt: number): number {
  return receivedAt + waitMs * CLOCK_DRIFT;
}
