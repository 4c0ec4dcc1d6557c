import { type Linked, LinkedList } from '../../base/linked-list.ts';

/** A position in a queue. */
interface Place<Member> extends Linked<Place<Member>> {
  readonly line: object;
  readonly member: Member;
}

export interface InLine<Member> {
  /** Undefined while not waiting. Set by {@link WaitingLine}; a member waits in at most one queue. */
  place?: Place<Member> | undefined;
}

/**
 * A first-in, first-out queue whose members can leave from any position. Not a Set: finding its first member walks over
 * deleted slots, and Sets with many deletions are costly for the garbage collector (see `Deadlines`).
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

  /** Removes `member` from the queue. Returns false, and does nothing, if it does not wait in this one. */
  leave(member: Member): boolean {
    const { place } = member;
    if (place?.line !== this) return false;
    member.place = undefined;
    this.#places.remove(place);
    this.#length--;
    return true;
  }

  /** Removes and returns the first member; undefined if the queue is empty. */
  next(): Member | undefined {
    const member = this.#places.first?.member;
    if (member !== undefined) this.leave(member);
    return member;
  }
}
