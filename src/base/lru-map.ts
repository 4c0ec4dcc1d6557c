import { type Linked, LinkedList } from './linked-list.ts';

interface Node<Key, Value> extends Linked<Node<Key, Value>> {
  readonly key: Key;
  readonly value: Value;
  /** Number of appends to the order, up to the last one of this node. */
  appends: number;
}

/** Maximum number of entries that an insertion into a full map examines for eviction. */
const EVICTION_CANDIDATES = 8;
/** A use does not move an entry that is among the last appended ones: this share of the capacity. */
const UNMOVED_SHARE = 1 / 4;

/**
 * A map of at most `capacity` entries: inserting one more evicts one that was not used for long, never one of the last
 * used three quarters. An entry is kept if `mayEvict` returns false for it. If no other is found, the map exceeds its
 * capacity.
 *
 * Entries are linked in the order of use, except that a use does not move an entry near the end: to move it writes to
 * four others, and in a large map none of them is in a CPU cache. Not the insertion order of a Map: finding its first
 * key walks over deleted slots, which takes tens of microseconds per eviction at 100,000 entries.
 */
export class LruMap<Key, Value> {
  readonly #capacity: number;
  readonly #mayEvict: (value: Value) => boolean;
  readonly #nodes = new Map<Key, Node<Key, Value>>();
  /** Least recently used first. */
  readonly #order = new LinkedList<Node<Key, Value>>();
  #appends = 0;

  constructor(capacity: number, mayEvict: (value: Value) => boolean = () => true) {
    this.#capacity = capacity;
    this.#mayEvict = mayEvict;
  }

  get size(): number {
    return this.#nodes.size;
  }

  /** Counts as a use. */
  get(key: Key): Value | undefined {
    const node = this.#nodes.get(key);
    if (node === undefined) return undefined;
    if (this.#appends - node.appends >= UNMOVED_SHARE * this.#capacity) this.#moveToEnd(node);
    return node.value;
  }

  /** Counts as a use. */
  set(key: Key, value: Value): void {
    this.delete(key);
    if (this.#nodes.size >= this.#capacity) this.#evict();
    const node = { key, value, appends: ++this.#appends, previous: undefined, next: undefined };
    this.#nodes.set(key, node);
    this.#order.append(node);
  }

  delete(key: Key): void {
    const node = this.#nodes.get(key);
    if (node === undefined) return;
    this.#nodes.delete(key);
    this.#order.remove(node);
  }

  clear(): void {
    this.#nodes.clear();
    this.#order.clear();
  }

  /** In no particular order. */
  *values(): Generator<Value, void> {
    for (const { value } of this.#nodes.values()) yield value;
  }

  #evict(): void {
    for (let examined = 0; examined < EVICTION_CANDIDATES; examined++) {
      const { first } = this.#order;
      if (first === undefined) return;
      if (this.#mayEvict(first.value)) {
        this.delete(first.key);
        return;
      }
      this.#moveToEnd(first);
    }
  }

  #moveToEnd(node: Node<Key, Value>): void {
    this.#order.remove(node);
    this.#order.append(node);
    node.appends = ++this.#appends;
  }
}
