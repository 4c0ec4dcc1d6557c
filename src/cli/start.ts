import { once } from 'node:events';
import type { Config } from '../config/config.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { startGateway } from '../process/gateway.ts';
import { type Gateway, workerCount } from '../process/lifecycle.ts';
import { quickStartBanner } from './quick-start-banner.ts';

type LogFormat = Config['logging']['format'];

/** If SIGINT or SIGTERM goes to the process group, an npm script gets it twice: npm forwards the one that it gets. */
const COPY_BY_NPM_WITHIN_MS = 1000;

/**
 * Runs the gateway until the first SIGTERM or SIGINT, then drains. SIGHUP reloads the configuration. A second SIGTERM
 * or SIGINT ends the process at once, for impatient users at a terminal. `logFormat` replaces the file's format.
 */
export async function start(file: string, logFormat?: LogFormat): Promise<number> {
  const environment = processEnvironment();
  const loaded = await loadConfig(file, environment);
  const config = logFormat ? { ...loaded, logging: { ...loaded.logging, format: logFormat } } : loaded;
  // Handled from the start, because an unhandled SIGHUP ends the process.
  let reload: Gateway['reload'] | undefined;
  process.on('SIGHUP', () => void reload?.('signal'));
  const gateway = await (workerCount(config) > 1 ? startWithWorkers(config) : startGateway(config));
  reload = gateway.reload;
  if (config.seed) process.stdout.write(quickStartBanner(config.seed.customers, gateway.addresses));
  await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  const signalledMs = performance.now();
  const impatient = () => {
    const isCopy = 'npm_lifecycle_event' in environment && performance.now() - signalledMs < COPY_BY_NPM_WITHIN_MS;
    if (!isCopy) process.exit(1);
  };
  process.on('SIGTERM', impatient).on('SIGINT', impatient);
  await gateway.close();
  return 0;
}

/** Imports the worker code only if there are workers. */
async function startWithWorkers(config: Config): Promise<Gateway> {
  const { startPrimary } = await import('../process/workers/primary.ts');
  return startPrimary(config);
}
