import { setTimeout } from 'node:timers/promises';
import type { Config } from './config/config.ts';
import type { ControlPlane } from './control-plane.ts';
import type { Logger } from './observability/logger.ts';
import type { ReloadOutcome, ReloadTrigger } from './reload/reloader.ts';

/** Where the listeners can be reached, as URLs without a path. */
export interface GatewayAddresses {
  readonly public: string;
  readonly ops: string;
  /** Undefined without an `admin` section. */
  readonly admin: string | undefined;
}

export interface Gateway {
  readonly addresses: GatewayAddresses;
  /** Reads the configuration file again; besides, every change of it is noticed. Never rejects. */
  reload(trigger: ReloadTrigger): Promise<ReloadOutcome>;
  /** Stops being ready, lets requests finish within `shutdown.drain_ms`, then closes everything. */
  close(): Promise<void>;
}

/** Those who serve callers, as they begin and end. */
export interface Callers {
  /** Takes requests; resolves to the URL, without a path. */
  listen(): Promise<string>;
  /** Answers end their connections from now on. */
  beginDrain(): void;
  /** Takes no more, and resolves when what was under way has ended, or after so long. */
  drain(deadlineMs: number): Promise<void>;
}

export interface ServingParts {
  readonly callers: Callers;
  readonly controlPlane: ControlPlane;
  readonly logger: Logger;
  readonly version: string;
  /** For the log line that says what was started. */
  readonly facts?: object;
}

/**
 * The last step of a start, and the whole of a stop, the same with workers and without: `opened` belongs to the gateway
 * from then on. Throws what `callers` throw when they cannot listen.
 */
export async function beginToServe(
  config: Config,
  { callers, controlPlane, logger, version, facts }: ServingParts,
  opened: AsyncDisposableStack,
): Promise<Gateway> {
  opened.defer(() => controlPlane.close());
  for (const warning of config.warnings) logger.warn(warning);
  const publicUrl = await callers.listen();
  await controlPlane.follow();
  const addresses: GatewayAddresses = { public: publicUrl, ops: controlPlane.opsUrl, admin: controlPlane.adminUrl };
  logger.info({ version, config: config.file, config_hash: config.hash, ...facts, ...addresses }, 'tollgate started');

  const running = opened.move();
  return {
    addresses,
    reload: (trigger) => controlPlane.reload(trigger),
    async close() {
      const { shutdown } = controlPlane.config;
      controlPlane.drain();
      logger.info({ ...shutdown }, 'tollgate stops: not ready any more, then drains');
      try {
        callers.beginDrain();
        await setTimeout(shutdown.notReadyMs);
        await callers.drain(shutdown.drainMs);
        logger.info('tollgate stopped');
      } finally {
        // A failed drain must not keep the store and the log from being closed.
        await running.disposeAsync();
      }
    },
  };
}
