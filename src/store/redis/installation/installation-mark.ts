/**
 * Derives the state of the store's data from the installation mark. Does no I/O: data-loss-detection.ts reads and writes the
 * mark.
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
 * A store without any record proves nothing, because a gateway that starts after a loss finds it empty as well. The id
 * read from an empty store proves little: a restore may be filling the store, and it writes its own id last. So another
 * id may replace that id, unless data may have been lost in between.
 */
const LOST_PREFIX = 'lost-';
const INIT_PREFIX = 'init-';

export interface Mark {
  readonly name: string;
  readonly id: string | null;
}

/** `unknown`: the search for a record has not finished. */
export type DataState = 'unknown' | 'empty' | 'wiped' | 'whole';

export function initId(random: string): string {
  return INIT_PREFIX + random;
}

export class InstallationMark {
  #remembered: string | undefined;
  #records: 'unknown' | 'none' | 'some' = 'unknown';
  /** The remembered id was read from a store without records. */
  #isReplaceable = false;
  /** Names of marks that do not hold the remembered id. */
  readonly #lost = new Set<string>();

  get state(): DataState {
    if (this.#lost.size > 0) return 'wiped';
    if (this.#records === 'some' || this.#remembered?.startsWith(INIT_PREFIX)) return 'whole';
    return this.#records === 'none' ? 'empty' : 'unknown';
  }

  /** No id has been read from a mark yet. */
  get isNew(): boolean {
    return this.#remembered === undefined;
  }

  get hasRecord(): boolean {
    return this.#records === 'some';
  }

  /**
   * Updates the state from a mark that was read. Returns the value that must be written to the mark with SET NX, so
   * that another gateway's write wins; undefined when nothing must be written.
   */
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

  /** Notes that there is a record. */
  sawRecord(): void {
    this.#records = 'some';
  }

  /** Notes that a scan of all Redis keys found no record. */
  sawNoRecord(): void {
    if (this.#records === 'some') return;
    this.#records = 'none';
    this.#isReplaceable = true;
  }

  /** Notes that data may have been lost unnoticed: everything was deleted, or a connection was lost. */
  doubt(): void {
    this.#isReplaceable = false;
    if (this.#remembered === undefined || this.#records === 'none') this.#records = 'unknown';
  }

  #lose(name: string): void {
    this.#lost.add(name);
    // A restore brings records, so the search for them must be repeated when the mark is back.
    if (this.#records === 'none') this.#records = 'unknown';
  }

  #remember(id: string): void {
    this.#remembered = id;
    this.#isReplaceable = false;
  }
}
