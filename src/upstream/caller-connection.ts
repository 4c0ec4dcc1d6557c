import type { Socket } from 'node:net';

/** Wants to know when its caller goes away. */
export interface CallerWatcher {
  onCallerGone(): void;
}

/**
 * Tells when callers go away. A response that waits behind another one on the same connection (pipelining) has no
 * socket yet and emits nothing when the connection closes, so the connection itself is watched, with one listener for
 * all its requests. An array and not a Set, for the reason that `Deadlines` has.
 */
export class CallerWatch {
  /** Calls `watcher` when the connection closes, unless {@link unwatch} was called with the same arguments before. */
  watch(socket: WatchedSocket, watcher: CallerWatcher): void {
    let watchers = socket[WATCHERS];
    if (watchers === undefined) {
      const created: CallerWatcher[] = [];
      socket[WATCHERS] = created;
      socket.once('close', () => {
        for (const each of created.splice(0)) each.onCallerGone();
      });
      watchers = created;
    }
    watchers.push(watcher);
  }

  unwatch(socket: WatchedSocket, watcher: CallerWatcher): void {
    const watchers = socket[WATCHERS];
    const at = watchers?.lastIndexOf(watcher) ?? -1;
    if (at >= 0) watchers?.splice(at, 1);
  }
}

/** On the connection itself: a WeakMap costs several times as much to ask, and the garbage collector work besides. */
const WATCHERS = Symbol('watchers');

type WatchedSocket = Socket & { [WATCHERS]?: CallerWatcher[] };

/**
 * Closes a connection so that the other side can't take what it got for all of it: by a reset where TCP allows it. A TLS
 * connection is closed without the sign of an orderly end that TLS has.
 */
export function resetSocket(socket: Socket): void {
  const plainTcp = !('encrypted' in socket) && socket.remoteFamily !== undefined;
  if (plainTcp) socket.resetAndDestroy();
  else socket.destroy();
}
