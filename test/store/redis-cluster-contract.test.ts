/**
 * Quotas of keys and periods on Redis Cluster, where all names of one call must be in one slot. The whole contract of a
 * store: redis-topologies-contract.load.test.ts.
 */
import { keysContract } from './contract-keys.ts';
import { periodsContract } from './contract-periods.ts';
import { startClusterForStores } from './stores-on-cluster.ts';

const { open } = startClusterForStores();

periodsContract('the store on Redis Cluster', open);
keysContract('the store on Redis Cluster', open);
