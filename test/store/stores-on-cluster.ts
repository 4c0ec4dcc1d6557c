/** Empty stores on one Redis Cluster. */
import { systemClock } from '../../src/base/clock.ts';
import { openStore } from '../../src/store/open/open-store.ts';
import { PART_TAGS } from '../../src/store/redis/protocol/hash-slots.ts';
import { redisKeyNames } from '../../src/store/redis/protocol/key-names.ts';
import { closeAtEnd, startShared } from '../support/cleanup.ts';
import { type RedisClusterServers, startRedisCluster } from '../support/redis-cluster.ts';
import { acceptAsEmpty } from '../support/redis-system.ts';
import type { OpenStore } from './contract.ts';
import { RETENTION } from './contract-history.ts';

/** Starts a cluster for all tests of a file. Returns it, and what opens an empty store on it. */
export function startClusterForStores(): { readonly servers: () => RedisClusterServers; readonly open: OpenStore } {
  const started = startShared(async () => {
    // Nothing fails here, but on a busy machine members stand still.
    const cluster = await startRedisCluster({ nodeTimeoutMs: 15_000 });
    closeAtEnd(() => cluster.stop());
    /** Of each part of the slots. */
    const masters = await Promise.all(PART_TAGS.map((tag) => cluster.holderOf(`{${tag}}`)));
    return { cluster, masters };
  });
  const servers = () => started().cluster;

  /** Marks each part as `store init` does: a first start would wait for another gateway that may be writing these marks. */
  async function acceptPartsAsEmpty(prefix: string): Promise<void> {
    const { installedPart } = redisKeyNames(prefix);
    const { masters } = started();
    await Promise.all(PART_TAGS.map((tag, part) => masters[part]?.command('SET', installedPart(tag), 'init-test')));
  }

  let storeNumber = 0;
  return {
    servers,
    async open(observer) {
      storeNumber += 1;
      const settings = { url: servers().url, keyPrefix: `test-${storeNumber}`, timeoutMs: 2000, usage: RETENTION };
      await acceptAsEmpty(servers(), settings.keyPrefix);
      await acceptPartsAsEmpty(settings.keyPrefix);
      return openStore(settings, { clock: systemClock, warn: () => undefined, observer });
    },
  };
}
