import type { Socket } from 'node:net';

/** How many callers of {@link pauseReading} have not called {@link resumeReading} yet. */
const PAUSES = Symbol('pauses');
type PausedSocket = Socket & { [PAUSES]?: number };

/**
 * Stops reading from a client's socket, until {@link resumeReading} was called as often. Disables `resume`, because Node.js
 * resumes a socket at the start and end of each request. Pauses on the next tick, after any `resume` in progress.
 */
export function pauseReading(socket: PausedSocket): void {
  socket[PAUSES] = (socket[PAUSES] ?? 0) + 1;
  socket.resume = () => socket;
  process.nextTick(() => {
    if (socket[PAUSES]) socket.pause();
  });
}

export function resumeReading(socket: PausedSocket): void {
  socket[PAUSES] = (socket[PAUSES] ?? 0) - 1;
  if (socket[PAUSES] <= 0) resumeForGood(socket);
}

/** Resumes reading whoever paused it: nobody reads the input of this connection any more. */
export function resumeForGood(socket: PausedSocket): void {
  socket[PAUSES] = 0;
  Reflect.deleteProperty(socket, 'resume');
  socket.resume();
}
