/**
 * The worker pool: a fixed number of slots with one worker process each. A worker that exits unexpectedly is restarted
 * after a delay, which grows while that repeats. The other workers are not affected.
 */
import cluster from 'node:cluster';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Scheduled, systemClock, systemScheduler } from '../../base/clock.ts';
import type { Config } from '../../config/config.ts';
import type { Environment } from '../../config/environment.ts';
import type { Logger } from '../../observability/logger.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { DataPlaneView } from '../control-plane.ts';
import type { ClientAddresses, DataPlaneStatus } from '../data-plane.ts';
import { workerConfig, workerEnvironment } from './least-privilege.ts';
import type { Report, WorkerMethods } from './messages.ts';
import type { SummedMetrics } from './summed-metrics.ts';
import { WorkerProcess } from './worker-process.ts';

const ENTRY = fileURLToPath(new URL(`./worker${extname(import.meta.filename)}`, import.meta.url));
/** A slower worker is scraped with its last snapshot, and missing from responses of the admin API. */
const REPLY_TIMEOUT_MS = 500;
/** A worker that takes longer to apply a configuration is killed. */
const APPLY_CONFIG_TIMEOUT_MS = 5000;
/** Time after the drain in which a worker returns its leases, writes key uses and exits. Later it is killed. */
const EXIT_TIMEOUT_MS = 5000;

const MIN_RESTART_DELAY_MS = 1000;
const MAX_RESTART_DELAY_MS = 30_000;
/** The exit of a worker that ran this long is no failure to start: the next restart delay is the minimum. */
const STEADY_MS = 60_000;

interface Slot {
  readonly id: number;
  /** Absent while a restart is due. */
  worker?: WorkerProcess | undefined;
  /** Whether any worker of this slot was ever ready. */
  wasReady: boolean;
  restarts: number;
  /** The delay before the last restart. */
  delayMs?: number;
  restart?: Scheduled;
}

interface WorkerPoolOptions {
  readonly size: number;
  readonly config: Config;
  /** The primary's environment variables. */
  readonly environment: Environment;
  readonly metrics: Pick<Metrics, 'workerRestart'>;
  /** Gets the metrics of the workers. */
  readonly sums: SummedMetrics;
  readonly logger: Logger;
}

export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #slots: readonly Slot[];
  readonly #started = Promise.withResolvers<ClientAddresses>();
  #config: Config;
  #hasStarted = false;
  #isStopping = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#config = workerConfig(options.config);
    this.#slots = Array.from({ length: options.size }, (_, index) => ({ id: index + 1, wasReady: false, restarts: 0 }));
  }

  /**
   * Starts all workers. Resolves to the URLs of the listeners for clients when all listen.
   * @throws Error when a worker cannot start; the others are killed first.
   */
  async listen(): Promise<ClientAddresses> {
    // Messages contain Maps, which JSON cannot represent.
    const execArgv = [...process.execArgv, '--disable-sigusr1'];
    cluster.setupPrimary({ exec: ENTRY, args: [], execArgv, serialization: 'advanced' });
    for (const slot of this.#slots) this.#fork(slot);
    try {
      return await this.#started.promise;
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  /** Whether each slot has had a ready worker. */
  get wereAllReady(): boolean {
    return this.#slots.every(({ wasReady }) => wasReady);
  }

  /** Returns the last reported status of each running worker's data plane. */
  dataPlanes(): readonly DataPlaneStatus[] {
    return this.#workers().flatMap(({ dataPlane }) => dataPlane ?? []);
  }

  status(): ReturnType<DataPlaneView['workers']> {
    return this.#slots.map(({ id, worker, restarts }) => ({
      id,
      pid: worker?.pid,
      startedAtMs: worker?.startedAtMs,
      ready: worker?.dataPlane?.store.up === true && worker.isReady,
      configHash: worker?.dataPlane?.configHash,
      restarts,
    }));
  }

  /** Calls a method of each worker that listens. Resolves to the values that arrive in time. */
  async callAll<Method extends keyof WorkerMethods>(method: Method, ...args: Parameters<WorkerMethods[Method]>) {
    const listening = this.#workers().filter(({ addresses }) => addresses !== undefined);
    const results = await Promise.all(listening.map((worker) => worker.call(REPLY_TIMEOUT_MS, method, ...args)));
    return results.flatMap((result) => (result === undefined ? [] : [result.value]));
  }

  /** Resolves when no worker runs the old config; a worker that fails to apply it is killed and replaced. */
  async applyConfig(config: Config): Promise<void> {
    this.#config = workerConfig(config);
    await Promise.all(
      this.#workers().map(async (worker) => {
        const result = await worker.call(APPLY_CONFIG_TIMEOUT_MS, 'applyConfig', this.#config);
        if (result !== undefined || worker.hasExited) return;
        this.#options.logger.error({ pid: worker.pid }, 'a worker failed to apply the configuration: killing it');
        worker.kill();
        await worker.exited;
      }),
    );
  }

  /** Makes responses close their connections from now on. Exited workers are not replaced. */
  beginDrain(): void {
    this.#stopRestarts();
    for (const worker of this.#workers()) worker.post('beginDrain');
  }

  /** Resolves when all workers have exited. */
  async drain(drainMs: number): Promise<void> {
    for (const worker of this.#workers()) worker.post('finishDrain', drainMs);
    const late = systemScheduler.after(drainMs + EXIT_TIMEOUT_MS, () => {
      this.#options.logger.error('workers did not exit in time after the drain: killing them');
      void this.kill();
    });
    await this.#allExited();
    late.cancel();
  }

  /** Kills all workers without a drain. */
  async kill(): Promise<void> {
    this.#stopRestarts();
    for (const worker of this.#workers()) worker.kill();
    await this.#allExited();
  }

  async #allExited(): Promise<void> {
    await Promise.all(this.#workers().map(({ exited }) => exited));
  }

  #workers(): readonly WorkerProcess[] {
    return this.#slots.flatMap(({ worker }) => worker ?? []);
  }

  #fork(slot: Slot): void {
    const { environment, logger } = this.#options;
    const worker = new WorkerProcess(
      workerEnvironment(environment),
      (message) => this.#receive(slot, worker, message),
      (error) => logger.warn({ err: error, worker: slot.id }, 'cannot send a message to a worker'),
    );
    slot.worker = worker;
    void worker.exited.then((cause) => this.#handleExit(slot, worker, cause));
    worker.send({ kind: 'start', workerId: slot.id, config: this.#config });
  }

  #stopRestarts(): void {
    this.#isStopping = true;
    for (const { restart } of this.#slots) restart?.cancel();
  }

  #receive(slot: Slot, worker: WorkerProcess, message: Report): void {
    switch (message.kind) {
      case 'listening':
        worker.addresses = message.addresses;
        if (this.#hasStarted || this.#slots.some((each) => each.worker?.addresses === undefined)) return;
        this.#hasStarted = true;
        this.#started.resolve(message.addresses);
        return;
      case 'failed':
        worker.failure = message.reason;
        return;
      case 'status':
        worker.dataPlane = message.status;
        slot.wasReady ||= worker.isReady;
        return;
      case 'metrics':
        this.#options.sums.update(worker, message.snapshot);
        return;
      case 'failures':
        for (const other of this.#workers()) if (other !== worker) other.post('learnFailures', message.failures);
    }
  }

  /** `cause`: the signal or the exit status. */
  #handleExit(slot: Slot, worker: WorkerProcess, cause: string | number): void {
    const { logger, metrics, sums } = this.#options;
    slot.worker = undefined;
    sums.workerExited(worker);
    if (this.#isStopping) return;
    const { failure, pid } = worker;
    if (!this.#hasStarted) {
      this.#started.reject(new Error(failure ?? `a worker exited during its start (${cause}); see its output`));
      return;
    }
    slot.restarts++;
    metrics.workerRestart();
    slot.delayMs = restartDelayMs(slot.delayMs, systemClock.monotonicMs() - worker.startedMonotonicMs);
    const facts = { worker: slot.id, pid, cause, ...(failure && { failure }) };
    logger.error({ ...facts, restart_in_ms: slot.delayMs }, 'a worker exited unexpectedly: restarting it');
    slot.restart = systemScheduler.after(slot.delayMs, () => this.#fork(slot));
  }
}

/**
 * Returns the delay before a worker that exited is restarted. `lastDelayMs`: the delay before its own start; undefined for
 * the first worker of a slot.
 */
export function restartDelayMs(lastDelayMs: number | undefined, ranMs: number): number {
  if (lastDelayMs === undefined || ranMs >= STEADY_MS) return MIN_RESTART_DELAY_MS;
  return Math.min(2 * lastDelayMs, MAX_RESTART_DELAY_MS);
}
