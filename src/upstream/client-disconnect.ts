import type { Socket } from 'node:net';

/** Is notified when its client disconnects. */
export interface DisconnectListener {
  onClientGone(): void;
}

/**
 * Notifies listeners when a client disconnects. A response that waits behind another one on the same connection
 * (pipelining) has no socket yet and emits nothing when the connection closes. So the connection itself is watched,
 * with one `close` handler for all its requests. The listeners are in an array, not a Set, for the reason given at
 * `Deadlines`.
 */
export class ClientDisconnects {
  /** Calls `listener` when the connection closes, unless {@link unwatch} was called with the same arguments before. */
  watch(socket: WatchedSocket, listener: DisconnectListener): void {
    let listeners = socket[LISTENERS];
    if (listeners === undefined) {
      const created: DisconnectListener[] = [];
      socket[LISTENERS] = created;
      socket.once('close', () => {
        for (const each of created.splice(0)) each.onClientGone();
      });
      listeners = created;
    }
    listeners.push(listener);
  }

  unwatch(socket: WatchedSocket, listener: DisconnectListener): void {
    const listeners = socket[LISTENERS];
    const at = listeners?.lastIndexOf(listener) ?? -1;
    if (at >= 0) listeners?.splice(at, 1);
  }
}

/** A property of the socket: a WeakMap takes several times as long to look up and burdens the garbage collector. */
const LISTENERS = Symbol('listeners');

type WatchedSocket = Socket & { [LISTENERS]?: DisconnectListener[] };
