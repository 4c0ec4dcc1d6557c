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

  get last(): Node | undefined {
    return this.#last;
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
