/**
 * Shuts a listener down in two steps, so that clients with keep-alive connections lose no request. First, responses
 * close their connections (RFC 9112 §9.6) while requests are still accepted. Later, the listener stops accepting. In
 * one step, a client that was promised `keep-alive` would send its next request on a connection that is being closed.
 */
import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import { Server as NetServer } from 'node:net';
import type { Connections } from '../listener/connections.ts';

const LOOK_MS = 50;

export interface Drain {
  /** Makes responses close their connections from now on, as {@link Connections.endAll} does. */
  begin(): void;
  /**
   * Stops accepting connections and closes idle ones at once. Lets requests in progress finish, and destroys the
   * remaining connections after `deadlineMs`. Resolves when no connection is left.
   */
  finish(deadlineMs: number): Promise<void>;
}

export function createDrain(
  server: Server | TlsServer,
  connections: Pick<Connections, 'endAll' | 'closeIdle' | 'destroyAll'>,
): Drain {
  return {
    begin: () => connections.endAll(),
    finish(deadlineMs) {
      return new Promise((resolve) => {
        const look = setInterval(() => connections.closeIdle(), LOOK_MS);
        const cut = setTimeout(() => connections.destroyAll(), deadlineMs);
        // Not close() of Node.js's HTTP server: it treats a connection as idle once its response was passed to end(),
        // and destroys it with the bytes that the client has not received yet.
        NetServer.prototype.close.call(server, () => {
          clearInterval(look);
          clearTimeout(cut);
          resolve();
        });
        connections.closeIdle();
      });
    },
  };
}
