import cluster from 'node:cluster';
import { systemClock, systemScheduler } from '../../base/clock.ts';
import type { ClientAddresses, DataPlaneStatus } from '../data-plane.ts';
import { closeHandoversOnExit } from './close-handovers.ts';
import type { CallResult, Report, ToPrimary, ToWorker, WorkerMethods } from './messages.ts';

/** A running worker, as the primary sees it: what it last reported, and the calls without a reply. */
export class WorkerProcess {
  readonly startedAtMs = systemClock.nowMs();
  readonly startedMonotonicMs = systemClock.monotonicMs();
  /** Undefined until the worker listens. */
  addresses: ClientAddresses | undefined;
  dataPlane: DataPlaneStatus | undefined;
  /** Why the worker could not start. */
  failure: string | undefined;
  /**
   * Resolves to the signal or the exit status; never rejects. `events.once(worker, 'exit')` would reject: a message to a
   * worker that has just died makes it emit 'error' (EPIPE) before 'exit'.
   */
  readonly exited: Promise<string | number>;
  readonly #forked;
  readonly #calls = new Map<number, (result: CallResult | undefined) => void>();
  #lastCallId = 0;

  /** `env`: argument of `cluster.fork`. `onError`: called if a message cannot be sent. */
  constructor(env: object, onReport: (report: Report) => void, onError: (error: Error) => void) {
    this.#forked = cluster.fork(env);
    closeHandoversOnExit(this.#forked);
    this.#forked.on('message', (message: ToPrimary) => {
      if (message.kind === 'reply') this.#calls.get(message.id)?.(message.result);
      else onReport(message);
    });
    // If the worker has died, its 'exit' event follows.
    this.#forked.on('error', onError);
    this.exited = new Promise((resolve) => {
      this.#forked.once('exit', (code, signal) => {
        for (const settle of this.#calls.values()) settle(undefined);
        resolve(signal ?? code);
      });
    });
  }

  get pid(): number | undefined {
    return this.#forked.process.pid;
  }

  get hasExited(): boolean {
    return this.#forked.isDead();
  }

  /** Whether the worker has reached the store, and is announced to the other instances. */
  get isReady(): boolean {
    return this.dataPlane?.store.reached === true && this.dataPlane.announced;
  }

  send(message: ToWorker): void {
    if (this.#forked.isConnected()) this.#forked.send(message);
  }

  kill(): void {
    this.#forked.process.kill('SIGKILL');
  }

  /** Calls a method without waiting for its reply. Returns the id of the call. */
  post<Method extends keyof WorkerMethods>(method: Method, ...args: Parameters<WorkerMethods[Method]>): number {
    const id = ++this.#lastCallId;
    this.send({ kind: 'call', id, method, args });
    return id;
  }

  /** Resolves to undefined when the call fails, the worker exits, or the reply is late. */
  call<Method extends keyof WorkerMethods>(
    timeoutMs: number,
    method: Method,
    ...args: Parameters<WorkerMethods[Method]>
  ): Promise<{ readonly value: Awaited<ReturnType<WorkerMethods[Method]>> } | undefined> {
    const id = this.post(method, ...args);
    return new Promise((resolve) => {
      const settle = (result: CallResult | undefined) => {
        timeout.cancel();
        this.#calls.delete(id);
        resolve(result as Awaited<ReturnType<typeof this.call<Method>>>);
      };
      const timeout = systemScheduler.deadline(timeoutMs, () => settle(undefined));
      this.#calls.set(id, settle);
    });
  }
}
