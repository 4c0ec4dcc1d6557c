/**
 * The worker pool: a fixed number of slots with one worker process each. A worker that exits unexpectedly is restarted
 * after a delay, which grows while that repeats. The other workers are not affected.
 */
import cluster, { type Worker as ClusterWorker } from 'node:cluster';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock, Scheduled, Scheduler } from '../../base/clock.ts';
import type { Config } from '../../config/config.ts';
import type { Environment } from '../../config/environment.ts';
import type { Logger } from '../../observability/logger.ts';
import type { Metrics, MetricsSnapshot } from '../../observability/metrics.ts';
import type { DataPlaneView } from '../control-plane.ts';
import type { DataPlaneStatus } from '../data-plane.ts';
import { closeHandoversOnExit } from './close-handovers.ts';
import { workerConfig, workerEnvironment } from './least-privilege.ts';
import type { ToPrimary, ToWorker, WorkerReplies, WorkerRequest } from './messages.ts';

const ENTRY = fileURLToPath(new URL(`./worker${extname(import.meta.filename)}`, import.meta.url));
/** A worker that takes longer to apply a configuration is killed. */
const APPLY_CONFIG_TIMEOUT_MS = 5000;
/** Time after the drain in which a worker returns its leases, writes key uses and exits. Later it is killed. */
const EXIT_TIMEOUT_MS = 5000;

const MIN_RESTART_DELAY_MS = 1000;
const MAX_RESTART_DELAY_MS = 30_000;
/** The exit of a worker that ran this long is no failure to start: the next restart delay is the minimum. */
const STEADY_MS = 60_000;

/** One worker process. */
interface Worker {
  readonly forked: ClusterWorker;
  readonly startedAtMs: number;
  readonly startedMonotonicMs: number;
  /** Undefined until the worker listens. */
  url: string | undefined;
  /** As last reported. */
  dataPlane: DataPlaneStatus | undefined;
  /** Why the worker could not start. */
  failure: string | undefined;
  /** The worker was sent its configuration, and accepts requests of the primary. */
  isStarted: boolean;
  /**
   * Resolves when the process has exited; never rejects. `events.once(worker, 'exit')` would reject: a message to a worker
   * that has just died makes it emit 'error' (EPIPE) before 'exit'.
   */
  readonly exited: Promise<void>;
  /** Requests without a reply yet, by id. */
  readonly pending: Map<number, (reply: Reply | undefined) => void>;
}

interface Slot {
  readonly id: number;
  /** Undefined while a restart is due. */
  worker: Worker | undefined;
  /** Whether any worker of this slot was ever ready. */
  wasReady: boolean;
  restarts: number;
  /** The delay before the last restart. */
  delayMs: number | undefined;
  restart: Scheduled | undefined;
}

interface Reply {
  readonly value: unknown;
}

interface WorkerPoolOptions {
  readonly size: number;
  readonly config: Config;
  /** The primary's environment variables. */
  readonly environment: Environment;
  readonly metrics: Pick<Metrics, 'workerRestart'>;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** `worker` identifies the process. */
  onMetrics(worker: object, snapshot: MetricsSnapshot): void;
  /** Called after the worker's last metrics. */
  onExit(worker: object): void;
}

export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #slots: readonly Slot[];
  readonly #started = Promise.withResolvers<string>();
  #config: Config;
  #lastRequestId = 0;
  #hasStarted = false;
  #isStopping = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#config = workerConfig(options.config);
    this.#slots = Array.from({ length: options.size }, (_, index) => ({
      id: index + 1,
      worker: undefined,
      wasReady: false,
      restarts: 0,
      delayMs: undefined,
      restart: undefined,
    }));
  }

  /**
   * Resolves to the URL of the public listener when all workers listen.
   * @throws Error when a worker cannot start; the others are killed first.
   */
  async start(): Promise<string> {
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
    return this.#slots.flatMap(({ worker }) => worker?.dataPlane ?? []);
  }

  status(): ReturnType<DataPlaneView['workers']> {
    return this.#slots.map(({ id, worker, restarts }) => ({
      id,
      pid: worker?.forked.process.pid,
      startedAtMs: worker?.startedAtMs,
      ready: worker?.dataPlane !== undefined && isReady(worker.dataPlane) && worker.dataPlane.store.up,
      configHash: worker?.dataPlane?.configHash,
      restarts,
    }));
  }

  /** Sends the request to all workers. Resolves to the replies that arrive within `timeoutMs`. */
  async requestAll<Type extends WorkerRequest['type']>(
    request: WorkerRequest & { readonly type: Type },
    timeoutMs: number,
  ): Promise<readonly WorkerReplies[Type][]> {
    const replies = await Promise.all(
      this.#startedWorkers().map((worker) => this.#request(worker, request, timeoutMs)),
    );
    return replies.flatMap((reply) => (reply === undefined ? [] : [reply.value as WorkerReplies[Type]]));
  }

  /** Resolves when no worker runs the old config; a worker that fails to apply it is killed and replaced. */
  async applyConfig(config: Config): Promise<void> {
    this.#config = workerConfig(config);
    const request: WorkerRequest = { type: 'apply_config', config: this.#config };
    await Promise.all(
      this.#startedWorkers().map(async (worker) => {
        const reply = await this.#request(worker, request, APPLY_CONFIG_TIMEOUT_MS);
        if (reply !== undefined || worker.forked.isDead()) return;
        const { pid } = worker.forked.process;
        this.#options.logger.error({ pid }, 'a worker failed to apply the configuration: killing it');
        worker.forked.process.kill('SIGKILL');
        await worker.exited;
      }),
    );
  }

  beginDrain(): void {
    this.#stopRestarts();
    for (const { worker } of this.#slots) if (worker) send(worker, { kind: 'begin_drain' });
  }

  /** Resolves when all workers have exited. */
  async finishDrain(drainMs: number): Promise<void> {
    for (const { worker } of this.#slots) if (worker) send(worker, { kind: 'finish_drain', drainMs });
    const late = this.#options.scheduler.after(drainMs + EXIT_TIMEOUT_MS, () => {
      this.#options.logger.error('workers did not exit in time after the drain: killing them');
      void this.kill();
    });
    await this.#allExited();
    late.cancel();
  }

  /** Kills all workers without a drain. */
  async kill(): Promise<void> {
    this.#stopRestarts();
    for (const { worker } of this.#slots) worker?.forked.process.kill('SIGKILL');
    await this.#allExited();
  }

  async #allExited(): Promise<void> {
    await Promise.all(this.#slots.map(({ worker }) => worker?.exited));
  }

  #startedWorkers(): readonly Worker[] {
    return this.#slots.flatMap(({ worker }) => (worker?.isStarted ? [worker] : []));
  }

  #fork(slot: Slot): void {
    const { clock, environment } = this.#options;
    const forked = cluster.fork(workerEnvironment(environment));
    closeHandoversOnExit(forked);
    const worker: Worker = {
      forked,
      startedAtMs: clock.nowMs(),
      startedMonotonicMs: clock.monotonicMs(),
      url: undefined,
      dataPlane: undefined,
      failure: undefined,
      isStarted: false,
      exited: new Promise((resolve) => forked.once('exit', () => resolve())),
      pending: new Map(),
    };
    slot.worker = worker;
    forked.on('message', (message: ToPrimary) => this.#receive(slot, worker, message));
    // If the worker has died, its 'exit' event follows.
    forked.on('error', (error) =>
      this.#options.logger.warn({ err: error, worker: slot.id }, 'cannot send a message to a worker'),
    );
    forked.once('exit', (code, signal) => this.#handleExit(slot, worker, signal ?? code));
  }

  #stopRestarts(): void {
    this.#isStopping = true;
    for (const { restart } of this.#slots) restart?.cancel();
  }

  #receive(slot: Slot, worker: Worker, message: ToPrimary): void {
    switch (message.kind) {
      case 'online':
        // Forked before the stop began: no request would reach it.
        if (this.#isStopping) return void worker.forked.process.kill('SIGKILL');
        worker.isStarted = true;
        send(worker, { kind: 'start', workerId: slot.id, config: this.#config });
        return;
      case 'listening':
        worker.url = message.url;
        if (this.#hasStarted || this.#slots.some((each) => each.worker?.url === undefined)) return;
        this.#hasStarted = true;
        this.#started.resolve(message.url);
        return;
      case 'failed':
        worker.failure = message.reason;
        return;
      case 'status':
        worker.dataPlane = message.status;
        slot.wasReady ||= isReady(message.status);
        return;
      case 'metrics':
        this.#options.onMetrics(worker, message.snapshot);
        return;
      case 'failures':
        for (const other of this.#startedWorkers()) if (other !== worker) send(other, message);
        return;
      case 'reply':
        worker.pending.get(message.id)?.({ value: message.value });
        return;
      case 'request_failed':
        worker.pending.get(message.id)?.(undefined);
    }
  }

  /** `cause`: the signal or the exit status. */
  #handleExit(slot: Slot, worker: Worker, cause: string | number): void {
    const { logger, metrics, clock, scheduler } = this.#options;
    slot.worker = undefined;
    for (const settle of worker.pending.values()) settle(undefined);
    this.#options.onExit(worker);
    if (this.#isStopping) return;
    const { failure } = worker;
    if (!this.#hasStarted) {
      this.#started.reject(new Error(failure ?? `a worker exited during its start (${cause}); see its output`));
      return;
    }
    slot.restarts++;
    metrics.workerRestart();
    slot.delayMs = restartDelayMs(slot.delayMs, clock.monotonicMs() - worker.startedMonotonicMs);
    const facts = { worker: slot.id, pid: worker.forked.process.pid, cause, ...(failure && { failure }) };
    logger.error({ ...facts, restart_in_ms: slot.delayMs }, 'a worker exited unexpectedly: restarting it');
    slot.restart = scheduler.after(slot.delayMs, () => this.#fork(slot));
  }

  /** Resolves to undefined when the request fails, the worker exits, or the reply is late. */
  #request(worker: Worker, request: WorkerRequest, timeoutMs: number): Promise<Reply | undefined> {
    const id = ++this.#lastRequestId;
    return new Promise((resolve) => {
      const settle = (reply: Reply | undefined) => {
        timeout.cancel();
        worker.pending.delete(id);
        resolve(reply);
      };
      const timeout = this.#options.scheduler.deadline(timeoutMs, () => settle(undefined));
      worker.pending.set(id, settle);
      send(worker, { kind: 'request', id, request });
    });
  }
}

/** The worker has reached the store, and is announced to the other instances. */
function isReady({ store, announced }: DataPlaneStatus): boolean {
  return store.reached && announced;
}

function send({ forked }: Worker, message: ToWorker): void {
  if (forked.isConnected()) forked.send(message);
}

/**
 * Returns the delay before a worker that exited is restarted. `lastDelayMs`: the delay before its own start; undefined for
 * the first worker of a slot.
 */
export function restartDelayMs(lastDelayMs: number | undefined, ranMs: number): number {
  if (lastDelayMs === undefined || ranMs >= STEADY_MS) return MIN_RESTART_DELAY_MS;
  return Math.min(2 * lastDelayMs, MAX_RESTART_DELAY_MS);
}
