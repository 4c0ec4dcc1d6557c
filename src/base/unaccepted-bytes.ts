import type { Socket } from 'node:net';

/** Returns the bytes of the current write that the kernel has not accepted. Node.js's idle timeout reads it, too. */
export function unacceptedBytes(socket: Socket): number {
  return (socket as Socket & { readonly _handle?: { readonly writeQueueSize?: number } })._handle?.writeQueueSize ?? 0;
}
