/** What every gateway process (single, primary or worker) needs: a log, the store, and the metrics. */
import { fstatSync } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import type { Config } from '../config/config.ts';
import { openLogStream } from '../observability/log-stream.ts';
import { createLogger, type LogDestination, type Logger } from '../observability/logger.ts';
import { createMetrics, type Metrics, type MetricsOptions } from '../observability/metrics.ts';
import { prettyLines } from '../observability/pretty-lines.ts';
import { wholeLines } from '../observability/whole-lines.ts';
import type { StoreObserver } from '../store/observer.ts';
import { openStore } from '../store/open/open-store.ts';
import type { Store } from '../store/store.ts';

interface Log {
  readonly logger: Logger;
  readonly destination: LogDestination;
  /** Returns the number of lines dropped since the start. */
  droppedLines(): number;
}

/**
 * Opens the log on standard output. The pretty format uses colors on a terminal, unless NO_COLOR is set. `isShared`:
 * other processes write to standard output, too.
 */
export function openLog({ level, format }: Config['logging'], isShared: boolean, opened: AsyncDisposableStack): Log {
  // A write to a file is never split, so only other outputs need wholeLines.
  const isPipe = !fstatSync(process.stdout.fd).isFile();
  const stream = openLogStream(isShared && isPipe ? wholeLines(process.stdout) : process.stdout);
  opened.defer(() => stream.close());
  const isPretty = format === 'pretty' || (format === 'auto' && process.stdout.isTTY);
  const destination = isPretty ? prettyLines(stream, { colors: process.stdout.hasColors?.() ?? false }) : stream;
  return { logger: createLogger({ level, destination }), destination, droppedLines: stream.droppedLines };
}

/** What the parts of a gateway process share. */
export interface ProcessParts {
  readonly log: Log;
  readonly clock: Clock;
  readonly version: string;
  readonly startedAtMs: number;
}

interface ObservedStoreParts extends ProcessParts, Pick<MetricsOptions, 'upstreams' | 'highestUsage' | 'maintenance'> {}

/** Opens the store, and creates the metrics for it and for the process. @throws Error as {@link openStore}. */
export async function openObservedStore(config: Config, parts: ObservedStoreParts, opened: AsyncDisposableStack) {
  const { log, clock, version, startedAtMs, upstreams, highestUsage, maintenance } = parts;
  const { logger } = log;
  const metrics = createMetrics({
    version,
    running: { hash: config.hash, loadedAtMs: startedAtMs },
    storeStatus: () => store.status(),
    upstreams,
    highestUsage,
    maintenance,
    droppedLogLines: log.droppedLines,
    defaultMetrics: true,
  });
  const store: Store = await openStore(
    { ...config.store, usage: config.usage },
    {
      clock,
      observer: observeStore(metrics, logger),
      warn: (message) => logger.warn(message),
    },
  );
  opened.defer(() => store.close());
  return { store, metrics };
}

/** Counts store calls, damaged windows and damaged records. Logs the latter two, and each change of the store's state. */
function observeStore(metrics: Metrics, logger: Logger): StoreObserver {
  let reached = false;
  return {
    called: metrics.storeCalled,
    up(up, reason) {
      if (up) logger.info('the store is reachable');
      else if (reached)
        logger.error(
          { reason },
          'the store is not reachable: known keys are still served, quotas follow store.on_error',
        );
      else logger.error({ reason }, 'the store is not reachable, so this gateway is not ready: check store.url');
      reached ||= up;
    },
    refusing(reason) {
      if (reason === undefined) logger.info('the store accepts reservations again');
      else logger.error({ reason }, 'the store refuses reservations: quotas follow store.on_error');
    },
    damagedWindow(customer, reply) {
      metrics.damagedWindow();
      if (reply === undefined) return;
      logger.error(
        { customer, reason: reply },
        'the quota window of this customer is damaged: its quota follows store.on_error until its usage is reset',
      );
    },
    damagedRecord(damage, isReported) {
      metrics.damagedRecord(damage.kind, damage.fault.code);
      if (!isReported) return;
      const { record, fault, keyId, customer } = damage;
      logger.error(
        { record, fault: fault.code, key_id: keyId, customer, reason: `the record ${fault.text}` },
        'a record in the store is damaged: repair it; "tollgate store check" lists all damaged records',
      );
    },
  };
}
