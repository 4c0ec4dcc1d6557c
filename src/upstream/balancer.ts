/** A candidate. Its properties are read again for each choice. */
export interface Balanced {
  readonly isUp: boolean;
  /** Requests in progress and in the queue. */
  readonly load: number;
}

export type Balance = 'least_loaded' | 'round_robin';

/** Returns a member that is up and not `except`; undefined if there is none. */
type Choose<Member> = (except?: Member) => Member | undefined;

/** Creates a function that chooses among `members`. It is called for every request: no allocation, one loop. */
export function createBalancer<Member extends Balanced>(balance: Balance, members: readonly Member[]): Choose<Member> {
  return balance === 'least_loaded' ? leastLoaded(members) : roundRobin(members);
}

/** Rotates among members with equal load. Otherwise, at low load, all requests would go to the first one. */
function leastLoaded<Member extends Balanced>(members: readonly Member[]): Choose<Member> {
  let first = 0;
  return (except) => {
    first = first + 1 < members.length ? first + 1 : 0;
    let chosen: Member | undefined;
    let lowest = Number.POSITIVE_INFINITY;
    for (let i = 0, at = first; i < members.length; i++, at = at + 1 < members.length ? at + 1 : 0) {
      const member = members[at];
      if (member === undefined || !member.isUp || member === except) continue;
      const { load } = member;
      if (load >= lowest) continue;
      chosen = member;
      lowest = load;
    }
    return chosen;
  };
}

function roundRobin<Member extends Balanced>(members: readonly Member[]): Choose<Member> {
  let next = 0;
  return (except) => {
    for (let i = 0; i < members.length; i++) {
      const member = members[next];
      next = next + 1 < members.length ? next + 1 : 0;
      if (member?.isUp && member !== except) return member;
    }
    return undefined;
  };
}
