/** Distinguishes a Redis that refuses quota writes from a single damaged window. */
import { ReplyError } from 'ioredis';
import type { Clock } from '../../../base/clock.ts';
import { Throttle } from '../../../base/throttle.ts';
import { type Grant, type ReserveRequest, type StoreObserver, StoreUnavailableError } from '../../store.ts';
import { WriteRefusals } from '../../write-refusals.ts';
import { describe, UnexpectedReplyError } from '../protocol/redis-errors.ts';

/**
 * Temporary errors: Redis is starting, is moving a slot or is not a master. The connection handles them, and the store
 * counts as unreachable.
 */
const PASSING = /^(?:ASK|CLUSTERDOWN|LOADING|MASTERDOWN|MOVED|READONLY|TRYAGAIN) /;
/**
 * Errors that a script raises for one customer's damaged window. An ACL refusal within a script looks similar, and is
 * excluded.
 */
const DAMAGE = /^(?!.*The user executing the script)(?:WRONGTYPE |ERR .*(?:user_script|not one of Tollgate))/;
const DAMAGE_INTERVAL_MS = 60_000;
/** Customers whose damaged window is reported at that interval. Above this number some are reported more often. */
const DAMAGED_CUSTOMERS = 1000;

export interface ReservationFaultsOptions {
  readonly clock: Clock;
  readonly observer: Pick<StoreObserver, 'refusing' | 'damagedWindow'>;
}

export class ReservationFaults {
  readonly #observer: ReservationFaultsOptions['observer'];
  readonly #refusals: WriteRefusals;
  readonly #reports: Throttle;

  constructor({ clock, observer }: ReservationFaultsOptions) {
    this.#observer = observer;
    this.#refusals = new WriteRefusals(clock, (reason) => observer.refusing?.(reason));
    this.#reports = new Throttle(clock, DAMAGE_INTERVAL_MS, DAMAGED_CUSTOMERS);
  }

  get refusing(): boolean {
    return this.#refusals.refusing;
  }

  reserved({ granted }: Pick<Grant, 'granted'>): void {
    // A reservation that grants nothing does not prove that Redis accepts writes.
    if (granted > 0) this.#refusals.written();
  }

  notReserved({ customer, need }: ReserveRequest, error: unknown): void {
    const reply = replyOf(error);
    if (reply === undefined) return;
    if (DAMAGE.test(reply) || isUnexpected(error)) {
      this.#observer.damagedWindow?.(customer, this.#reports.isDue(customer) ? reply : undefined);
    } else if (need > 0) {
      // Usage reads do not count: a gateway that only reads would never detect that writes are accepted again.
      this.#refusals.refused(reply);
    }
  }

  /** Observes the announcement of this instance, a write that even an idle gateway makes every 10 s. */
  async ofAnnouncement<Result>(announcement: Promise<Result>): Promise<Result> {
    try {
      const result = await announcement;
      this.#refusals.written();
      return result;
    } catch (error) {
      const reply = replyOf(error);
      if (reply !== undefined && !DAMAGE.test(reply)) this.#refusals.refused(reply);
      throw error;
    }
  }
}

/** Returns Redis' reply in place of a result; undefined when there was none, or the error is temporary. */
function replyOf(error: unknown): string | undefined {
  const cause = error instanceof StoreUnavailableError ? error.cause : undefined;
  if (!(cause instanceof Error && (cause instanceof ReplyError || isUnexpected(error)))) return undefined;
  const reply = describe(cause);
  return PASSING.test(reply) ? undefined : reply;
}

function isUnexpected(error: unknown): boolean {
  return error instanceof StoreUnavailableError && error.cause instanceof UnexpectedReplyError;
}
