import type { Socket } from 'node:net';

/** Is notified when its client disconnects. */
export interface CallerWatcher {
  onCallerGone(): void;
}

/**
 * Notifies watchers when a client disconnects. A response that waits behind another one on the same connection
 * (pipelining) has no socket yet and emits nothing when the connection closes. So the connection itself is watched,
 * with one listener for all its requests. Watchers are in an array, not a Set, for the reason given at `Deadlines`.
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

/** A property of the socket: a WeakMap takes several times as long to look up and burdens the garbage collector. */
const WATCHERS = Symbol('watchers');

type WatchedSocket = Socket & { [WATCHERS]?: CallerWatcher[] };
