/**
 * The end of a listener in two steps, so that callers with kept connections lose nothing: first every answer ends its
 * connection (RFC 9112 §9.6) while requests are still taken, later nothing is accepted any more. In one step, a caller
 * that was told `keep-alive` would send its next request into a connection that is being closed.
 */
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

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

/** The newest request's answer on each connection: with pipelining, an earlier one would end it before the last. */
const NEWEST = Symbol('newest answer');

type Connection = Socket & { [NEWEST]?: ServerResponse };

/** To be created before the server takes its first request. */
export function createDrain(server: Server): Drain {
  const connections = new Set<Connection>();
  let begun = false;

  // The answer stays where it is when it has ended: a listener for its end would be one more for each request.
  const onRequest = ({ socket }: { socket: Connection }, res: ServerResponse) => {
    if (begun) res.shouldKeepAlive = false;
    if (socket[NEWEST] === undefined) {
      connections.add(socket);
      socket.once('close', () => connections.delete(socket));
    }
    socket[NEWEST] = res;
  };
  // A request with an expectation comes by an event of its own; after `100-continue` Node.js ends the connection itself.
  for (const event of ['request', 'checkExpectation']) server.prependListener(event, onRequest);

  return {
    begin() {
      begun = true;
      for (const { [NEWEST]: res } of connections) {
        if (res) res.shouldKeepAlive = false;
      }
    },
    finish(deadlineMs) {
      return new Promise((resolve) => {
        // Node.js closes idle connections once at close(); those that become idle later are found by looking again.
        const look = setInterval(() => server.closeIdleConnections(), LOOK_MS);
        const cut = setTimeout(() => server.closeAllConnections(), deadlineMs);
        server.close(() => {
          clearInterval(look);
          clearTimeout(cut);
          resolve();
        });
      });
    },
  };
}
