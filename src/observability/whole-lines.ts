/**
 * Keeps lines whole on a pipe that several processes write to. A write of at most PIPE_BUF bytes to a pipe is never
 * divided (POSIX write(2)), so lines are written in pieces of at most that size, one after the other. A longer line is
 * written in one piece, and may be divided only while the pipe is full.
 */
import { Writable } from 'node:stream';

/** PIPE_BUF on Linux; elsewhere at least 512. Files do not need this. */
const PIECE_BYTES = 4096;

/**
 * Returns a stream for text that ends in a newline. An error of `target` destroys it; nothing is written afterwards.
 */
export function wholeLines(target: Writable): Writable {
  const lines = new Writable({
    decodeStrings: false,
    highWaterMark: target.writableHighWaterMark,
    write(text: string, _encoding, done) {
      const pieces = inPieces(text);
      const next = () => {
        const piece = pieces.next();
        if (piece.done) done();
        else target.write(piece.value, (error) => (error ? done(error) : next()));
      };
      next();
    },
  });
  target.on('error', (error) => lines.destroy(error));
  return lines;
}

function* inPieces(text: string): Generator<string> {
  if (Buffer.byteLength(text) <= PIECE_BYTES) {
    if (text !== '') yield text;
    return;
  }
  let piece = '';
  let bytes = 0;
  for (const line of text.split('\n').slice(0, -1)) {
    const lineBytes = Buffer.byteLength(line) + 1;
    if (bytes > 0 && bytes + lineBytes > PIECE_BYTES) {
      yield piece;
      piece = '';
      bytes = 0;
    }
    piece += `${line}\n`;
    bytes += lineBytes;
  }
  yield piece;
}
