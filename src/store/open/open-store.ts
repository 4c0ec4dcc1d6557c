/** Opens the store that a URL names. */
import { parseStoreUrl } from '../../formats/store-address.ts';
import { openEmbeddedStore } from '../embedded/embedded-store.ts';
import { openRedisStore, type RedisStoreOptions } from '../redis/redis-store.ts';
import type { Store } from '../store.ts';

export type StoreSettings = Pick<RedisStoreOptions, 'url' | 'keyPrefix' | 'timeoutMs' | 'tls' | 'sentinel' | 'usage'>;
type StoreSurroundings = Pick<RedisStoreOptions, 'clock' | 'observer' | 'warn' | 'readOnly'>;

/**
 * Opens the store that `settings.url` names. An unreachable Redis is not an error: the store keeps trying to connect.
 * @throws StoreUnavailableError when the embedded store's file cannot be opened or is in use.
 * @throws Error for an invalid URL.
 */
export async function openStore(settings: StoreSettings, surroundings: StoreSurroundings): Promise<Store> {
  const address = parseStoreUrl(settings.url);
  switch (address.kind) {
    case 'sqlite':
      return openEmbeddedStore({ file: address.file, usage: settings.usage, ...surroundings });
    case 'invalid':
      throw new Error(`store.url ${address.fault}`);
    default:
      return openRedisStore({ ...settings, ...surroundings });
  }
}
