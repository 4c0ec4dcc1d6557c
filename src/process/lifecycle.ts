import { availableParallelism } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import type { Config } from '../config/config.ts';
import type { ReloadOutcome, ReloadTrigger } from '../control/reload/reloader.ts';
import type { ControlPlane } from './control-plane.ts';
import type { ClientAddresses } from './data-plane.ts';
import type { ProcessParts } from './observed-store.ts';

/** The URLs of the listeners, without a path. */
export interface GatewayAddresses extends ClientAddresses {
  readonly ops: string;
  /** Undefined without an `admin` section. */
  readonly admin: string | undefined;
  /** Undefined without a `portal` section. */
  readonly portal: string | undefined;
}

/** Called when the listeners for operators are open, and those for clients are not. */
export type BeforeListening = (addresses: Omit<GatewayAddresses, keyof ClientAddresses>) => Promise<void>;

export interface Gateway {
  readonly addresses: GatewayAddresses;
  /** Reloads the config file, which is also watched for changes. Never rejects. */
  reload(trigger: ReloadTrigger): Promise<ReloadOutcome>;
  /** Makes the gateway not ready, lets requests finish within `shutdown.drain_ms`, then closes everything. */
  close(): Promise<void>;
}

/** What serves the clients of a gateway: the data plane of this process, or the worker pool. */
interface ClientSide {
  /** Starts accepting requests. */
  listen(): Promise<ClientAddresses>;
  /** Makes responses close their connections from now on. */
  beginDrain(): void;
  /** Stops accepting connections. Resolves when requests in flight have ended, or were aborted after `deadlineMs`. */
  drain(deadlineMs: number): Promise<void>;
}

interface GatewayParts extends Pick<ProcessParts, 'log' | 'version'> {
  readonly listener: ClientSide;
  readonly controlPlane: ControlPlane;
  readonly beforeListening?: BeforeListening | undefined;
  /** Additional fields of the log line about the start. */
  readonly logFields?: object;
}

/**
 * Starts serving clients, as the last step of a start. Resolves to the gateway, which then owns `opened`. Rejects if
 * `listener.listen` does.
 */
export async function startServing(
  config: Config,
  { listener, controlPlane, log, version, beforeListening, logFields }: GatewayParts,
  opened: AsyncDisposableStack,
): Promise<Gateway> {
  const { logger } = log;
  opened.defer(() => controlPlane.close());
  for (const warning of config.warnings) logger.warn(warning);
  await beforeListening?.(controlPlane.addresses);
  const clientAddresses = await listener.listen();
  await controlPlane.watchConfigFile();
  const addresses: GatewayAddresses = { ...clientAddresses, ...controlPlane.addresses };
  logger.info(
    { version, config: config.file, config_hash: config.hash, ...logFields, ...addresses },
    'tollgate started',
  );

  const running = opened.move();
  return {
    addresses,
    reload: (trigger) => controlPlane.reloader.reload(trigger),
    async close() {
      const { shutdown } = controlPlane.reloader.running;
      controlPlane.drain();
      logger.info({ ...shutdown }, 'tollgate stops: no longer ready, then drains');
      try {
        listener.beginDrain();
        await setTimeout(shutdown.notReadyMs);
        await listener.drain(shutdown.drainMs);
        logger.info('tollgate stopped');
      } finally {
        // Closes the store and the log even if the drain failed.
        await running.disposeAsync();
      }
    },
  };
}

/** Returns the number of worker processes; `auto` is one per core. */
export function workerCount({ workers }: Pick<Config, 'workers'>): number {
  return workers === 'auto' ? availableParallelism() : workers;
}
