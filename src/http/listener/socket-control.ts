/** Control of client sockets that Node.js's HTTP server has no public functions for. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { JoinedBytes } from '../../base/joined-bytes.ts';
import { resumeForGood } from '../../base/pause-reading.ts';

/**
 * How long a client has to read the last response of its connection. An immediate close with unread input would reset
 * the connection, and the response could be lost (RFC 9112 §9.6).
 */
const LINGER_MS = 2000;

/** Set on a socket that gets only one more response after those in progress. */
const HAS_LAST = Symbol('has last response');

type EndingSocket = Socket & {
  [HAS_LAST]?: boolean;
  /** Private field of Node.js with the response in progress. Its own default handlers read it, too. */
  _httpMessage?: ServerResponse | null;
};

/**
 * Closes a connection whose further input cannot be parsed as requests. `response` is written after the responses in
 * progress: written earlier, it would corrupt them, and pipelined requests are owed their responses. Further calls for
 * the same connection do nothing, because more unparseable input may arrive.
 * @param response - returns the last response; called when it can be written
 */
export function endWith(socket: EndingSocket, response: () => string): void {
  if (socket[HAS_LAST]) return;
  socket[HAS_LAST] = true;
  // After CONNECT, Node.js removes its listeners from the socket. An unhandled `error` event would end the process.
  socket.on('error', () => {});
  discardInput(socket);
  afterResponses(socket, () => {
    if (socket.writable) socket.write(response(), 'utf8');
    endAndLinger(socket);
  });
}

/**
 * Half-closes a connection after its pending writes, and discards what the client still sends. Closes the connection when
 * the client does, or after {@link LINGER_MS}.
 */
export function endAndLinger(socket: Socket): void {
  discardInput(socket);
  socket.end();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}

/** Calls `then` after the responses in progress; never if the connection closes first. */
function afterResponses(socket: EndingSocket, then: () => void): void {
  if (socket.destroyed) return;
  const inProgress = socket._httpMessage;
  // When `close` fires, the connection's next response is already in `_httpMessage`.
  if (inProgress) inProgress.once('close', () => afterResponses(socket, then));
  else then();
}

/** Returns whether Node.js closes the connection after this response; `_last` says so once the headers are built. */
export function endsConnection(res: ServerResponse): boolean {
  return !res.shouldKeepAlive || (res as ServerResponse & { readonly _last?: boolean })._last === true;
}

/** Returns the TCP socket below a TLS socket, which only a private field of Node.js has; else the socket itself. */
export function belowTls(socket: Socket): Socket {
  return (socket as Socket & { readonly _parent?: Socket })._parent ?? socket;
}

/**
 * Joins what is already read of the body of a request that waits: Node.js keeps each chunk in a buffer of its own, which
 * takes over 100 bytes. Call it when the request is emitted, and pause reading.
 */
export function joinUnreadBody(req: IncomingMessage): void {
  const joined = new JoinedBytes();
  let isComplete = false;
  // Node.js's parser calls it for each chunk, and at the end of the body with null.
  req.push = (piece: Buffer | null) => {
    if (piece === null) isComplete = true;
    else joined.add(piece);
    return true;
  };
  setImmediate(() => {
    Reflect.deleteProperty(req, 'push');
    for (const part of joined.take()) req.push(part);
    if (isComplete) req.push(null);
  });
}

/**
 * Reads and discards further input of a connection whose last request was received. Bypasses Node.js's parser, which
 * keeps an object per request. The connection must then be closed by {@link endAndLinger}.
 */
export function discardInput(socket: Socket): void {
  // Deferred, because the parser is running: it emits all requests of one packet in one call.
  process.nextTick(() => {
    for (const listener of socket.listeners('data')) socket.off('data', listener as () => void);
    // Adding a listener makes Node.js detach its parser from the connection.
    socket.on('data', () => {});
    resumeForGood(socket);
  });
}
