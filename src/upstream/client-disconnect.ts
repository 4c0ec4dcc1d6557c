import type { Socket } from 'node:net';

/** Is notified when its client disconnects. */
export interface DisconnectListener {
  onClientGone(): void;
}

/** A property of the socket: a WeakMap takes several times as long to look up and burdens the garbage collector. */
const LISTENERS = Symbol('listeners');

type WatchedSocket = Socket & { [LISTENERS]?: DisconnectListener[] };

/**
 * Calls `listener` when the connection closes, unless {@link unwatchDisconnect} was called before. Not by an event of the
 * response: one that waits behind another (pipelining) has no socket yet. All requests of a connection share one handler.
 * The listeners are in an array, not a Set, for the reason given at `Deadlines`.
 */
export function watchDisconnect(socket: WatchedSocket, listener: DisconnectListener): void {
  const listeners = socket[LISTENERS];
  if (listeners !== undefined) {
    listeners.push(listener);
    return;
  }
  const created = [listener];
  socket[LISTENERS] = created;
  socket.once('close', () => {
    for (const each of created.splice(0)) each.onClientGone();
  });
}

export function unwatchDisconnect(socket: WatchedSocket, listener: DisconnectListener): void {
  const listeners = socket[LISTENERS];
  const at = listeners?.lastIndexOf(listener) ?? -1;
  if (at >= 0) listeners?.splice(at, 1);
}
