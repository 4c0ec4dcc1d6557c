import type { Invalidation, Invalidations } from './store.ts';

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
