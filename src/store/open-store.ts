/** Which store a URL means. */
import type { Clock } from '../clock.ts';
import { parseStoreUrl } from '../store-address.ts';
import { openEmbeddedStore } from './embedded/embedded-store.ts';
import { openRedisStore } from './redis/redis-store.ts';
import type { RedisTls, SentinelAccess } from './redis/server-options.ts';
import type { Store, StoreObserver } from './store.ts';

export interface StoreSettings {
  /** As src/store-address.ts has it. */
  readonly url: string;
  readonly keyPrefix: string;
  readonly timeoutMs: number;
  readonly tls?: RedisTls;
  readonly sentinel?: SentinelAccess;
}

export interface StoreSurroundings {
  readonly clock: Clock;
  readonly observer: StoreObserver;
  readonly warn: (message: string) => void;
  /** Opening writes nothing to Redis. Default: no. */
  readonly readOnly?: boolean;
}

/**
 * Opens the store that `url` names. A Redis that is away is no error.
 * @throws StoreUnavailableError when the embedded store's file cannot be opened or is in use.
 * @throws Error for a URL that breaks the rules.
 */
export async function openStore(settings: StoreSettings, surroundings: StoreSurroundings): Promise<Store> {
  const address = parseStoreUrl(settings.url);
  switch (address.kind) {
    case 'sqlite':
      return openEmbeddedStore({ file: address.file, ...surroundings });
    case 'invalid':
      throw new Error(`store.url ${address.fault}`);
    default:
      return openRedisStore({ ...settings, ...surroundings });
  }
}
