import type { Socket } from 'node:net';
import { buildConnector, errors } from 'undici';
import { systemScheduler } from '../clock.ts';

/**
 * undici's connector with a timeout that keeps its time, the lookup of the host's name included: undici's own timer
 * ticks twice a second. HTTP/1.1 only. TLS always expects the name in the upstream's URL, never one that a request's
 * Host field brings in.
 */
export function createConnector(connectTimeoutMs: number): buildConnector.connector {
  // It returns the socket (undici/lib/core/connect.js), which its type leaves out.
  const connect = buildConnector({ timeout: 0, allowH2: false }) as (
    ...parameters: Parameters<buildConnector.connector>
  ) => Socket;
  return ({ servername: _, ...options }, callback) => {
    const socket = connect(options, (...result) => {
      deadline.cancel();
      callback(...result);
    });
    const deadline = systemScheduler.deadline(connectTimeoutMs, () =>
      socket.destroy(new errors.ConnectTimeoutError(`no connection within ${connectTimeoutMs} ms`)),
    );
  };
}
