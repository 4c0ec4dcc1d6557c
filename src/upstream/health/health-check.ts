import type { Scheduler } from '../../base/clock.ts';
import type { Connect } from '../http1/connect.ts';
import { headerLine, requestHead, UpstreamConnection } from '../http1/upstream-connection.ts';

const MAX_TIMEOUT_MS = 2_000;

/** The setting `upstream.health_check`. */
export interface HealthCheckConfig {
  /** Complete path in origin form: the upstream's base path is not put in front of it. */
  readonly path: string;
  readonly intervalMs: number;
}

export interface HealthCheckOptions extends HealthCheckConfig {
  readonly connect: Connect;
  readonly authority: string;
  readonly maxHeaderBytes: number;
  readonly scheduler: Scheduler;
}

/**
 * Sends one GET on a new connection and calls `done` once. `fault` is undefined if a 2xx response arrives in time,
 * which is at most the interval of the checks. Returns a function that cancels the check; `done` is not called after
 * that.
 */
export function sendHealthCheck(options: HealthCheckOptions, done: (fault: string | undefined) => void): () => void {
  const { path, intervalMs, connect, authority, maxHeaderBytes, scheduler } = options;
  const lines = headerLine('User-Agent', 'tollgate-health-check') + headerLine('Connection', 'close');
  const head = requestHead('GET', path, authority, lines);
  let isDone = false;
  const cancel = (): void => {
    isDone = true;
    deadline.cancel();
    connection.destroy();
  };
  const end = (fault: string | undefined): void => {
    if (isDone) return;
    cancel();
    done(fault);
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
  return cancel;
}

/** Returns the message of an error, or all messages of an AggregateError (every address of a name failed). */
export function connectionFault(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(connectionFault).join('; ');
  return error instanceof Error ? error.message : String(error);
}
