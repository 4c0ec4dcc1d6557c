import { type Linked, LinkedList } from '../../base/lru-map.ts';
import type { UpstreamConnection } from './upstream-connection.ts';

/** The claims of one customer to connections. Its links are used while requests of the customer wait for a claim. */
export interface Share extends Linked<Share> {
  readonly isKeyless: boolean;
  claims: number;
  readonly waiting: RequestQueue;
}

/** A request that needs a connection. Its links, `queue` and `share` are set by the pool; initially undefined. */
export interface ConnectionRequest extends Linked<ConnectionRequest> {
  /** Whose share it uses: a customer, or an address block with requests that have no key. */
  readonly customer: string;
  readonly isKeyless: boolean;
  /** Whether it may be written to a second connection if the first one closes. */
  readonly isRepeatable: boolean;
  /** The queue in which it waits; undefined while not waiting. */
  queue: RequestQueue | undefined;
  /** Set while the request holds a claim. */
  share: Share | undefined;
  /** A connection is open and free. Returns false if it was not used. */
  onConnection(connection: UpstreamConnection): boolean;
  /** No connection will become available. */
  onError(error: Error): void;
}

/**
 * A first-in, first-out queue whose members can leave from any position. Not a Set: finding its first member walks over
 * deleted slots, and Sets with many deletions are costly for the garbage collector (see `Deadlines`).
 */
export class RequestQueue {
  readonly #requests = new LinkedList<ConnectionRequest>();
  length = 0;

  add(request: ConnectionRequest): void {
    request.queue = this;
    this.#requests.append(request);
    this.length++;
  }

  /** Removes `request`. Returns false, and does nothing, if it does not wait in this queue. */
  remove(request: ConnectionRequest): boolean {
    if (request.queue !== this) return false;
    request.queue = undefined;
    this.#requests.remove(request);
    this.length--;
    return true;
  }

  get first(): ConnectionRequest | undefined {
    return this.#requests.first;
  }

  /** Removes and returns the first request; undefined if the queue is empty. */
  shift(): ConnectionRequest | undefined {
    const { first } = this.#requests;
    if (first !== undefined) this.remove(first);
    return first;
  }
}
