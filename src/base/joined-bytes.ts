/** A piece of this size or more is kept as it is. */
const PART_BYTES = 512;
const EMPTY = Buffer.alloc(0);

/**
 * Bytes that arrive in pieces of any size. Small pieces are copied next to each other: a buffer of its own takes over 100
 * bytes for each, and a client can send a body in pieces of one byte.
 */
export class JoinedBytes {
  length = 0;
  #parts: Buffer[] = [];
  /** The small pieces after the last part; `#joinedBytes` of it are in use. */
  #joined = EMPTY;
  #joinedBytes = 0;

  add(piece: Buffer): void {
    const isFirst = this.length === 0;
    this.length += piece.length;
    if (isFirst || piece.length >= PART_BYTES) {
      this.#closePart();
      this.#parts.push(piece);
      return;
    }
    const end = this.#joinedBytes + piece.length;
    if (end > this.#joined.length) {
      const larger = Buffer.allocUnsafeSlow(2 * end);
      this.#joined.copy(larger, 0, 0, this.#joinedBytes);
      this.#joined = larger;
    }
    piece.copy(this.#joined, this.#joinedBytes);
    this.#joinedBytes = end;
  }

  /** Returns the bytes in order, in few parts, and forgets them. */
  take(): readonly Buffer[] {
    this.#closePart();
    const parts = this.#parts;
    this.#parts = [];
    this.length = 0;
    return parts;
  }

  #closePart(): void {
    if (this.#joinedBytes > 0) this.#parts.push(this.#joined.subarray(0, this.#joinedBytes));
    this.#joined = EMPTY;
    this.#joinedBytes = 0;
  }
}
