/**
 * A worker process: one data plane, controlled by the primary over an IPC channel. Workers ignore signals that a terminal
 * or a service manager sends to all processes: the primary handles them. node:cluster ends a worker that loses its primary.
 */
import { isDeepStrictEqual } from 'node:util';
import { systemClock, systemScheduler } from '../../base/clock.ts';
import type { Config } from '../../config/config.ts';
import { deepFreeze } from '../../config/load.ts';
import type { Logger } from '../../observability/logger.ts';
import { type DataPlaneStatus, openDataPlane } from '../data-plane.ts';
import { openLog } from '../observed-store.ts';
import { readVersion } from '../version.ts';
import type { ToPrimary, ToWorker, WorkerCall, WorkerMethods } from './messages.ts';
import { shareFailures } from './shared-failures.ts';

/** A worker that is killed loses what it counted since its last report. */
const METRICS_INTERVAL_MS = 2000;
const STATUS_INTERVAL_MS = 200;

interface Running {
  readonly methods: WorkerMethods;
  readonly logger: Logger;
}

/** Resolves to the exit status after a drain, or when the worker cannot start. */
function runWorker(): Promise<number> {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  const exit = Promise.withResolvers<number>();
  let starting: Promise<Running | undefined> = Promise.resolve(undefined);
  process.on('message', async (message: ToWorker) => {
    if (message.kind === 'start') {
      starting = start(message.workerId, deepFreeze(message.config), exit).catch(async (error) => {
        await sendAndWait({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) });
        exit.resolve(1);
        return undefined;
      });
      return;
    }
    const running = await starting;
    if (running !== undefined) await reply(running, message);
  });
  return exit.promise;
}

async function start(workerId: number, config: Config, exit: PromiseWithResolvers<number>): Promise<Running> {
  await using opened = new AsyncDisposableStack();
  const log = openLog(config.logging, true, opened);
  const logger = log.logger.child({ worker: workerId });
  const dataPlane = await openDataPlane(config, {
    log: { ...log, logger },
    clock: systemClock,
    version: readVersion(),
    startedAtMs: systemClock.nowMs(),
    keyFailed: shareFailures((failures) => send({ kind: 'failures', failures }), systemScheduler),
  });
  opened.defer(() => dataPlane.close());
  const addresses = await dataPlane.listen();
  send({ kind: 'listening', addresses });

  let reportedStatus: DataPlaneStatus | undefined;
  const reportStatus = () => {
    const status = dataPlane.status();
    if (isDeepStrictEqual(status, reportedStatus)) return;
    reportedStatus = status;
    send({ kind: 'status', status });
  };
  reportStatus();
  const statusTimer = setInterval(reportStatus, STATUS_INTERVAL_MS);
  opened.defer(() => clearInterval(statusTimer));
  let lastReport: Promise<void> = Promise.resolve();
  /** Sends one report at a time, so that they arrive in order. */
  const reportMetrics = () => {
    lastReport = lastReport.then(async () =>
      sendAndWait({ kind: 'metrics', snapshot: await dataPlane.metrics.snapshot() }),
    );
    return lastReport;
  };
  const metricsTimer = setInterval(() => void reportMetrics(), METRICS_INTERVAL_MS);
  opened.defer(() => clearInterval(metricsTimer));

  const running = opened.move();
  const drainAndClose = async (drainMs: number) => {
    await dataPlane.drain(drainMs);
    await running.disposeAsync();
    await reportMetrics();
  };
  const methods: WorkerMethods = {
    ...dataPlane,
    async applyConfig(next) {
      await dataPlane.applyConfig(deepFreeze(next));
      reportStatus();
    },
    reportMetrics,
    finishDrain: (drainMs) => drainAndClose(drainMs).then(() => exit.resolve(0), exit.reject),
  };
  return { methods, logger };
}

async function reply({ methods, logger }: Running, { id, method, args }: WorkerCall): Promise<void> {
  try {
    const call = methods[method] as (...args: readonly unknown[]) => unknown;
    send({ kind: 'reply', id, result: { value: await call(...args) } });
  } catch (error) {
    logger.error({ err: error, type: method }, 'a request of the primary failed in this worker');
    send({ kind: 'reply', id, result: undefined });
  }
}

function send(message: ToPrimary): void {
  void sendAndWait(message);
}

/** Resolves when the message is written, or cannot be: without the primary, node:cluster ends this process. */
function sendAndWait(message: ToPrimary): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });
}

process.exit(await runWorker());
