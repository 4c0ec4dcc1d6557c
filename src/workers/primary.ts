/**
 * The composition root of a gateway with workers: this process has the ops and the admin listener and follows the
 * configuration, and keeps the workers, which serve callers. Node.js hands each connection to one of them in turn.
 */
import { systemClock, systemScheduler } from '../clock.ts';
import type { Config } from '../config/config.ts';
import { processEnvironment } from '../config/environment.ts';
import { openControlPlane, type Serving } from '../control-plane.ts';
import { openIdentity, openQuota } from '../data-plane.ts';
import { createLogger } from '../observability/logger.ts';
import { openLog, openObservedStore } from '../runtime.ts';
import { beginToServe, type Gateway } from '../serving.ts';
import type { Store } from '../store/store.ts';
import { readVersion } from '../version.ts';
import { combineHeld, combineRefusals, combineStores, combineUpstreams } from './combine.ts';
import { Crew } from './crew.ts';
import { SummedMetrics } from './summed-metrics.ts';
import { workerCount } from './worker-count.ts';

/** A worker that is slower is scraped with what it said last, and left out of what is explained. */
const ANSWERS_WITHIN_MS = 500;

/**
 * Starts this process' listeners and all workers. As {@link startGateway}, also in what it throws.
 */
export async function startPrimary(config: Config): Promise<Gateway> {
  const clock = systemClock;
  await using opened = new AsyncDisposableStack();
  const startedAtMs = clock.nowMs();
  const version = readVersion();
  const environment = processEnvironment();

  const { destination, droppedLines } = openLog(opened, { shared: true, format: config.logging.format });
  const logger = createLogger({ level: config.logging.level, destination });
  // What callers are served with is the workers' to tell.
  const none = { upstreams: () => [], highestUsage: () => [] };
  const observed = { logger, clock, version, startedAtMs, droppedLines, ...none };
  const { store, metrics } = await openObservedStore(config, observed, opened);
  // It admits nobody, so it is no instance: it tells limits, and what is used of them.
  const quota = openQuota(config, { store, instances: { countForShare: () => 1 }, clock }, opened);

  const sums = new SummedMetrics();
  const size = workerCount(config);
  const crew = new Crew({
    size,
    config,
    environment,
    metrics,
    logger,
    clock,
    scheduler: systemScheduler,
    onMetrics: (shift, snapshot) => sums.note(shift, snapshot),
    onEnd: (shift) => sums.end(shift),
  });
  opened.defer(() => crew.kill());
  let { publicKeys } = await publishedKeys(config);
  const controlPlane = await openControlPlane(config, {
    serving: {
      ...servingOf(crew, store),
      publicKeys: () => publicKeys,
      async follow(next) {
        ({ publicKeys } = await publishedKeys(next));
        quota.follow(next);
        logger.level = next.logging.level;
        await crew.follow(next);
      },
    },
    store,
    quota,
    metrics,
    exposition: {
      contentType: sums.contentType,
      async text() {
        await crew.askAll({ about: 'metrics' }, ANSWERS_WITHIN_MS);
        return await sums.text(await metrics.snapshot());
      },
    },
    logger,
    clock,
    version,
    startedAtMs,
    environment,
  });
  const callers = {
    listen: () => crew.start(),
    beginDrain: () => crew.beginDrain(),
    drain: (deadlineMs: number) => crew.finish(deadlineMs),
  };
  return await beginToServe(config, { callers, controlPlane, logger, version, facts: { workers: size } }, opened);
}

/** The workers and what this process knows of the store, as one. */
function servingOf(crew: Crew, store: Store): Omit<Serving, 'publicKeys' | 'follow'> {
  return {
    facts() {
      const workers = crew.facts();
      const own = store.status();
      return {
        store: { ...combineStores(own, workers), reached: own.reached && crew.wereAllReady },
        announced: crew.wereAllReady,
        instances: Math.max(1, ...workers.map(({ instances }) => instances)),
        upstreams: combineUpstreams(workers),
      };
    },
    workers: () => crew.status(),
    held: async (customer) => combineHeld(await crew.askAll({ about: 'held', customer }, ANSWERS_WITHIN_MS)),
    refusals: async (customer) =>
      combineRefusals(await crew.askAll({ about: 'refusals', customer }, ANSWERS_WITHIN_MS)),
  };
}

async function publishedKeys(config: Config) {
  // What assertions say is the workers' business.
  const identity = await openIdentity(config, '', systemClock);
  return { publicKeys: identity?.publicKeys ?? { keys: [] } };
}
