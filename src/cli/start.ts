import { once } from 'node:events';
import type { Config } from '../config/config.ts';
import { processEnvironment } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { startGateway } from '../process/gateway.ts';
import { type BeforeListening, type Gateway, type GatewayAddresses, workerCount } from '../process/lifecycle.ts';
import { receiveSignals } from './process-signals.ts';

type LogFormat = Config['logging']['format'];

interface RunParts {
  readonly stopping: AbortSignal;
  readonly beforeListening?: BeforeListening;
  /** Called once the gateway serves. */
  readonly onStarted?: (addresses: GatewayAddresses) => Promise<void>;
}

/** Runs the gateway of a config file until `stopping` is aborted. `logFormat` replaces the file's format. */
export async function start(file: string, logFormat?: LogFormat, stopping = receiveSignals()): Promise<number> {
  const config = await loadConfig(file, processEnvironment());
  return runGateway(logFormat ? { ...config, logging: { ...config.logging, format: logFormat } } : config, {
    stopping,
  });
}

/**
 * Runs the gateway until `stopping` is aborted, then drains. SIGHUP reloads the configuration. Rejects if `onStarted`
 * does before that.
 */
export async function runGateway(config: Config, { stopping, beforeListening, onStarted }: RunParts): Promise<number> {
  if (stopping.aborted) return 0;
  const gateway = await (workerCount(config) > 1
    ? startWithWorkers(config, beforeListening)
    : startGateway(config, { beforeListening }));
  process.on('SIGHUP', () => void gateway.reload('signal'));
  const stopped = stopping.aborted ? Promise.resolve([]) : once(stopping, 'abort');
  await Promise.race([stopped, onStarted?.(gateway.addresses).then(() => stopped) ?? stopped]);
  await gateway.close();
  return 0;
}

/** Imports the worker code only if there are workers. */
async function startWithWorkers(config: Config, beforeListening?: BeforeListening): Promise<Gateway> {
  const { startPrimary } = await import('../process/workers/primary.ts');
  return startPrimary(config, beforeListening);
}
