import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * How long the caller has to take an answer that ends its connection. To close at once would reset the connection while
 * bytes of the caller's are unread, and the answer could be lost with it (RFC 9112 §9.6).
 */
const LINGER_MS = 1000;

/** On a connection that gets no answer more than the ones under way and the last. */
const HAS_LAST = Symbol('has last answer');

type EndingSocket = Socket & {
  [HAS_LAST]?: boolean;
  /** Node.js keeps the answer under way in this private field; its own default handlers read it as well. */
  _httpMessage?: ServerResponse | null;
};

/**
 * Ends a connection whose further bytes nobody understands: `answer` is written after those that are under way, for it
 * would be taken for a part of them, and the caller of a pipelined request has a right to its answer. Called again for the
 * same connection, it does nothing: bytes may go on coming.
 * @param answer - called when its turn has come; undefined ends the connection without one
 */
export function endWith(socket: EndingSocket, answer: (() => string) | undefined): void {
  if (socket[HAS_LAST]) return;
  socket[HAS_LAST] = true;
  // Node.js takes its listeners from a connection that asked for a tunnel; an error without one would end the process.
  socket.on('error', () => {});
  socket.resume();
  afterAnswers(socket, () => {
    if (answer !== undefined && socket.writable) socket.write(answer(), 'utf8');
    endAndLinger(socket);
  });
}

/** Half-closes a connection behind the bytes written so far. Closes it once the client has, or after {@link LINGER_MS}. */
export function endAndLinger(socket: Socket): void {
  socket.end();
  const cut = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(cut));
}

/** Not at all if the connection is closed before. */
function afterAnswers(socket: EndingSocket, then: () => void): void {
  if (socket.destroyed) return;
  const underWay = socket._httpMessage;
  // Its `close` comes when the next one of the connection has taken its place.
  if (underWay) underWay.once('close', () => afterAnswers(socket, then));
  else then();
}
