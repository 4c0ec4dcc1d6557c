/** A change reported by the store, made by this program or by any other. */
export type Invalidation =
  | { readonly kind: 'key'; readonly sha256: string }
  | { readonly kind: 'customer'; readonly id: string }
  | { readonly kind: 'maintenance' }
  /** Anything may have changed: the push was interrupted, or everything was deleted. */
  | { readonly kind: 'all' };

/**
 * The push of changes to the maintenance, and to key and customer records that were read before, including records that
 * did not exist then.
 */
export interface Invalidations {
  /** While false, changes by other processes are noticed only by reading again. */
  readonly connected: boolean;
  /**
   * Monotonic ms: the push is proven to have reported every change until then, since its last `all`. -Infinity while it
   * proves nothing, undefined if it never does.
   */
  readonly provenAtMs?: number;
  /**
   * Calls `listener` in the event-loop turn in which the push arrives. Returns a function that ends the subscription.
   */
  subscribe(listener: (invalidation: Invalidation) => void): () => void;
}

/** The listeners for invalidations. `emit` calls each one synchronously; listeners must not throw. */
export class InvalidationListeners {
  readonly #listeners = new Set<(invalidation: Invalidation) => void>();

  readonly subscribe: Invalidations['subscribe'] = (listener) => {
    // Wrapped, so that the same function subscribed twice is two subscriptions.
    const own = (invalidation: Invalidation) => listener(invalidation);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  };

  emit(invalidation: Invalidation): void {
    for (const listener of this.#listeners) listener(invalidation);
  }
}
