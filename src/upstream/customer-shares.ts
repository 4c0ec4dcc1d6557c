import { type Linked, LinkedList } from '../linked-list.ts';
import { type InLine, WaitingLine } from './waiting-line.ts';

/** A request that wants a connection. */
export interface Claimant<Member extends InLine<Member>> extends InLine<Member> {
  readonly customer: string;
  /** Kept by {@link CustomerShares}: set while the request holds a claim. */
  share?: Share<Member> | undefined;
}

/** What one customer has of the connections. Its links are used while requests of it wait for a claim. */
export interface Share<Member extends InLine<Member>> extends Linked<Share<Member>> {
  claims: number;
  readonly waiting: WaitingLine<Member>;
}

export interface CustomerSharesOptions {
  readonly maxConnections: number;
  /** A customer's share of them, at least 1. All of them: there are no shares. */
  readonly maxConnectionsPerCustomer: number;
  /** Requests of one customer that wait for a claim, at most. */
  readonly maxWaitingPerCustomer: number;
}

/**
 * Divides the connections to one upstream among customers, so that none can take all of them, for example with clients
 * that do not read their responses. A request claims a connection for the time in which it waits for one and uses it.
 * A customer within its share claims at once, and so does one beyond it while fewer than half of the connections are
 * claimed. Otherwise its request waits for a claim, in which customers take turns; requests beyond a bound are refused.
 *
 * Invariant: while a request of a customer waits, the customer has all of its share, and half of the connections are
 * claimed. A claim that is given up therefore lets at most one request through.
 */
export class CustomerShares<Member extends Claimant<Member>> {
  readonly #maxPerCustomer: number;
  readonly #maxWaiting: number;
  readonly #freeForAll: number;
  readonly #shares = new Map<string, Share<Member>>();
  /** Customers with waiting requests, in the order of their turns. */
  readonly #turns = new LinkedList<Share<Member>>();
  #claims = 0;
  #waitingCount = 0;

  constructor({ maxConnections, maxConnectionsPerCustomer, maxWaitingPerCustomer }: CustomerSharesOptions) {
    this.#maxPerCustomer = maxConnectionsPerCustomer < maxConnections ? maxConnectionsPerCustomer : Infinity;
    this.#maxWaiting = maxWaitingPerCustomer;
    this.#freeForAll = Math.floor(maxConnections / 2);
  }

  /** Requests that wait for a claim. */
  get waitingCount(): number {
    return this.#waitingCount;
  }

  /** `isForced`: claims whatever the customer has. */
  claim(member: Member, isForced: boolean): 'claimed' | 'waiting' | 'refused' {
    const share = this.#shareOf(member.customer);
    if (isForced || this.#isWithinShare(share) || this.#claims < this.#freeForAll) {
      this.#grant(member, share);
      return 'claimed';
    }
    const { waiting } = share;
    if (waiting.length >= this.#maxWaiting) return 'refused';
    if (waiting.length === 0) this.#turns.append(share);
    waiting.join(member);
    this.#waitingCount++;
    return 'waiting';
  }

  /** Gives a claim up; returns the request that gets it, if one waited. */
  release(share: Share<Member>): Member | undefined {
    share.claims--;
    this.#claims--;
    if (this.#waitingCount === 0) return undefined;
    let next: Share<Member> | undefined;
    if (share.waiting.length > 0 && this.#isWithinShare(share)) next = share;
    else if (this.#claims < this.#freeForAll) next = this.#turns.first;
    if (next === undefined) return undefined;
    const member = next.waiting.next();
    if (member === undefined) return undefined;
    this.#waitingCount--;
    this.#turns.remove(next);
    if (next.waiting.length > 0) this.#turns.append(next);
    this.#grant(member, next);
    return member;
  }

  /** Whether the request waits for a claim. */
  isWaiting(member: Member): boolean {
    return member.place !== undefined && member.share === undefined;
  }

  /** Ends the wait for a claim. */
  withdraw(member: Member): void {
    const share = this.#shareOf(member.customer);
    share.waiting.leave(member);
    this.#waitingCount--;
    if (share.waiting.length === 0) this.#turns.remove(share);
  }

  /**
   * Forgets customers without requests. To be called now and then: a Map that is added to and deleted from with every
   * request costs the garbage collector (see `Deadlines`).
   */
  sweep(): void {
    for (const [customer, { claims, waiting }] of this.#shares) {
      if (claims === 0 && waiting.length === 0) this.#shares.delete(customer);
    }
  }

  #isWithinShare({ claims }: Share<Member>): boolean {
    return claims < this.#maxPerCustomer;
  }

  #grant(member: Member, share: Share<Member>): void {
    share.claims++;
    this.#claims++;
    member.share = share;
  }

  #shareOf(customer: string): Share<Member> {
    let share = this.#shares.get(customer);
    if (share === undefined) {
      share = { claims: 0, waiting: new WaitingLine(), previous: undefined, next: undefined };
      this.#shares.set(customer, share);
    }
    return share;
  }
}
