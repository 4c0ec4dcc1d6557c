/** Where somebody stands. */
interface Place<Member> {
  readonly member: Member;
  ahead: Place<Member> | undefined;
  behind: Place<Member> | undefined;
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
  #first: Place<Member> | undefined;
  #last: Place<Member> | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  join(member: Member): void {
    const place: Place<Member> = { member, ahead: this.#last, behind: undefined };
    member.place = place;
    if (this.#last === undefined) this.#first = place;
    else this.#last.behind = place;
    this.#last = place;
    this.#length++;
  }

  /** Does nothing for one that does not wait. */
  leave(member: Member): void {
    const { place } = member;
    if (place === undefined) return;
    member.place = undefined;
    const { ahead, behind } = place;
    if (ahead === undefined) this.#first = behind;
    else ahead.behind = behind;
    if (behind === undefined) this.#last = ahead;
    else behind.ahead = ahead;
    // So that one who left long ago keeps nobody who came after it.
    place.ahead = undefined;
    place.behind = undefined;
    this.#length--;
  }

  /** The first one, who waits no longer; undefined when nobody waits. */
  next(): Member | undefined {
    const member = this.#first?.member;
    if (member !== undefined) this.leave(member);
    return member;
  }
}
