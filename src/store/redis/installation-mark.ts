/**
 * What the mark of the installation says about the store's data. Pure: installed.ts reads and writes the mark.
 *
 * The mark is a Redis string. In a cluster there is one for each part of the slots, because a master may lose its data
 * while the others keep theirs. A gateway remembers the id that it read first.
 *
 * | mark | meaning |
 * |---|---|
 * | the remembered id X | The data is whole. |
 * | missing | The data was lost. The gateway writes `lost-X`, so that gateways that start later know. |
 * | `lost-X` | The data was lost, until X is back. |
 * | `init-…` | An operator accepts the data as it is. |
 * | another id | The data was lost: another gateway started on the emptied store. Never overwritten. |
 *
 * A store without any record proves nothing, because a gateway that starts after a loss finds it like that. Its id proves
 * little either: what fills the store may be a restore, which writes its own id last. So that id may be replaced by
 * another one, unless data may have been lost in between.
 */
const LOST_PREFIX = 'lost-';
const INIT_PREFIX = 'init-';

export interface Mark {
  readonly name: string;
  readonly id: string | null;
}

/** `unknown`: whether there is a record is still being found out. */
export type DataState = 'unknown' | 'empty' | 'wiped' | 'whole';

export function initId(random: string): string {
  return INIT_PREFIX + random;
}

export class InstallationMark {
  #remembered: string | undefined;
  #records: 'unknown' | 'none' | 'some' = 'unknown';
  /** The remembered id was seen in a store without records. */
  #isReplaceable = false;
  /** Names of marks that do not hold the remembered id. */
  readonly #lost = new Set<string>();

  get state(): DataState {
    if (this.#lost.size > 0) return 'wiped';
    if (this.#records === 'some' || this.#remembered?.startsWith(INIT_PREFIX)) return 'whole';
    return this.#records === 'none' ? 'empty' : 'unknown';
  }

  /** No mark was there yet. */
  get isNew(): boolean {
    return this.#remembered === undefined;
  }

  get hasRecord(): boolean {
    return this.#records === 'some';
  }

  /** Takes what a mark holds. Returns what must be written to it, unless another gateway was faster (SET NX). */
  see({ name, id }: Mark): string | undefined {
    if (id === null) {
      if (this.#remembered === undefined) return undefined;
      this.#lose(name);
      return LOST_PREFIX + this.#remembered;
    }
    if (id.startsWith(LOST_PREFIX)) {
      this.#remember(id.slice(LOST_PREFIX.length));
      this.#lose(name);
    } else if (id === this.#remembered) {
      this.#lost.delete(name);
    } else if (id.startsWith(INIT_PREFIX)) {
      this.#remember(id);
      this.#lost.clear();
    } else if (this.#remembered === undefined) {
      this.#remember(id);
    } else if (this.#isReplaceable && this.#lost.size === 0) {
      this.#remembered = id;
    } else {
      this.#lose(name);
    }
    return undefined;
  }

  /** There is a record. */
  sawRecord(): void {
    this.#records = 'some';
  }

  /** All names were looked through, and none is a record's. */
  sawNoRecord(): void {
    if (this.#records === 'some') return;
    this.#records = 'none';
    this.#isReplaceable = true;
  }

  /** Data may have been lost unseen: everything was deleted, or a connection was lost. */
  disturbed(): void {
    this.#isReplaceable = false;
    if (this.#remembered === undefined || this.#records === 'none') this.#records = 'unknown';
  }

  #lose(name: string): void {
    this.#lost.add(name);
    // A restore brings records: when the mark is back, they must be looked for again.
    if (this.#records === 'none') this.#records = 'unknown';
  }

  #remember(id: string): void {
    this.#remembered = id;
    this.#isReplaceable = false;
  }
}
