import { StoreUnavailableError } from '../store/store.ts';

/** Resolves to undefined while the store is unavailable: the rest of a response is still useful. */
export async function unlessUnavailable<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof StoreUnavailableError) return undefined;
    throw error;
  }
}
