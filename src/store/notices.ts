/**
 * Stored notices to webhooks.
 *
 * A mark says what a notice is about, and until when it counts. Setting the mark and storing the notice are one atomic
 * change, so of many gateways exactly one stores the notice. A notice stays stored until all its deliveries succeeded.
 * Taking a notice hides it from other gateways for a while. If the gateway that took it ends, another one takes the
 * notice later, with the same id.
 */

export interface NewNotice {
  /** Unique, without white space. */
  readonly id: string;
  /** Text that the store does not interpret: the body and the state of each delivery. */
  readonly content: string;
}

export interface StoredNotice extends NewNotice {
  readonly customer: string;
}

export interface Marks {
  readonly customer: string;
  /** Without white space. The first one decides whether there is a notice already. */
  readonly marks: readonly [string, ...string[]];
  /** Store time until which they count. */
  readonly untilMs: number;
}

export interface MarkedNotice extends Marks {
  readonly notice: NewNotice;
}

/** The new state of a notice after an attempt. */
interface NextNotice {
  readonly content: string;
  /** The time until the next attempt. Undefined: no delivery is pending. */
  readonly dueInMs: number | undefined;
  /** Whether a delivery is dead. */
  readonly isDead: boolean;
}

/** A notice with several deliveries can be in both states. */
export type NoticeState = 'pending' | 'dead';

interface NoticePage {
  readonly items: readonly StoredNotice[];
  /** Undefined on the last page. */
  readonly nextOffset: number | undefined;
}

/** Above this number of dead notices, the oldest are deleted. */
export const MAX_DEAD_NOTICES = 10_000;

/** All methods reject with StoreUnavailableError. */
export interface NoticeStore {
  /** Stores a notice and sets all its marks, unless the first one counts. Resolves to whether the notice was stored. */
  addOnce(marked: MarkedNotice): Promise<boolean>;
  /** Lets those of the marks that count now count until `untilMs`. Resolves to whether the first one counts. */
  extend(marks: Marks): Promise<boolean>;
  /** Resolves to notices that are due, the longest due first, and hides them from all gateways for `hiddenMs`. */
  takeDue(count: number, hiddenMs: number): Promise<readonly StoredNotice[]>;
  /**
   * Replaces a notice; undefined deletes it. Resolves to false, and changes nothing, if its content is not that of
   * `notice` any more.
   */
  replace(notice: StoredNotice, next: NextNotice | undefined): Promise<boolean>;
  /** Lists from a number of notices on, oldest first. Not a snapshot: a notice may be missing, or be listed twice. */
  list(state: NoticeState, offset: number, limit: number): Promise<NoticePage>;
  counts(): Promise<Readonly<Record<NoticeState, number>>>;
  /** Resolves to the URLs of endpoints that are disabled because they responded 410. */
  goneEndpoints(): Promise<ReadonlySet<string>>;
  setGone(url: string, isGone: boolean): Promise<void>;
}
