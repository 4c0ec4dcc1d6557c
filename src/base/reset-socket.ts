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
