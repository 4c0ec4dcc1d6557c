import type { Scheduler } from '../../base/clock.ts';
import type { Connect } from '../http1/connect.ts';
import { UpstreamConnection } from '../http1/upstream-connection.ts';

const LONGEST_TIMEOUT_MS = 2_000;

/** Returns how long the response to a health check may take. */
export function healthCheckTimeoutMs(intervalMs: number): number {
  return Math.min(intervalMs, LONGEST_TIMEOUT_MS);
}

export interface HealthCheckRequest {
  /** Complete path in origin form: the upstream's base path is not put in front of it. */
  readonly path: string;
  readonly connect: Connect;
  readonly authority: string;
  readonly maxHeaderBytes: number;
  /** Timeout for connection and response together. */
  readonly timeoutMs: number;
  readonly scheduler: Pick<Scheduler, 'deadline'>;
}

/**
 * Sends one GET on a new connection and calls `done` once. `fault` is undefined if a 2xx response arrives in time.
 * Returns a function that cancels the check; `done` is not called after that.
 */
export function sendHealthCheck(request: HealthCheckRequest, done: (fault: string | undefined) => void): () => void {
  const { path, connect, authority, maxHeaderBytes, timeoutMs, scheduler } = request;
  const fields = `Host: ${authority}\r\nUser-Agent: tollgate-health-check\r\nConnection: close\r\n`;
  const head = `GET ${path} HTTP/1.1\r\n${fields}\r\n`;
  let isOver = false;
  let isSent = false;
  const cancel = (): void => {
    isOver = true;
    deadline.cancel();
    connection.destroy();
  };
  const end = (fault: string | undefined): void => {
    if (isOver) return;
    cancel();
    done(fault);
  };
  const deadline = scheduler.deadline(timeoutMs, () => end(`no answer within ${timeoutMs} ms`));
  const socket = connect({
    onConnected() {
      connection.opened();
      isSent = true;
      connection.send(head, false, exchange);
    },
    onBytes: (bytes, length) => connection.receive(bytes, length),
  });
  const exchange = {
    onLeaving: () => true,
    onHead: (status: number) => end(status >= 200 && status <= 299 ? undefined : `status ${status}`),
    onContent() {},
    onPause() {},
    onError: (error: unknown) => end(connectionFault(error)),
  };
  let reason = 'no connection';
  socket.once('error', (error) => {
    reason = connectionFault(error);
  });
  const connection = new UpstreamConnection(socket, maxHeaderBytes, {
    onFree() {},
    onGone() {
      if (!isSent) end(reason); // once sent, `exchange.onError` is called with the precise error
    },
  });
  return cancel;
}

/** Returns the message of an error, or all messages of an AggregateError (every address of a name failed). */
export function connectionFault(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(connectionFault).join('; ');
  return error instanceof Error ? error.message : String(error);
}
