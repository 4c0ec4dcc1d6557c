/**
 * Makes the notice of a level when the usage of a limit of a customer, or of one of its keys, has reached it. The store decides whether
 * there is one already, by any instance: a mark for each limit and level. That of an hour counts until nobody has seen usage
 * within ten points of the level for an hour, that of a period until its end. The marks that this instance remembers only
 * save store calls.
 *
 * The store's replies to reservations count the unused units of all leases as used. So a reply only raises the question.
 * What counts is the usage without units that may still be refunded, read when the leases of the reply are over. Of a
 * limit that was used up, 99 % must remain then: a customer who goes on sending requests takes new units all the time.
 * Where requests beyond the limit are served, the whole limit must be used.
 */
import type { Clock, Scheduler } from '../../base/clock.ts';
import { LruMap } from '../../base/lru-map.ts';
import type { Marks, NoticeStore } from '../../store/notices.ts';
import type { PeriodReader } from '../../store/period-reader.ts';
import { HOUR_MS } from '../../store/usage-history.ts';
import { REFUNDED_MS } from '../../store/window-arithmetic.ts';
import { type Grant, type LimitCount, refusesBeyond, type UsageReader } from '../../store/windows.ts';
import type { KeyCeiling } from '../quota/key-ceiling.ts';
import { type NoticeType, newNotice } from './notice.ts';

/** The level of a limit that is used up. Always configured. */
const EXCEEDED = 100;
/** The part of the limit that must be used when no lease is open, in percent. */
const EXCEEDED_SETTLED = 99;
/** A mark is extended by usage that is higher than its level minus these percentage points. */
const NEAR_POINTS = 10;
/** A level is handled again after this time, to extend its mark. */
const REMEMBERED_MS = 60_000;
/** An hour after the last extension, no unit that was seen then is counted any more. */
const MARK_MS = HOUR_MS + 2 * REMEMBERED_MS;
/** Minimum interval between attempts after a failure. */
const RETRY_MS = 5000;
/** For clocks and timers that run apart. */
const MARGIN_MS = 500;

type UsageReply = Omit<LimitCount, 'free'> & Pick<Grant, 'storeTimeMs'>;

interface Seen {
  readonly limit: number;
  /** Set if the limit is that of a key. */
  readonly ceiling: KeyCeiling | undefined;
  /** The highest level that usage seemed to have reached; 0: none. */
  level: number;
  /** The last reply that showed a level. */
  reply: UsageReply;
  /** Undefined while the level is being handled. After that it is not handled again until then (monotonic ms). */
  untilMs: number | undefined;
}

interface LevelObserverOptions {
  readonly notices: Pick<NoticeStore, 'addOnce' | 'extend'>;
  readonly usages: Pick<UsageReader, 'settledOf' | 'usedOf'>;
  readonly periods: Pick<PeriodReader, 'periodsOf'>;
  /** Called for each notice that this instance made. */
  readonly created: (type: NoticeType) => void;
  /** Maximum number of customers in memory. */
  readonly customers: number;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly scheduler: Pick<Scheduler, 'after'>;
}

export class LevelObserver {
  readonly #options: LevelObserverOptions;
  /** By customer and policy, of keys also by root and limit: those that share a window may have different limits. */
  readonly #seen: LruMap<string, Seen>;
  /** Ascending. */
  #levels: readonly number[] = [];

  /** `levels`: see {@link applyLevels}. */
  constructor(options: LevelObserverOptions, levels: readonly number[] | undefined) {
    this.#options = options;
    this.#seen = new LruMap(options.customers);
    this.applyLevels(levels);
  }

  /** The lowest usage that matters, in percent of the limit. Infinity while there are no notices. */
  lowestPercent = Number.POSITIVE_INFINITY;

  /** `levels`: in percent of the limit, below 100. Undefined: no notices. */
  applyLevels(levels: readonly number[] | undefined): void {
    this.#levels = levels === undefined ? [] : [...new Set([...levels, EXCEEDED])].toSorted((a, b) => a - b);
    this.lowestPercent = Math.max(0, (this.#levels[0] ?? Number.POSITIVE_INFINITY) - NEAR_POINTS);
  }

  /** Call it with each reply that shows usage of at least {@link lowestPercent}. `ceiling`: set if the limit is that of a key. */
  reached(customer: string, limit: number, reply: UsageReply, ceiling?: KeyCeiling): void {
    const { clock } = this.#options;
    const level = this.#levels.findLast((each) => 100 * reply.used >= each * limit) ?? 0;
    // Marks of a period need no extension.
    if (level === 0 && reply.period !== undefined) return;
    const id = `${customer} ${reply.policy}${ceiling === undefined ? '' : ` ${ceiling.limit.root} ${limit}`}`;
    const seen = this.#seen.get(id);
    // A customer that was deleted and created again has another window, and no marks yet.
    const known = seen?.limit === limit && counterOf(seen.reply) === counterOf(reply) ? seen : undefined;
    if (known !== undefined && known.untilMs === undefined) {
      if (level > 0) Object.assign(known, { level: Math.max(level, known.level), reply });
      return;
    }
    if (known !== undefined && known.level >= level && clock.monotonicMs() < (known.untilMs ?? 0)) return;
    const next: Seen = { limit, ceiling, level, reply, untilMs: undefined };
    this.#seen.set(id, next);
    const rememberFor = (ms: number) => {
      next.untilMs = clock.monotonicMs() + ms;
    };
    this.#handle(customer, next).then(rememberFor, () => rememberFor(RETRY_MS));
  }

  /** Resolves to how long the level need not be handled again, in ms. */
  async #handle(customer: string, seen: Seen): Promise<number> {
    const { notices } = this.#options;
    const { limit, level, reply } = seen;
    const near = this.#levels.filter((each) => each !== level && 100 * reply.used > (each - NEAR_POINTS) * limit);
    const counts = await notices.extend(marksOf(customer, seen, [level, ...near]));
    // A reply that came meanwhile may have shown a higher level.
    if (seen.level > level) return this.#handle(customer, seen);
    if (counts || level === 0) return REMEMBERED_MS;
    let shownBy: UsageReply;
    do {
      shownBy = seen.reply;
      await this.#leasesAreOver(shownBy);
      const settled = await this.#settledOf(customer, shownBy, seen.ceiling);
      const reached = this.#levels.findLast((each) => isSettled(each, seen, settled));
      if (reached !== undefined) await this.#add(customer, seen, reached, settled);
      if (reached === seen.level) return REMEMBERED_MS;
      // A later reply counted units that are settled only after its own leases.
    } while (seen.reply !== shownBy);
    return 0;
  }

  /** Resolves to the units counted without those of leases that may still be refunded. */
  async #settledOf(customer: string, { period }: UsageReply, ceiling: KeyCeiling | undefined): Promise<number> {
    const { usages, periods } = this.#options;
    if (period === undefined) return usages.settledOf(customer, ceiling?.limit.root);
    const [stored] = await periods.periodsOf([customer]);
    const counted = stored?.periods.find(({ startMs, endMs }) => {
      return startMs === period.startHour * HOUR_MS && endMs === period.endHour * HOUR_MS;
    });
    if (counted === undefined) return 0;
    // The hour knows which units are those of leases.
    const [used = 0] = await usages.usedOf([{ customer, from: 0 }]);
    const leased = Math.max(0, used - (await usages.settledOf(customer)));
    return counted.used - counted.forgiven - leased;
  }

  #leasesAreOver({ holdEndMs, storeTimeMs }: UsageReply): Promise<void> {
    const waitMs = Math.max(0, holdEndMs - storeTimeMs) + REFUNDED_MS + MARGIN_MS;
    return new Promise((resolve) => this.#options.scheduler.after(waitMs, resolve));
  }

  async #add(customer: string, seen: Seen, level: number, settled: number): Promise<void> {
    const { notices, created } = this.#options;
    const { limit, ceiling, reply } = seen;
    const type = level === EXCEEDED ? 'quota.exceeded' : 'quota.threshold';
    const used = level === EXCEEDED ? Math.max(settled, limit) : settled;
    const notice = newNotice(type, reply.storeTimeMs, {
      customer,
      plan: null,
      limit,
      used,
      percent: Math.floor((100 * used) / limit),
      reset_seconds: Math.max(1, Math.ceil(reply.waitMs / 1000)),
      window: reply.policy,
      ...(ceiling && { key_id: ceiling.keyId }),
      ...(reply.period && { beyond: reply.period.beyond }),
    });
    const lower = this.#levels.filter((each) => each < level);
    if (await notices.addOnce({ ...marksOf(customer, seen, [level, ...lower]), notice })) created(type);
  }
}

function isSettled(level: number, { level: shown, limit, reply }: Seen, settled: number): boolean {
  if (level !== EXCEEDED) return 100 * settled >= level * limit;
  const percent = refusesBeyond(reply) ? EXCEEDED_SETTLED : EXCEEDED;
  return shown === EXCEEDED && 100 * settled >= percent * limit;
}

/** Identifies what was counted: a window, or a period of its policy. */
function counterOf({ epoch, period }: UsageReply): string {
  return period === undefined ? epoch : `${period.startHour}`;
}

/** `levels`: the one that decides, and others. */
function marksOf(
  customer: string,
  { limit, ceiling, reply }: Seen,
  [first, ...others]: readonly [number, ...number[]],
): Marks {
  const { policy, period, storeTimeMs } = reply;
  const markOf = (level: number) => {
    if (ceiling !== undefined) return `level:key:${ceiling.limit.root}:${limit}:${level}`;
    if (period === undefined) return `level:${limit}:${level}`;
    // A period is used up once, whatever its limit is.
    const ofLimit = level === EXCEEDED ? '' : `:${limit}`;
    return `level:${policy}:${period.startHour}${ofLimit}:${level}`;
  };
  // A notice may be made shortly after the end of the period.
  const untilMs = (period === undefined ? storeTimeMs : period.endHour * HOUR_MS) + MARK_MS;
  return { customer, marks: [markOf(first), ...others.map(markOf)], untilMs };
}
