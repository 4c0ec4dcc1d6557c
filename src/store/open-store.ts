/** Which store a URL means. */
import type { Clock } from '../clock.ts';
import { openEmbeddedStore } from './embedded/embedded-store.ts';
import { openRedisStore } from './redis/redis-store.ts';
import type { Store, StoreObserver } from './store.ts';

export interface StoreSettings {
  /** `redis://…`, `rediss://…` or `sqlite:FILE`. */
  readonly url: string;
  readonly keyPrefix: string;
  readonly timeoutMs: number;
}

export interface StoreSurroundings {
  readonly clock: Clock;
  readonly observer: StoreObserver;
  readonly warn: (message: string) => void;
}

/**
 * Opens the store that `url` names. A Redis that is away is no error.
 * @throws StoreUnavailableError when the embedded store's file cannot be opened or is in use.
 * @throws Error for a URL of another scheme.
 */
export async function openStore(settings: StoreSettings, surroundings: StoreSurroundings): Promise<Store> {
  const [, scheme = '', rest = ''] = /^([a-z+]+):(.*)$/s.exec(settings.url) ?? [];
  switch (scheme) {
    case 'redis':
    case 'rediss':
      return openRedisStore({ ...settings, ...surroundings });
    case 'sqlite':
      return openEmbeddedStore({ file: rest, ...surroundings });
    default:
      // The URL itself stays out of the message: it may hold a password.
      throw new Error('store.url must begin with redis://, rediss:// or sqlite:');
  }
}
