import type { StoreOp } from '../store.ts';

/**
 * Runs one synchronous operation on the database and reports it to the observer.
 * Rejects with StoreUnavailableError when `operation` throws.
 */
export type RunOperation = <T>(op: StoreOp, operation: () => T) => Promise<T>;
