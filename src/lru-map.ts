import { type Linked, LinkedList } from './linked-list.ts';

interface Node<Key, Value> extends Linked<Node<Key, Value>> {
  readonly key: Key;
  readonly value: Value;
}

/**
 * A map of at most `capacity` entries: a new one beyond that takes the place of the least recently used.
 *
 * Entries are linked in the order of use. The insertion order of a Map would not do: whoever asks a Map for its first
 * key walks over every hole that deletions left, which is tens of microseconds an eviction at 100,000 entries.
 */
export class LruMap<Key, Value> {
  readonly #capacity: number;
  readonly #nodes = new Map<Key, Node<Key, Value>>();
  /** Least recently used first. */
  readonly #order = new LinkedList<Node<Key, Value>>();

  constructor(capacity: number) {
    this.#capacity = capacity;
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
    const { first } = this.#order;
    if (first !== undefined && this.#nodes.size >= this.#capacity) this.delete(first.key);
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
}
