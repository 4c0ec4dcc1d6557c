/** Smaller ones are left to the garbage collector, which is cheaper. */
const MIN_BYTES = 8 * 1024;

/**
 * Frees the memory of bytes that nobody reads or writes any more. It is outside of V8's heap: left to the garbage collector,
 * each further 64 MB of it make V8 mark the whole heap. Does nothing if something else may be in the same memory.
 */
export function freeBytes(bytes: Buffer): void {
  const { buffer, length } = bytes;
  if (length < MIN_BYTES || length !== buffer.byteLength || !(buffer instanceof ArrayBuffer)) return;
  buffer.transfer(0);
}
