import { once } from 'node:events';
import type { Config } from '../config/config.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { startGateway } from '../process/gateway.ts';
import { type Gateway, type GatewayAddresses, workerCount } from '../process/lifecycle.ts';

type LogFormat = Config['logging']['format'];

/** npm forwards signals to its script, so a signal to the whole process group arrives twice within this time. */
const COPY_BY_NPM_WITHIN_MS = 1000;

/** Called once the gateway serves. */
export type OnStarted = (addresses: GatewayAddresses) => Promise<void>;

/**
 * Runs the gateway until the first SIGTERM or SIGINT, then drains. SIGHUP reloads the configuration. A second SIGTERM
 * or SIGINT ends the process at once, for impatient users at a terminal. `logFormat` replaces the file's format.
 * Rejects if `onStarted` does before the first signal.
 */
export async function start(
  file: string,
  logFormat?: LogFormat,
  onStarted: OnStarted = async () => {},
): Promise<number> {
  const environment = processEnvironment();
  const loaded = await loadConfig(file, environment);
  const config = logFormat ? { ...loaded, logging: { ...loaded.logging, format: logFormat } } : loaded;
  // Handled from the start, because an unhandled SIGHUP ends the process.
  let reload: Gateway['reload'] | undefined;
  process.on('SIGHUP', () => void reload?.('signal'));
  const gateway = await (workerCount(config) > 1 ? startWithWorkers(config) : startGateway(config));
  reload = gateway.reload;
  const signalled = Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  await Promise.race([signalled, onStarted(gateway.addresses).then(() => signalled)]);
  const signalledMs = performance.now();
  const exitAtOnce = () => {
    const isCopy = 'npm_lifecycle_event' in environment && performance.now() - signalledMs < COPY_BY_NPM_WITHIN_MS;
    if (!isCopy) process.exit(1);
  };
  process.on('SIGTERM', exitAtOnce).on('SIGINT', exitAtOnce);
  await gateway.close();
  return 0;
}

/** Imports the worker code only if there are workers. */
async function startWithWorkers(config: Config): Promise<Gateway> {
  const { startPrimary } = await import('../process/workers/primary.ts');
  return startPrimary(config);
}
