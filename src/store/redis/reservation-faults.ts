/** Tells a Redis that refuses what quotas have to write from a single window that is damaged. */
import { ReplyError } from 'ioredis';
import type { Clock } from '../../clock.ts';
import { Throttle } from '../../throttle.ts';
import { type Grant, type ReserveRequest, type StoreObserver, StoreUnavailableError } from '../store.ts';
import { WriteRefusals } from '../write-refusals.ts';
import { describe } from './connection.ts';
import { UnexpectedReplyError } from './unexpected-reply.ts';

/** Redis starts, moves a slot or is no master: the connection deals with it, and the store counts as unreachable. */
const PASSING = /^(?:ASK|CLUSTERDOWN|LOADING|MASTERDOWN|MOVED|READONLY|TRYAGAIN) /;
/** What a script meets in the window of one customer; a command that the ACL refuses within a script looks much alike. */
const DAMAGE = /^(?!.*The user executing the script)(?:WRONGTYPE |ERR .*(?:user_script|not one of Tollgate))/;
const DAMAGE_INTERVAL_MS = 60_000;
/** Customers whose damaged window is reported at that interval; beyond it some are reported more often. */
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
    this.#refusals = new WriteRefusals({ clock, changed: (reason) => observer.refusing?.(reason) });
    this.#reports = new Throttle(clock, DAMAGE_INTERVAL_MS, DAMAGED_CUSTOMERS);
  }

  get refusing(): boolean {
    return this.#refusals.refusing;
  }

  async ofReservation({ customer, need }: ReserveRequest, reservation: Promise<Grant>): Promise<Grant> {
    try {
      const grant = await reservation;
      // A reservation that grants nothing writes nothing.
      if (grant.granted > 0) this.#refusals.written();
      return grant;
    } catch (error) {
      const reply = replyOf(error);
      if (reply === undefined) throw error;
      if (DAMAGE.test(reply) || isUnexpected(error)) {
        this.#observer.damagedWindow?.(customer, this.#reports.isDue(customer) ? reply : undefined);
      } else if (need > 0) {
        // Not for reads of the usage: whoever only reads would never learn that writes are taken again.
        this.#refusals.refused(reply);
      }
      throw error;
    }
  }

  /** The announcement of this instance: a write that also an idle gateway does every 10 s. */
  async ofAnnouncement(announcement: Promise<number>): Promise<number> {
    try {
      const count = await announcement;
      this.#refusals.written();
      return count;
    } catch (error) {
      const reply = replyOf(error);
      if (reply !== undefined && !DAMAGE.test(reply)) this.#refusals.refused(reply);
      throw error;
    }
  }
}

/** What Redis replied in place of a result; undefined when it did not, or will do better by itself. */
function replyOf(error: unknown): string | undefined {
  const cause = error instanceof StoreUnavailableError ? error.cause : undefined;
  if (!(cause instanceof Error && (cause instanceof ReplyError || isUnexpected(error)))) return undefined;
  const reply = describe(cause);
  return PASSING.test(reply) ? undefined : reply;
}

function isUnexpected(error: unknown): boolean {
  return error instanceof StoreUnavailableError && error.cause instanceof UnexpectedReplyError;
}
