import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Tells when callers go away. A response that waits behind another one on the same connection (pipelining) has no
 * socket yet and emits nothing when the connection closes, so the connection itself is watched, with one listener for
 * all its requests.
 */
export class CallerWatch {
  readonly #listeners = new WeakMap<Socket, Set<() => void>>();

  /** Calls `onGone` when the connection closes, unless {@link unwatch} was called with the same arguments before. */
  watch(socket: Socket, onGone: () => void): void {
    let listeners = this.#listeners.get(socket);
    if (listeners === undefined) {
      const created = new Set<() => void>();
      this.#listeners.set(socket, created);
      socket.once('close', () => {
        for (const listener of created) listener();
      });
      listeners = created;
    }
    listeners.add(onGone);
  }

  unwatch(socket: Socket, onGone: () => void): void {
    this.#listeners.get(socket)?.delete(onGone);
  }
}

/**
 * Ends the connection of an answer that was begun and cannot be finished, so that the caller cannot take what it got
 * for all of it (RFC 9112 §8): by a reset where TCP allows, since an orderly end would complete an answer whose length
 * is given by the connection's end. An answer that waits behind another one (pipelining) is cut when its turn comes.
 */
export function cutConnection(res: ServerResponse): void {
  if (res.socket === null) res.once('socket', cutSocket);
  else cutSocket(res.socket);
}

function cutSocket(socket: Socket): void {
  const plainTcp = !('encrypted' in socket) && socket.remoteFamily !== undefined;
  if (plainTcp) socket.resetAndDestroy();
  else socket.destroy();
}
