export interface Linked<Node> {
  previous: Node | undefined;
  next: Node | undefined;
}

/** Nodes in the order in which they were appended; each stands in one list, and leaves from wherever it stands. */
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

  /** Its links are cut, so that one that left long ago keeps nobody who came after it. */
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
