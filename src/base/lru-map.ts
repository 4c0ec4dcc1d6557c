/** Maps of limited size that evict what was not used for long, and the linked list that keeps their order. */

export interface Linked<Node> {
  previous: Node | undefined;
  next: Node | undefined;
}

/** A doubly linked list in the order of appending. A node is in at most one list, and can be removed anywhere. */
export class LinkedList<Node extends Linked<Node>> {
  #first: Node | undefined;
  #last: Node | undefined;

  get first(): Node | undefined {
    return this.#first;
  }

  append(node: Node): void {
    node.previous = this.#last;
    if (this.#last === undefined) this.#first = node;
    else this.#last.next = node;
    this.#last = node;
  }

  /** Clears the links of the removed node, so that a reference to it does not keep later nodes in memory. */
  remove(node: Node): void {
    const { previous, next } = node;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    node.previous = undefined;
    node.next = undefined;
  }

  clear(): void {
    this.#first = undefined;
    this.#last = undefined;
  }
}

/** Maximum number of entries that an insertion into a full map examines for eviction. */
const EVICTION_CANDIDATES = 8;
/** A use does not move an entry that is among the last appended ones: this share of the capacity. */
const UNMOVED_SHARE = 1 / 4;

/** An entry of {@link LruEntries}. It contains its links: with many entries, each further object is a cache miss. */
export abstract class LruEntry<Key> {
  readonly key: Key;
  previous: LruEntry<Key> | undefined;
  next: LruEntry<Key> | undefined;
  /** Number of appends to the order, up to the last one of this entry. */
  appends = 0;

  constructor(key: Key) {
    this.key = key;
  }

  get mayBeEvicted(): boolean {
    return true;
  }

  /** Called once the entry was evicted. */
  evicted(): void {}
}

/**
 * At most `capacity` entries by key: inserting one more evicts one that was not used for long, never one of the last used
 * three quarters. If none of the candidates may be evicted, there are more.
 *
 * Entries are linked in the order of use, except that a use does not move an entry near the end: to move it writes to
 * four others, and in a large map none of them is in a CPU cache. Not the insertion order of a Map: finding its first
 * key walks over deleted slots, which takes tens of microseconds per eviction at 100,000 entries.
 */
export class LruEntries<Key, Entry extends LruEntry<Key>> {
  readonly #capacity: number;
  readonly #entries = new Map<Key, Entry>();
  /** Least recently used first. */
  readonly #order = new LinkedList<LruEntry<Key>>();
  #appends = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Counts as a use. */
  get(key: Key): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (this.#appends - entry.appends >= UNMOVED_SHARE * this.#capacity) {
      this.#order.remove(entry);
      this.#append(entry);
    }
    return entry;
  }

  /** Adds an entry, which replaces the one with the same key. Counts as a use. */
  add(entry: Entry): void {
    this.delete(entry.key);
    if (this.#entries.size >= this.#capacity) this.#evict();
    this.#entries.set(entry.key, entry);
    this.#append(entry);
  }

  delete(key: Key): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#order.remove(entry);
  }

  clear(): void {
    this.#entries.clear();
    this.#order.clear();
  }

  /** In no particular order. */
  values(): MapIterator<Entry> {
    return this.#entries.values();
  }

  #evict(): void {
    for (let examined = 0; examined < EVICTION_CANDIDATES; examined++) {
      const { first } = this.#order;
      if (first === undefined) return;
      if (first.mayBeEvicted) {
        this.delete(first.key);
        first.evicted();
        return;
      }
      this.#order.remove(first);
      this.#append(first);
    }
  }

  #append(entry: LruEntry<Key>): void {
    this.#order.append(entry);
    entry.appends = ++this.#appends;
  }
}

class ValueEntry<Key, Value> extends LruEntry<Key> {
  readonly value: Value;

  constructor(key: Key, value: Value) {
    super(key);
    this.value = value;
  }
}

/** A map of at most `capacity` values: see {@link LruEntries}. */
export class LruMap<Key, Value> {
  readonly #entries: LruEntries<Key, ValueEntry<Key, Value>>;

  constructor(capacity: number) {
    this.#entries = new LruEntries(capacity);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Counts as a use. */
  get(key: Key): Value | undefined {
    return this.#entries.get(key)?.value;
  }

  /** Counts as a use. */
  set(key: Key, value: Value): void {
    this.#entries.add(new ValueEntry(key, value));
  }

  delete(key: Key): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** In no particular order. */
  *values(): Generator<Value, void> {
    for (const { value } of this.#entries.values()) yield value;
  }
}
