/** What every process of the gateway has, whatever it does: a log, and a store that is observed. */
import { fstatSync } from 'node:fs';
import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import { openLogStream } from './observability/log-stream.ts';
import type { LogDestination, Logger } from './observability/logger.ts';
import type { Metrics } from './observability/metrics.ts';
import { wholeLines } from './observability/whole-lines.ts';
import { openStore } from './store/open-store.ts';
import type { Store, StoreObserver } from './store/store.ts';

export interface Log {
  readonly destination: LogDestination;
  /** Since the start. */
  droppedLines(): number;
}

/** `shared`: other processes write to standard output too. */
export function openLog(opened: AsyncDisposableStack, { shared }: { shared: boolean }): Log {
  // A write to a file is never divided.
  const isPipe = !fstatSync(process.stdout.fd).isFile();
  const destination = openLogStream(shared && isPipe ? wholeLines(process.stdout) : process.stdout);
  opened.defer(() => destination.close());
  return { destination, droppedLines: destination.droppedLines };
}

interface StoreParts {
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** @throws Error as {@link openStore}. */
export async function openObservedStore(config: Config, parts: StoreParts, opened: AsyncDisposableStack) {
  const { metrics, logger, clock } = parts;
  const store: Store = await openStore(config.store, {
    clock,
    observer: observeStore(metrics, logger),
    warn: (message) => logger.warn(message),
  });
  opened.defer(() => store.close());
  return store;
}

/** The store's metrics, and one log line for each change between reachable and not. */
function observeStore(metrics: Metrics, logger: Logger): StoreObserver {
  let reached = false;
  return {
    called: metrics.called,
    up(up, reason) {
      metrics.up(up, reason);
      if (up) logger.info('the store is reachable');
      else if (reached)
        logger.error({ reason }, 'the store is not reachable: known keys go on, quotas by store.on_error');
      else
        logger.error({ reason }, 'the store is not reachable, and this gateway not ready until it is: see store.url');
      reached ||= up;
    },
  };
}
