/**
 * The end of a listener in two steps, so that callers with kept connections lose nothing: first every answer ends its
 * connection (RFC 9112 §9.6) while requests are still taken, later nothing is accepted any more. In one step, a caller
 * that was told `keep-alive` would send its next request into a connection that is being closed.
 */
import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import { Server as NetServer } from 'node:net';
import type { Connections } from './connections.ts';

const LOOK_MS = 50;

export interface Drain {
  /** From now on answers end their connections, those to requests under way included. */
  begin(): void;
  /**
   * Stops accepting, closes idle connections at once, lets what is under way finish, and cuts what is left after
   * `deadlineMs`. Resolves when no connection is left.
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
        // Not close() of Node.js's HTTP server: it treats a connection as idle once its response was passed to end(), and
        // destroys it with the bytes that the client has not received yet.
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
