/**
 * Works around a leak in node:cluster. When a worker dies before it acknowledges a connection that the primary sent to it,
 * the primary keeps that connection open, and the client waits until it times out. This module tracks connections that
 * are not acknowledged yet, and closes them when the worker exits. Sending them to another worker is not safe: the dead
 * worker may have read part of the request.
 *
 * The format of these messages is private to Node.js (lib/internal/cluster/round_robin_handle.js). If it changes, nothing
 * is tracked, connections leak again, and a test in test/process/workers fails. Why the primary distributes connections at
 * all: docs/dev/decisions/0010-the-primary-distributes-connections.md.
 */
import type { Worker } from 'node:cluster';

interface Handover {
  readonly act?: unknown;
  readonly seq?: unknown;
}

/** Closes unacknowledged connections when `worker` exits. Call it right after the fork. */
export function closeHandoversOnExit({ process: child }: Worker): void {
  const unacknowledged = new Map<unknown, { close?(): void }>();
  // `send` is overloaded; the wrapper passes every form through unchanged.
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = (...args: unknown[]) => {
    const [message, handle] = args as [Handover | null, object | undefined];
    if (message?.act === 'newconn' && handle) unacknowledged.set(message.seq, handle);
    return send(...args);
  };
  child.on('internalMessage', (message: { readonly ack?: unknown }) => unacknowledged.delete(message.ack));
  // Not 'disconnect': it may never be emitted, because it waits for the worker to accept connections in transit.
  child.once('exit', () => {
    for (const handle of unacknowledged.values()) handle.close?.();
    unacknowledged.clear();
  });
}
