/**
 * The composition root of a gateway with workers. The primary runs the ops and the admin listener, watches the config file
 * and manages the worker pool. Workers serve the public listener; node:cluster distributes its connections to them.
 */
import { systemClock } from '../../base/clock.ts';
import type { Config } from '../../config/config.ts';
import { processEnvironment } from '../../config/environment.ts';
import { openControlPlane } from '../control-plane.ts';
import { openIdentity, openQuota } from '../data-plane.ts';
import { type BeforeListening, type Gateway, startServing, workerCount } from '../lifecycle.ts';
import { openLog, openObservedStore } from '../observed-store.ts';
import { readVersion } from '../version.ts';
import { combineLeaseStates, combineRefusals, combineStores, combineUpstreams } from './combine-worker-state.ts';
import { SummedMetrics } from './summed-metrics.ts';
import { WorkerPool } from './worker-pool.ts';

/** Starts the listeners of this process and all workers. Resolves and throws as {@link startGateway}. */
export async function startPrimary(config: Config, beforeListening?: BeforeListening): Promise<Gateway> {
  const clock = systemClock;
  await using opened = new AsyncDisposableStack();
  const environment = processEnvironment();
  const log = openLog(config.logging, true, opened);
  const { logger } = log;
  const parts = { log, clock, version: readVersion(), startedAtMs: clock.nowMs() };
  // Workers report their upstreams, usage and maintenance themselves.
  const own = { ...parts, upstreams: () => [], highestUsage: () => [], maintenance: () => undefined };
  const { store, metrics } = await openObservedStore(config, own, opened);
  // The primary admits no request, so it is not an instance. It only reads limits and usage, for the admin API.
  const quota = openQuota(config, { store, instances: { countForShare: () => 1 }, clock }, opened);

  const sums = new SummedMetrics();
  const size = workerCount(config);
  const pool = new WorkerPool({ size, config, environment, metrics, sums, logger });
  opened.defer(() => pool.kill());
  let { publicKeys } = await openIdentity(config, clock);
  const controlPlane = await openControlPlane(config, {
    ...parts,
    dataPlane: {
      status() {
        const workers = pool.dataPlanes();
        const own = store.status();
        return {
          store: { ...combineStores(own, workers), reached: own.reached !== false && pool.wereAllReady },
          announced: pool.wereAllReady,
          instances: Math.max(1, ...workers.map(({ instances }) => instances)),
          upstreams: combineUpstreams(workers),
          maintenance: workers.find(({ maintenance }) => maintenance)?.maintenance,
        };
      },
      workers: () => pool.status(),
      leaseState: async (customer) => combineLeaseStates(await pool.callAll('leaseState', customer)),
      refusals: async (customer) => combineRefusals(await pool.callAll('refusals', customer)),
      publicKeys: () => publicKeys,
      async applyConfig(next) {
        ({ publicKeys } = await openIdentity(next, clock));
        quota.applyLimits(next);
        logger.level = next.logging.level;
        await pool.applyConfig(next);
      },
    },
    store,
    quota,
    metrics,
    async expose() {
      await pool.callAll('reportMetrics');
      return await sums.text(await metrics.snapshot());
    },
    environment,
  });
  const logFields = { workers: size };
  return await startServing(config, { ...parts, listener: pool, controlPlane, beforeListening, logFields }, opened);
}
