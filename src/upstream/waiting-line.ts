import { type Linked, LinkedList } from '../linked-list.ts';

/** Where somebody stands. */
interface Place<Member> extends Linked<Place<Member>> {
  readonly line: object;
  readonly member: Member;
}

export interface InLine<Member> {
  /** Undefined while it does not wait. Kept by {@link WaitingLine}; nobody stands in two. */
  place?: Place<Member> | undefined;
}

/**
 * First come, first served, and whoever gives up leaves from wherever it stands. A Set would do the same, but to find its
 * first member means to walk over all who have left, and for the collector it is what `Deadlines` tells.
 */
export class WaitingLine<Member extends InLine<Member>> {
  readonly #places = new LinkedList<Place<Member>>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  join(member: Member): void {
    const place = { line: this, member, previous: undefined, next: undefined };
    member.place = place;
    this.#places.append(place);
    this.#length++;
  }

  /** Returns false, and does nothing, for one that does not wait here. */
  leave(member: Member): boolean {
    const { place } = member;
    if (place?.line !== this) return false;
    member.place = undefined;
    this.#places.remove(place);
    this.#length--;
    return true;
  }

  /** The first one, who waits no longer; undefined when nobody waits. */
  next(): Member | undefined {
    const member = this.#places.first?.member;
    if (member !== undefined) this.leave(member);
    return member;
  }
}
