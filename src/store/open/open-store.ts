/** Opens the store that a URL names. */
import type { Clock } from '../../base/clock.ts';
import { openEmbeddedStore } from '../embedded/embedded-store.ts';
import type { RedisTls, SentinelAccess } from '../redis/connection/server-options.ts';
import { openRedisStore } from '../redis/redis-store.ts';
import type { Store, StoreObserver } from '../store.ts';
import { parseStoreUrl } from '../store-address.ts';

export interface StoreSettings {
  /** For the syntax see src/store/store-address.ts. */
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
  /** Opening writes nothing to Redis. Default: false. */
  readonly readOnly?: boolean;
}

/**
 * Opens the store that `settings.url` names. An unreachable Redis is not an error: the store keeps trying to connect.
 * @throws StoreUnavailableError when the embedded store's file cannot be opened or is in use.
 * @throws Error for an invalid URL.
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
