/**
 * The composition root of a single-process gateway: builds every part from the config, passes it its dependencies, and
 * closes all in reverse order. workers/primary.ts is the composition root of a gateway with workers.
 */
import { type Clock, systemClock } from '../base/clock.ts';
import type { Config } from '../config/config.ts';
import { type Environment, processEnvironment } from '../config/environment.ts';
import { createLogger, type LogDestination } from '../observability/logger.ts';
import { openControlPlane } from './control-plane.ts';
import { openDataPlane } from './data-plane.ts';
import { type BeforeListening, type Gateway, startServing } from './lifecycle.ts';
import { openLog } from './observed-store.ts';
import { readVersion } from './version.ts';

/** Replacements for tests, and what the quick start adds. */
interface GatewayOverrides {
  readonly clock?: Clock;
  /** Receives every log line; standard output by default. */
  readonly logDestination?: LogDestination;
  /** For reloads of the config file; by default, the environment of the process. */
  readonly environment?: Environment;
  readonly beforeListening?: BeforeListening | undefined;
}

/**
 * Starts all listeners. An unavailable Redis is not an error: the gateway is live but not ready, and recovers by
 * itself.
 * @throws Error when an address or the embedded store's file is in use; the message says what to change.
 */
export async function startGateway(config: Config, overrides: GatewayOverrides = {}): Promise<Gateway> {
  const { clock = systemClock, logDestination, environment = processEnvironment(), beforeListening } = overrides;
  await using opened = new AsyncDisposableStack();
  const log = logDestination
    ? {
        logger: createLogger({ level: config.logging.level, destination: logDestination }),
        destination: logDestination,
        droppedLines: () => 0,
      }
    : openLog(config.logging, false, opened);
  const parts = { log, clock, version: readVersion(), startedAtMs: clock.nowMs() };
  const dataPlane = await openDataPlane(config, parts);
  opened.defer(() => dataPlane.close());
  const { store, quota, metrics } = dataPlane;
  const controlPlane = await openControlPlane(config, {
    ...parts,
    dataPlane: { ...dataPlane, workers: () => [] },
    store,
    quota,
    metrics,
    expose: metrics.text,
    environment,
  });
  return await startServing(config, { ...parts, listener: dataPlane, controlPlane, beforeListening }, opened);
}
