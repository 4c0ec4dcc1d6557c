import type { Scheduler } from '../../base/clock.ts';
import { Periodic } from '../../base/periodic.ts';
import type { Connect } from '../http1/connect.ts';
import { headerLine, requestHead, UpstreamConnection } from '../http1/upstream-connection.ts';

const MAX_TIMEOUT_MS = 2_000;
/** Consecutive checks that take the upstream out of service, and that put it back. */
const FAILURES = 3;
const SUCCESSES = 2;

/** The setting `upstream.health_check`. */
export interface HealthCheckConfig {
  /** Complete path in origin form: the upstream's base path is not put in front of it. */
  readonly path: string;
  readonly intervalMs: number;
}

interface HealthCheckOptions extends HealthCheckConfig {
  readonly connect: Connect;
  readonly authority: string;
  readonly maxHeaderBytes: number;
  readonly scheduler: Scheduler;
}

interface HealthChecksOptions extends HealthCheckOptions {
  /** Called when {@link HealthChecks.isFailing} has changed. */
  changed(): void;
}

/**
 * Active health checks of one upstream: a GET at intervals, each on a new connection, so that it also tests whether
 * connections are accepted. Any 2xx in time is a success. Until checks fail, the upstream counts as healthy.
 */
export class HealthChecks {
  readonly #options: HealthChecksOptions;
  isFailing = false;
  /** What was wrong with the last failed check. */
  fault: string | undefined;
  /** Consecutive checks whose result contradicts `isFailing`. */
  #contradicting = 0;
  readonly #checks: Periodic;
  #check: HealthCheck | undefined;

  constructor(options: HealthChecksOptions) {
    this.#options = options;
    this.#checks = new Periodic(options.scheduler, async () => {
      this.#check = startHealthCheck(options);
      this.#record(await this.#check.fault);
      return options.intervalMs;
    });
    void this.#checks.run();
  }

  close(): void {
    this.#check?.cancel();
    void this.#checks.close();
  }

  #record(fault: string | undefined): void {
    if (fault !== undefined) this.fault = fault;
    if (this.isFailing === (fault !== undefined)) {
      this.#contradicting = 0;
      return;
    }
    if (++this.#contradicting < (this.isFailing ? SUCCESSES : FAILURES)) return;
    this.#contradicting = 0;
    this.isFailing = !this.isFailing;
    this.#options.changed();
  }
}

interface HealthCheck {
  /** Resolves to what is wrong, undefined if a 2xx response arrived in time. Never rejects. */
  readonly fault: Promise<string | undefined>;
  /** Closes the connection; `fault` then never resolves. */
  cancel(): void;
}

/** Sends one GET on a new connection. Its response must arrive within the interval of the checks, or a shorter time. */
export function startHealthCheck(options: HealthCheckOptions): HealthCheck {
  const { path, intervalMs, connect, authority, maxHeaderBytes, scheduler } = options;
  const lines = headerLine('User-Agent', 'tollgate-health-check') + headerLine('Connection', 'close');
  const head = requestHead('GET', path, authority, lines);
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const cancel = (): void => {
    deadline.cancel();
    connection.destroy();
  };
  const end = (fault: string | undefined): void => {
    cancel();
    resolve(fault);
  };
  const timeoutMs = Math.min(intervalMs, MAX_TIMEOUT_MS);
  const deadline = scheduler.deadline(timeoutMs, () => end(`no response within ${timeoutMs} ms`));
  const connection = new UpstreamConnection(connect, maxHeaderBytes, {
    onOpen() {
      connection.send(head, false, {
        onSend: () => true,
        onHead: (status) => end(status >= 200 && status <= 299 ? undefined : `status ${status}`),
        onContent() {},
        onPause() {},
        onError: (error) => end(connectionFault(error)),
      });
    },
    onFree() {},
    onGone(error) {
      if (error !== undefined) end(connectionFault(error));
    },
  });
  return { fault: promise, cancel };
}

/** Returns the message of an error, or all messages of an AggregateError (every address of a name failed). */
export function connectionFault(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(connectionFault).join('; ');
  return error instanceof Error ? error.message : String(error);
}
