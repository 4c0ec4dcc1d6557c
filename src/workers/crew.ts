/**
 * The workers as a whole. Each has a place; when its process ends by itself, another one takes the place after a while that
 * grows if it happens again and again, and the others go on.
 */
import cluster, { type Worker } from 'node:cluster';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { WorkerStatus } from '../admin/status.ts';
import type { Clock, Scheduled, Scheduler } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { Environment } from '../config/substitute.ts';
import type { ServingFacts } from '../data-plane.ts';
import type { Logger } from '../observability/logger.ts';
import type { Metrics, MetricsSnapshot } from '../observability/metrics.ts';
import { restartDelayMs } from './backoff.ts';
import { closeWhatDiesWith } from './handed-over.ts';
import { workerConfig, workerEnvironment } from './least-privilege.ts';
import { type Answers, type Question, readToPrimary, type ToPrimary, type ToWorker } from './messages.ts';

const ENTRY = fileURLToPath(new URL(`./worker-main${extname(import.meta.filename)}`, import.meta.url));
/** A worker that has not done so by then is stuck. */
const FOLLOWS_WITHIN_MS = 5000;
/** What a worker needs beyond the drain to give back and write down what it holds. */
const ENDS_WITHIN_MS = 5000;

/** One process in a place. */
interface Shift {
  readonly worker: Worker;
  readonly startedAtMs: number;
  readonly startedMonotonicMs: number;
  /** Undefined until it listens. */
  url: string | undefined;
  facts: ServingFacts | undefined;
  /** Why it could not start. */
  failure: string | undefined;
  /** Knows the configuration, and follows the next ones. */
  isStarted: boolean;
  /**
   * Resolves when the process has exited; never rejects. `events.once(worker, 'exit')` would: a message to a worker that
   * has just died makes the worker emit 'error' (EPIPE) before 'exit'.
   */
  readonly exited: Promise<void>;
  readonly waiting: Map<number, (answer: { readonly value: unknown } | undefined) => void>;
}

interface Place {
  readonly id: number;
  shift: Shift | undefined;
  /** Whether some process of it was ready once. */
  wasReady: boolean;
  restarts: number;
  delayMs: number | undefined;
  next: Scheduled | undefined;
}

export interface CrewOptions {
  readonly size: number;
  readonly config: Config;
  /** Of the primary's process. */
  readonly environment: Environment;
  readonly metrics: Pick<Metrics, 'workerRestart'>;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** `shift`: stands for the process. */
  onMetrics(shift: object, snapshot: MetricsSnapshot): void;
  /** It counts no more. */
  onEnd(shift: object): void;
}

export class Crew {
  readonly #options: CrewOptions;
  readonly #places: readonly Place[];
  readonly #started = Promise.withResolvers<string>();
  #config: Config;
  #questions = 0;
  #hasStarted = false;
  #isEnding = false;

  constructor(options: CrewOptions) {
    this.#options = options;
    this.#config = workerConfig(options.config);
    this.#places = Array.from({ length: options.size }, (_, index) => ({
      id: index + 1,
      shift: undefined,
      wasReady: false,
      restarts: 0,
      delayMs: undefined,
      next: undefined,
    }));
  }

  /**
   * Resolves to the URL of the public listener when all of them take requests.
   * @throws Error when one cannot; none is left then.
   */
  async start(): Promise<string> {
    // Messages carry Maps.
    cluster.setupPrimary({ exec: ENTRY, args: [], serialization: 'advanced' });
    for (const place of this.#places) this.#fill(place);
    try {
      return await this.#started.promise;
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  /** Each place had a worker that was ready. */
  get wereAllReady(): boolean {
    return this.#places.every(({ wasReady }) => wasReady);
  }

  /** Of those that run and have said how it is with them. */
  facts(): readonly ServingFacts[] {
    return this.#places.flatMap(({ shift }) => shift?.facts ?? []);
  }

  status(): readonly WorkerStatus[] {
    return this.#places.map(({ id, shift, restarts }) => ({
      id,
      pid: shift?.worker.process.pid,
      startedAtMs: shift?.startedAtMs,
      ready: shift?.facts !== undefined && isReady(shift.facts) && shift.facts.store.up,
      configHash: shift?.facts?.configHash,
      restarts,
    }));
  }

  /** The answers that come in time. */
  async askAll<About extends Question['about']>(
    question: Question & { readonly about: About },
    withinMs: number,
  ): Promise<readonly Answers[About][]> {
    const answers = await Promise.all(this.#shifts().map((shift) => this.#ask(shift, question, withinMs)));
    return answers.flatMap((answer) => (answer === undefined ? [] : [answer.value as Answers[About]]));
  }

  /** Resolves when none goes by the old configuration: one that does not follow is ended, and its successor does. */
  async follow(config: Config): Promise<void> {
    this.#config = workerConfig(config);
    const question: Question = { about: 'follow', config: this.#config };
    await Promise.all(
      this.#shifts().map(async (shift) => {
        if ((await this.#ask(shift, question, FOLLOWS_WITHIN_MS)) !== undefined || shift.worker.isDead()) return;
        const { pid } = shift.worker.process;
        this.#options.logger.error({ pid }, 'a worker does not take over the configuration, and is ended');
        shift.worker.process.kill('SIGKILL');
        await shift.exited;
      }),
    );
  }

  beginDrain(): void {
    this.#fillNoMore();
    for (const { shift } of this.#places) if (shift) tell(shift, { kind: 'begin_drain' });
  }

  /** Resolves when all have ended. */
  async finish(drainMs: number): Promise<void> {
    for (const { shift } of this.#places) if (shift) tell(shift, { kind: 'finish', drainMs });
    const late = this.#options.scheduler.after(drainMs + ENDS_WITHIN_MS, () => {
      this.#options.logger.error('workers do not end, and are killed');
      void this.kill();
    });
    await this.#ended();
    late.cancel();
  }

  /** At once. */
  async kill(): Promise<void> {
    this.#fillNoMore();
    for (const { shift } of this.#places) shift?.worker.process.kill('SIGKILL');
    await this.#ended();
  }

  async #ended(): Promise<void> {
    await Promise.all(this.#places.map(({ shift }) => shift?.exited));
  }

  #shifts(): readonly Shift[] {
    return this.#places.flatMap(({ shift }) => (shift?.isStarted ? [shift] : []));
  }

  #fill(place: Place): void {
    const { clock, environment } = this.#options;
    const worker = cluster.fork(workerEnvironment(environment));
    closeWhatDiesWith(worker);
    const shift: Shift = {
      worker,
      startedAtMs: clock.nowMs(),
      startedMonotonicMs: clock.monotonicMs(),
      url: undefined,
      facts: undefined,
      failure: undefined,
      isStarted: false,
      exited: new Promise((resolve) => worker.once('exit', () => resolve())),
      waiting: new Map(),
    };
    place.shift = shift;
    worker.on('message', (message: unknown) => this.#hear(place, shift, readToPrimary(message)));
    // A message could not be sent. If the worker has died, its 'exit' event follows.
    worker.on('error', (error) => this.#options.logger.warn({ err: error, worker: place.id }, 'a worker is not heard'));
    worker.once('exit', (code, signal) => this.#leave(place, shift, signal ?? code));
  }

  #fillNoMore(): void {
    this.#isEnding = true;
    for (const { next } of this.#places) next?.cancel();
  }

  #hear(place: Place, shift: Shift, message: ToPrimary): void {
    switch (message.kind) {
      case 'hello':
        // Too late to serve anybody.
        if (this.#isEnding) return void shift.worker.process.kill('SIGKILL');
        shift.isStarted = true;
        tell(shift, { kind: 'start', place: place.id, config: this.#config });
        return;
      case 'listening':
        shift.url = message.url;
        if (this.#hasStarted || this.#places.some((each) => each.shift?.url === undefined)) return;
        this.#hasStarted = true;
        this.#started.resolve(message.url);
        return;
      case 'failed':
        shift.failure = message.reason;
        return;
      case 'facts':
        shift.facts = message.facts;
        place.wasReady ||= isReady(message.facts);
        return;
      case 'metrics':
        this.#options.onMetrics(shift, message.snapshot);
        return;
      case 'failures':
        for (const other of this.#shifts()) if (other !== shift) tell(other, message);
        return;
      case 'answer':
        shift.waiting.get(message.id)?.({ value: message.value });
        return;
      case 'no_answer':
        shift.waiting.get(message.id)?.(undefined);
    }
  }

  #leave(place: Place, shift: Shift, cause: string | number): void {
    const { logger, metrics, clock, scheduler } = this.#options;
    place.shift = undefined;
    for (const settle of shift.waiting.values()) settle(undefined);
    this.#options.onEnd(shift);
    if (this.#isEnding) return;
    const { failure } = shift;
    if (!this.#hasStarted) {
      this.#started.reject(new Error(failure ?? `a worker ended as it started (${cause}); its output says why`));
      return;
    }
    place.restarts++;
    metrics.workerRestart();
    place.delayMs = restartDelayMs(place.delayMs, clock.monotonicMs() - shift.startedMonotonicMs);
    const facts = { worker: place.id, pid: shift.worker.process.pid, cause, ...(failure && { failure }) };
    logger.error({ ...facts, replaced_in_ms: place.delayMs }, 'a worker ended by itself; the others go on');
    place.next = scheduler.after(place.delayMs, () => this.#fill(place));
  }

  #ask(shift: Shift, question: Question, withinMs: number): Promise<{ readonly value: unknown } | undefined> {
    const id = ++this.#questions;
    return new Promise((resolve) => {
      const settle = (answer: { readonly value: unknown } | undefined) => {
        late.cancel();
        shift.waiting.delete(id);
        resolve(answer);
      };
      const late = this.#options.scheduler.deadline(withinMs, () => settle(undefined));
      shift.waiting.set(id, settle);
      tell(shift, { kind: 'ask', id, question });
    });
  }
}

/** Serves callers, and the other instances know of it. */
function isReady({ store, announced }: ServingFacts): boolean {
  return store.reached && announced;
}

function tell({ worker }: Shift, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message);
}
