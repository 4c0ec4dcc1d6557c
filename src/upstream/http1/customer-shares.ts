import { type Linked, LinkedList } from '../../base/linked-list.ts';
import { type InLine, WaitingLine } from './connection-queue.ts';

/** A request that needs a connection. */
export interface Claimant<Member extends InLine<Member>> extends InLine<Member> {
  readonly customer: string;
  /** Set by {@link CustomerShares} while the request holds a claim. */
  share?: Share<Member> | undefined;
}

/** The claims of one customer. Its links are used while requests of the customer wait for a claim. */
export interface Share<Member extends InLine<Member>> extends Linked<Share<Member>> {
  claims: number;
  readonly waiting: WaitingLine<Member>;
}

export interface CustomerSharesOptions {
  readonly maxConnections: number;
  /** A customer's share of the connections, at least 1. No limit if it is `maxConnections` or more. */
  readonly maxConnectionsPerCustomer: number;
  /** Most requests of one customer that may wait for a claim. */
  readonly maxWaitingPerCustomer: number;
}

/**
 * Divides the connections to one upstream among customers, so that no customer can take all of them, for example with
 * clients that do not read their responses. A request holds a claim while it waits for a connection and while it uses
 * one.
 *
 * A customer below its share gets a claim at once, and so does any customer while fewer than half of the connections
 * are claimed. Otherwise the request waits for a claim, and customers get claims in turn. Above
 * `maxWaitingPerCustomer`, requests are refused.
 *
 * Invariant: while a request of a customer waits, the customer has used up its share, and at least half of the
 * connections are claimed. One released claim therefore admits at most one request.
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

  /** Claims a connection, or queues the request for a claim. `isForced`: claims even above the customer's share. */
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

  /** Releases one claim. Returns the waiting request that gets a claim now, if there is one. */
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

  /** Returns whether the request waits for a claim. */
  isWaiting(member: Member): boolean {
    return member.place !== undefined && member.share === undefined;
  }

  /** Removes a waiting request from the queue for claims. */
  withdraw(member: Member): void {
    const share = this.#shareOf(member.customer);
    share.waiting.leave(member);
    this.#waitingCount--;
    if (share.waiting.length === 0) this.#turns.remove(share);
  }

  /**
   * Removes customers without requests. Call it periodically: a Map with an insertion and a deletion per request is
   * costly for the garbage collector (see `Deadlines`).
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
