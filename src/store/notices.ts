/**
 * Notices that gateways send to webhooks, from their claim to their delivery.
 *
 * A claim and the notice that it makes are one atomic change, so of many gateways exactly one makes the notice. A notice
 * stays stored until it is delivered everywhere, or is dead and dropped. Taking a notice hides it from other gateways for
 * a while: if the taker dies, another one takes it again, with the same id.
 */

import type { LevelsReached } from './level-claims.ts';

export interface NewNotice {
  /** Unique, without white space. */
  readonly id: string;
  /** What the notice says, and how its deliveries stand. The store does not read it. */
  readonly content: string;
}

export interface StoredNotice extends NewNotice {
  readonly customer: string;
}

export interface LevelClaim extends LevelsReached {
  readonly customer: string;
  /** Stored if the level was not claimed yet. */
  readonly notice: NewNotice;
}

export interface MarkedNotice {
  readonly customer: string;
  /** What the notice is about. Without white space. */
  readonly mark: string;
  /** Store time until which no other notice with this mark is stored. */
  readonly markUntilMs: number;
  readonly notice: NewNotice;
}

/** How a notice goes on. */
export interface NextNotice {
  readonly content: string;
  /** When the notice is taken again. Undefined: no delivery is pending. */
  readonly dueInMs: number | undefined;
  /** Whether a delivery is dead. */
  readonly isDead: boolean;
}

/** A notice with several deliveries may be in both states. */
export type NoticeState = 'pending' | 'dead';

/** Of a page of a list: where the next one begins. */
export interface NoticePage {
  readonly items: readonly StoredNotice[];
  readonly nextOffset: number | undefined;
}

/** When that many notices are dead, the oldest of them are dropped. */
export const MAX_DEAD_NOTICES = 10_000;

/** All methods reject with StoreUnavailableError. */
export interface NoticeStore {
  /** Claims the reached level and the lower ones. Resolves to whether the notice was stored, because this was the first claim. */
  claimLevel(claim: LevelClaim): Promise<boolean>;
  /** Stores a notice, unless one with the same mark was. Resolves to whether it was stored. */
  addOnce(marked: MarkedNotice): Promise<boolean>;
  /** Resolves to notices that are due, and hides them from all gateways for `hiddenMs`. */
  takeDue(count: number, hiddenMs: number): Promise<readonly StoredNotice[]>;
  /**
   * Replaces a notice; undefined deletes it. Resolves to false, and changes nothing, if its content is not that of
   * `notice` any more.
   */
  replace(notice: StoredNotice, next: NextNotice | undefined): Promise<boolean>;
  /** Lists from a number of notices on, oldest first. Not a snapshot: a notice may be missing, or be listed twice. */
  list(state: NoticeState, offset: number, limit: number): Promise<NoticePage>;
  counts(): Promise<Readonly<Record<NoticeState, number>>>;
  /** Resolves to customers whose claimed levels should be compared with their usage now. Hides them for a while. */
  takeWatched(count: number): Promise<readonly string[]>;
  /** Re-arms the claimed levels that the customer's usage allows. Undefined: the customer has no limit any more. */
  rearm(customer: string, usage: { readonly used: number; readonly limit: number } | undefined): Promise<void>;
  /** Resolves to the URLs of endpoints that want no more notices. */
  goneEndpoints(): Promise<ReadonlySet<string>>;
  setGone(url: string, isGone: boolean): Promise<void>;
}
