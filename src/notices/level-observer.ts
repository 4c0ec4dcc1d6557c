/**
 * Claims a level when the store's reply to a reservation shows that a customer's usage reached it. The store decides
 * whether the level was claimed before, by any instance. The claims that this instance remembers only save store calls.
 */
import type { Clock } from '../base/clock.ts';
import { LruMap } from '../base/lru-map.ts';
import type { NoticeStore } from '../store/notices.ts';
import type { Grant } from '../store/store.ts';
import { type NoticeType, newNotice } from './notice.ts';

/** The level of a limit that is used up. Always configured. */
const EXCEEDED = 100;
/** A level is claimed again after this time, because the earlier claim may have ended. */
const REMEMBERED_MS = 60_000;
/** Minimum interval between attempts after a failed claim. */
const RETRY_MS = 5000;

interface Claimed {
  readonly level: number;
  readonly limit: number;
  untilMs: number;
}

export interface LevelObserverOptions {
  readonly notices: Pick<NoticeStore, 'claimLevel'>;
  /** Called for each notice that this instance claimed. */
  readonly created: (type: NoticeType) => void;
  /** Maximum number of customers in memory. */
  readonly customers: number;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

export class LevelObserver {
  readonly #options: LevelObserverOptions;
  readonly #claimed: LruMap<string, Claimed>;
  #levels: readonly number[] = [];

  /** `levels`: see {@link applyLevels}. */
  constructor(options: LevelObserverOptions, levels: readonly number[] | undefined) {
    this.#options = options;
    this.#claimed = new LruMap(options.customers);
    this.applyLevels(levels);
  }

  /** The lowest level, in percent of the limit. Infinity while there are no notices. */
  lowestPercent = Number.POSITIVE_INFINITY;

  /** `levels`: in percent of the limit, below 100. Undefined: no notices. */
  applyLevels(levels: readonly number[] | undefined): void {
    this.#levels = levels === undefined ? [] : [...new Set([...levels, EXCEEDED])].toSorted((a, b) => a - b);
    this.lowestPercent = this.#levels[0] ?? Number.POSITIVE_INFINITY;
  }

  /** Claims the highest level reached, unless that was done recently. Call it from {@link lowestPercent} on. */
  reached(customer: string, limit: number, grant: Pick<Grant, 'used' | 'waitMs' | 'storeTimeMs'>): void {
    const level = this.#levels.findLast((each) => 100 * grant.used >= each * limit);
    if (level === undefined) return;
    const { notices, clock, created } = this.#options;
    const nowMs = clock.monotonicMs();
    const known = this.#claimed.get(customer);
    if (known && known.level >= level && known.limit === limit && nowMs < known.untilMs) return;
    const claimed: Claimed = { level, limit, untilMs: nowMs + REMEMBERED_MS };
    this.#claimed.set(customer, claimed);
    const type = level === EXCEEDED ? 'quota.exceeded' : 'quota.threshold';
    const notice = newNotice(type, grant.storeTimeMs, {
      customer,
      plan: null,
      limit,
      used: grant.used,
      percent: Math.floor((100 * grant.used) / limit),
      reset_seconds: Math.max(1, Math.ceil(grant.waitMs / 1000)),
    });
    notices.claimLevel({ customer, level, levels: this.#levels, limit, notice }).then(
      (isNew) => {
        if (isNew) created(type);
      },
      () => {
        claimed.untilMs = clock.monotonicMs() + RETRY_MS;
      },
    );
  }
}
