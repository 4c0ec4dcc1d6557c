import { type Linked, LinkedList } from './linked-list.ts';

interface Node<Key, Value> extends Linked<Node<Key, Value>> {
  readonly key: Key;
  readonly value: Value;
}

/** Maximum number of entries that an insertion into a full map examines for eviction. */
const EVICTION_CANDIDATES = 8;

/**
 * A map of at most `capacity` entries: inserting one more evicts the least recently used one. An entry is kept if
 * `mayEvict` returns false for it. If no other is found, the map exceeds its capacity.
 *
 * Entries are linked in the order of use. Not the insertion order of a Map: finding its first key walks over deleted
 * slots, which takes tens of microseconds per eviction at 100,000 entries.
 */
export class LruMap<Key, Value> {
  readonly #capacity: number;
  readonly #mayEvict: (value: Value) => boolean;
  readonly #nodes = new Map<Key, Node<Key, Value>>();
  /** Least recently used first. */
  readonly #order = new LinkedList<Node<Key, Value>>();

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
    if (node !== this.#order.last) {
      this.#order.remove(node);
      this.#order.append(node);
    }
    return node.value;
  }

  /** Counts as a use. */
  set(key: Key, value: Value): void {
    this.delete(key);
    if (this.#nodes.size >= this.#capacity) this.#evict();
    const node = { key, value, previous: undefined, next: undefined };
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
      this.#order.remove(first);
      this.#order.append(first);
    }
  }
}
