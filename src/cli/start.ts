import { once } from 'node:events';
import type { Config } from '../config/config.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { startGateway } from '../gateway.ts';
import type { Gateway } from '../serving.ts';
import { workerCount } from '../workers/worker-count.ts';
import { quickStartBanner } from './quick-start-banner.ts';

type LogFormat = Config['logging']['format'];

/** An npm script gets SIGINT and SIGTERM twice where they go to its process group: npm passes on what it gets itself. */
const COPY_BY_NPM_WITHIN_MS = 1000;

/**
 * Runs the gateway until the first SIGTERM or SIGINT, then drains. SIGHUP has it read its configuration again. A second
 * signal ends the process at once, for whoever sits at the terminal. `logFormat` is used instead of the file's.
 */
export async function start(file: string, logFormat?: LogFormat): Promise<number> {
  const environment = processEnvironment();
  const loaded = await loadConfig(file, environment);
  const config = logFormat ? { ...loaded, logging: { ...loaded.logging, format: logFormat } } : loaded;
  // From the first moment on: by itself the signal ends a process.
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

/** Loaded only where there are any. */
async function startWithWorkers(config: Config): Promise<Gateway> {
  const { startPrimary } = await import('../workers/primary.ts');
  return startPrimary(config);
}
