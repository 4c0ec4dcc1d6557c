/**
 * The composition root of a gateway that is one process: builds every part from the configuration, passes it what it
 * depends on, and closes all in the reverse order. workers/primary.ts is that of one with workers.
 */
import { type Clock, systemClock } from './clock.ts';
import type { Config } from './config/config.ts';
import { processEnvironment } from './config/environment.ts';
import type { Environment } from './config/substitute.ts';
import { openControlPlane } from './control-plane.ts';
import { openDataPlane } from './data-plane.ts';
import { createLogger, type LogDestination } from './observability/logger.ts';
import { openLog, openObservedStore } from './runtime.ts';
import { seed } from './seed.ts';
import { beginToServe, type Gateway } from './serving.ts';
import { readVersion } from './version.ts';

/** What tests put in place of the real thing. */
export interface GatewayOverrides {
  readonly clock?: Clock;
  /** Gets every log line; left out: standard output. */
  readonly logDestination?: LogDestination;
  /** For the file when it is read again; left out: the environment of the process. */
  readonly environment?: Environment;
}

/**
 * Starts all listeners. A Redis that is away is no reason to fail: the gateway is live, not ready, and heals.
 * @throws Error when an address is taken, or the embedded store's file is; the message says what to change.
 */
export async function startGateway(config: Config, overrides: GatewayOverrides = {}): Promise<Gateway> {
  const { clock = systemClock, logDestination, environment = processEnvironment() } = overrides;
  await using opened = new AsyncDisposableStack();
  const startedAtMs = clock.nowMs();
  const version = readVersion();

  const { destination, droppedLines } = logDestination
    ? { destination: logDestination, droppedLines: () => 0 }
    : openLog(opened, { shared: false, format: config.logging.format });
  const logger = createLogger({ level: config.logging.level, destination });
  const upstreams = () => dataPlane.facts().upstreams;
  const highestUsage = (count: number) => dataPlane.highestUsage(count);
  const observed = { logger, clock, version, startedAtMs, droppedLines, upstreams, highestUsage };
  const { store, metrics } = await openObservedStore(config, observed, opened);
  if (config.seed) await seed(config.seed.customers, store.records, new Date(startedAtMs).toISOString());

  const dataPlane = await openDataPlane(config, { store, metrics, logger, destination, clock });
  opened.defer(() => dataPlane.close());
  const controlPlane = await openControlPlane(config, {
    serving: { ...dataPlane, workers: () => [] },
    store,
    quota: dataPlane.quota,
    metrics,
    exposition: metrics,
    logger,
    clock,
    version,
    startedAtMs,
    environment,
  });
  return await beginToServe(config, { callers: dataPlane, controlPlane, logger, version }, opened);
}
