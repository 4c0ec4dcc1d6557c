import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * How long a client has to read the last response of its connection. An immediate close with unread input would reset
 * the connection, and the response could be lost (RFC 9112 §9.6).
 */
const LINGER_MS = 1000;

/** Set on a socket that gets only one more response after those in progress. */
const HAS_LAST = Symbol('has last answer');

type EndingSocket = Socket & {
  [HAS_LAST]?: boolean;
  /** Private field of Node.js with the response in progress. Its own default handlers read it, too. */
  _httpMessage?: ServerResponse | null;
};

/**
 * Closes a connection whose further input cannot be parsed as requests. `answer` is written after the responses in
 * progress: written earlier, it would corrupt them, and pipelined requests are owed their responses. Further calls for
 * the same connection do nothing, because more unparseable input may arrive.
 * @param answer - returns the last response; called when it can be written. Undefined: close without one.
 */
export function endWith(socket: EndingSocket, answer: (() => string) | undefined): void {
  if (socket[HAS_LAST]) return;
  socket[HAS_LAST] = true;
  // After CONNECT, Node.js removes its listeners from the socket. An unhandled `error` event would end the process.
  socket.on('error', () => {});
  socket.resume();
  afterAnswers(socket, () => {
    if (answer !== undefined && socket.writable) socket.write(answer(), 'utf8');
    endAndLinger(socket);
  });
}

/** Half-closes a connection after its pending writes. Closes it when the client does, or after {@link LINGER_MS}. */
export function endAndLinger(socket: Socket): void {
  socket.end();
  const cut = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(cut));
}

/** Calls `then` after the responses in progress; never if the connection closes first. */
function afterAnswers(socket: EndingSocket, then: () => void): void {
  if (socket.destroyed) return;
  const underWay = socket._httpMessage;
  // When `close` fires, the connection's next response is already in `_httpMessage`.
  if (underWay) underWay.once('close', () => afterAnswers(socket, then));
  else then();
}
