/**
 * A worker process: one data plane, controlled by the primary over an IPC channel. Workers ignore signals that a terminal
 * or a service manager sends to all processes: the primary handles them. node:cluster ends a worker that loses its primary.
 */
import { isDeepStrictEqual } from 'node:util';
import { systemClock, systemScheduler } from '../../base/clock.ts';
import type { Config } from '../../config/config.ts';
import { deepFreeze } from '../../config/freeze.ts';
import type { Logger } from '../../observability/logger.ts';
import { type DataPlane, type DataPlaneStatus, openDataPlane } from '../data-plane.ts';
import { openLog } from '../observed-store.ts';
import { readVersion } from '../version.ts';
import type { ToPrimary, ToWorker, WorkerReplies, WorkerRequest } from './messages.ts';
import { SharedFailures } from './shared-failures.ts';

/** A worker that is killed loses what it counted since its last report. */
const METRICS_INTERVAL_MS = 2000;
const STATUS_INTERVAL_MS = 200;

interface Running {
  readonly dataPlane: DataPlane;
  readonly logger: Logger;
  /** Sends one report at a time, so that they arrive in order. */
  reportMetrics(): Promise<void>;
  /** Drains, closes everything but the IPC channel, and reports the metrics once more. */
  finishDrain(drainMs: number): Promise<void>;
}

/** Resolves to the exit status after a drain, or when the worker cannot start. */
function runWorker(): Promise<number> {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  return new Promise((resolve, reject) => {
    let starting: Promise<Running | undefined> = Promise.resolve(undefined);
    const startOrFail = async (workerId: number, config: Config): Promise<Running | undefined> => {
      try {
        return await start(workerId, config);
      } catch (error) {
        await sendAndWait({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) });
        resolve(1);
        return undefined;
      }
    };
    const receive = async (message: ToWorker): Promise<void> => {
      if (message.kind === 'start') {
        starting = startOrFail(message.workerId, deepFreeze(message.config));
        return;
      }
      const running = await starting;
      switch (message.kind) {
        case 'request':
          return await handleRequest(message.id, message.request, running);
        case 'failures':
          for (const [block, failures] of message.failures) running?.dataPlane.learnFailures(block, failures);
          return;
        case 'begin_drain':
          return running?.dataPlane.beginDrain();
        case 'finish_drain':
          await running?.finishDrain(message.drainMs);
          resolve(0);
      }
    };
    process.on('message', (message: ToWorker) => void receive(message).catch(reject));
    send({ kind: 'online' });
  });
}

async function start(workerId: number, config: Config): Promise<Running> {
  await using opened = new AsyncDisposableStack();
  const log = openLog(config.logging, true, opened);
  const logger = log.logger.child({ worker: workerId });
  const shared = new SharedFailures((failures) => send({ kind: 'failures', failures }), systemScheduler);
  const dataPlane = await openDataPlane(config, {
    log: { ...log, logger },
    clock: systemClock,
    version: readVersion(),
    startedAtMs: systemClock.nowMs(),
    keyFailed: (block) => shared.count(block),
  });
  opened.defer(() => dataPlane.close());
  const url = await dataPlane.listen();
  send({ kind: 'listening', url });

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
  const reportMetrics = () => {
    lastReport = lastReport.then(async () =>
      sendAndWait({ kind: 'metrics', snapshot: await dataPlane.metrics.snapshot() }),
    );
    return lastReport;
  };
  const metricsTimer = setInterval(() => void reportMetrics(), METRICS_INTERVAL_MS);
  opened.defer(() => clearInterval(metricsTimer));

  const running = opened.move();
  return {
    dataPlane,
    logger,
    reportMetrics,
    async finishDrain(drainMs) {
      await dataPlane.drain(drainMs);
      await running.disposeAsync();
      await reportMetrics();
    },
  };
}

async function handleRequest(id: number, request: WorkerRequest, running: Running | undefined): Promise<void> {
  if (running === undefined) return send({ kind: 'request_failed', id });
  try {
    send({ kind: 'reply', id, value: await replyTo(request, running) });
  } catch (error) {
    running.logger.error({ err: error, type: request.type }, 'a request of the primary failed in this worker');
    send({ kind: 'request_failed', id });
  }
}

async function replyTo(
  request: WorkerRequest,
  { dataPlane, reportMetrics }: Running,
): Promise<WorkerReplies[WorkerRequest['type']]> {
  switch (request.type) {
    case 'apply_config':
      await dataPlane.applyConfig(deepFreeze(request.config));
      send({ kind: 'status', status: dataPlane.status() });
      return undefined;
    case 'metrics':
      await reportMetrics();
      return undefined;
    case 'leaseState':
      return dataPlane.leaseState(request.customer);
    case 'refusals':
      return dataPlane.refusals(request.customer);
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
