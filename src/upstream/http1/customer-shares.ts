import { LinkedList } from '../../base/lru-map.ts';
import { quarterOf } from '../../base/quarter.ts';
import { type ConnectionRequest, RequestQueue, type Share } from './request-queue.ts';

export interface CustomerSharesOptions {
  readonly maxConnections: number;
  /** A customer's share of the connections, at least 1. No limit if it is `maxConnections` or more. */
  readonly maxConnectionsPerCustomer: number;
  /** Returns the maximum of requests of one customer that wait for a claim; a reload can change it. */
  readonly maxWaitingPerCustomer: () => number;
}

/**
 * Divides the connections to one upstream among customers, so that no customer can take all of them, for example with
 * clients that do not read their responses. A request holds a claim while it waits for a connection and uses it.
 *
 * A customer below its share gets a claim at once, and so does any customer while fewer than half of the connections
 * are claimed. Otherwise the request waits for a claim, and customers get claims in turn. Above
 * `maxWaitingPerCustomer`, requests are refused.
 *
 * Requests without a key claim at most a quarter of the connections, and those of one address a quarter of that. They
 * never wait for a claim: anyone can send them.
 *
 * Invariant: while a request of a customer waits, the customer has used up its share, and at least half of the
 * connections are claimed. One released claim therefore admits at most one request.
 */
export class CustomerShares {
  readonly #maxPerCustomer: number;
  readonly #maxWaiting: () => number;
  readonly #maxKeyless: number;
  /** With fewer claims than this, shares are not enforced. */
  readonly #enforcedFrom: number;
  readonly #shares = new Map<string, Share>();
  /** Customers with waiting requests, in the order of their turns. */
  readonly #turns = new LinkedList<Share>();
  #claims = 0;
  /** Those of requests without a key. */
  #keylessClaims = 0;
  /** Requests that wait for a claim. */
  waitingCount = 0;

  constructor({ maxConnections, maxConnectionsPerCustomer, maxWaitingPerCustomer }: CustomerSharesOptions) {
    this.#maxPerCustomer = maxConnectionsPerCustomer < maxConnections ? maxConnectionsPerCustomer : Infinity;
    this.#maxWaiting = maxWaitingPerCustomer;
    this.#maxKeyless = quarterOf(maxConnections);
    this.#enforcedFrom = Math.floor(maxConnections / 2);
  }

  /** Claims a connection, or queues the request for a claim. `isForced`: claims even above the customer's share. */
  claim(request: ConnectionRequest, isForced: boolean): 'claimed' | 'waiting' | 'refused' {
    const { isKeyless } = request;
    if (isKeyless && this.#keylessClaims >= this.#maxKeyless) return 'refused';
    const share = this.#shareOf(request);
    if (isKeyless && share.claims >= quarterOf(this.#maxKeyless)) return 'refused';
    if (isKeyless || isForced || this.#isWithinShare(share) || this.#claims < this.#enforcedFrom) {
      this.#grant(request, share);
      return 'claimed';
    }
    const { waiting } = share;
    if (waiting.length >= this.#maxWaiting()) return 'refused';
    if (waiting.length === 0) this.#turns.append(share);
    waiting.add(request);
    this.waitingCount++;
    return 'waiting';
  }

  /** Releases one claim. Returns the waiting request that gets a claim now, if there is one. */
  release(share: Share): ConnectionRequest | undefined {
    share.claims--;
    this.#claims--;
    if (share.isKeyless) this.#keylessClaims--;
    if (this.waitingCount === 0) return undefined;
    let next: Share | undefined;
    if (share.waiting.length > 0 && this.#isWithinShare(share)) next = share;
    else if (this.#claims < this.#enforcedFrom) next = this.#turns.first;
    if (next === undefined) return undefined;
    const request = next.waiting.shift();
    if (request === undefined) return undefined;
    this.waitingCount--;
    this.#turns.remove(next);
    if (next.waiting.length > 0) this.#turns.append(next);
    this.#grant(request, next);
    return request;
  }

  /** Returns whether the request waits for a claim. */
  isWaiting(request: ConnectionRequest): boolean {
    return request.queue !== undefined && request.share === undefined;
  }

  /** Removes a waiting request from the queue for claims. */
  withdraw(request: ConnectionRequest): void {
    const share = this.#shareOf(request);
    share.waiting.remove(request);
    this.waitingCount--;
    if (share.waiting.length === 0) this.#turns.remove(share);
  }

  /**
   * Removes customers without requests, if there are more than `kept` customers in all. Call it periodically: a Map with
   * an insertion and a deletion per request is costly for the garbage collector (see `Deadlines`), and so is a new share
   * for each request.
   */
  sweep(kept: number): void {
    if (this.#shares.size <= kept) return;
    for (const [customer, { claims, waiting }] of this.#shares) {
      if (claims === 0 && waiting.length === 0) this.#shares.delete(customer);
    }
  }

  #isWithinShare({ claims }: Share): boolean {
    return claims < this.#maxPerCustomer;
  }

  #grant(request: ConnectionRequest, share: Share): void {
    share.claims++;
    this.#claims++;
    if (share.isKeyless) this.#keylessClaims++;
    request.share = share;
  }

  #shareOf({ customer, isKeyless }: ConnectionRequest): Share {
    let share = this.#shares.get(customer);
    if (share === undefined) {
      share = { isKeyless, claims: 0, waiting: new RequestQueue(), previous: undefined, next: undefined };
      this.#shares.set(customer, share);
    }
    return share;
  }
}
