import type { Socket } from 'node:net';

/**
 * Closes a connection so that the other side cannot take a truncated message for a complete one. Resets a plain TCP
 * connection; closes a TLS connection without close_notify, the TLS sign of an orderly end.
 */
export function resetSocket(socket: Socket): void {
  const plainTcp = !('encrypted' in socket) && socket.remoteFamily !== undefined;
  if (plainTcp) socket.resetAndDestroy();
  else socket.destroy();
}

/** Returns the bytes of the current write that the kernel has not accepted. Node.js's idle timeout reads it, too. */
export function unacceptedBytes(socket: Socket): number {
  return (socket as Socket & { readonly _handle?: { readonly writeQueueSize?: number } })._handle?.writeQueueSize ?? 0;
}
