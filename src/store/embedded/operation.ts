import type { StoreOp } from '../store.ts';

/**
 * Runs one synchronous operation on the database and tells the observer.
 * Rejects with StoreUnavailableError for whatever `operation` throws.
 */
export type RunOperation = <T>(op: StoreOp, operation: () => T) => Promise<T>;
